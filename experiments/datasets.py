"""The data sets of the experiments and how they differ: a table, so that no code tests names."""

import dataclasses
from typing import Literal

from invclr_jax.methods import METHODS

Kind = Literal["factors", "pictures"]


@dataclasses.dataclass(frozen=True)
class DataSet:
    """What experiments need to know about a data set before it is loaded.

    Attributes:
      title: its name for people.
      kind: `factors`, drawn with nuisances and regressed; `pictures`, read and classified.
      train_rows: size of the training set; None if the configuration decides it.
      test_rows: size of the test set.
      has_beta: whether the transform has parameters besides alpha; if not, the second view of a
        picture serves the finite penalty at no cost.
      swept: whether all forms and estimators of the penalty are compared on it.
    """

    title: str
    kind: Kind = "pictures"
    train_rows: int | None = 50_000
    test_rows: int = 10_000
    has_beta: bool = True
    swept: bool = False

    @property
    def is_read(self) -> bool:
        """Whether it is read from a path."""
        return self.train_rows is not None


DATASETS: dict[str, DataSet] = {
    "spirograph": DataSet("Spirograph", "factors", None, 20_000, has_beta=False, swept=True),
    "spirograph_32": DataSet("Spirograph, 32×32", "factors", None, 20_000, has_beta=False),
    "cifar10": DataSet("CIFAR-10"),
    "cifar10_patches": DataSet("CIFAR-10, patches"),
    "cifar100": DataSet("CIFAR-100"),
    "moco_cifar100": DataSet("MoCo v2, CIFAR-100"),
    "moco_cifar100_resnet50": DataSet("MoCo v2, CIFAR-100, ResNet50"),
    **{f"methods/{method}": DataSet(f"CIFAR-10, {method}") for method in METHODS},
}
