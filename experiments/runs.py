"""The training runs, by name: which configuration, with which penalty, at which scale.

A run is `data set/name`; the name says what it changes, in any order, separated by `-`:

    none                    no penalty
    unit-0.01               a feature and lambda; the estimator is the configuration's
    finite-relative-0.1     an estimator, a feature and lambda
    row-none                Spirograph's intensity divided by the maximum of each row
    ramp-centred-0.01       lambda grows over the first half of training; see `WORDS` for more
    finite-canonical-ridge0.1-batch128-1     words with a number, see `NUMBERED`

so that any combination can be requested, not only those that the experiments use.
"""

import contextlib
import dataclasses
import math
from typing import Any

import ml_collections

from experiments.datasets import DATASETS
from invclr_jax import config as configuration
from invclr_jax.data import steps_per_epoch
from invclr_jax.methods import METHODS
from invclr_jax.objectives.estimators import ESTIMATORS, Finite
from invclr_jax.training.loop import total_steps

BASES: dict[str, dict[str, str]] = {
    "cpu": {
        "spirograph": "spirograph_cpu",
        "spirograph_32": "spirograph_cpu:32",
        "cifar10": "cifar10_cpu",
        "cifar10_patches": "cifar10_patches:short",
        "cifar100": "cifar100_cpu",
        "moco_cifar100": "moco_cifar100_cpu",
        **{f"methods/{method}": f"cifar_methods_cpu:{method}" for method in METHODS},
    },
    "paper": {
        "spirograph": "spirograph",
        "cifar10": "cifar10",
        "cifar100": "cifar100",
        "moco_cifar100": "moco_cifar100",
        "moco_cifar100_resnet50": "moco_cifar100:resnet50",
    },
}
"""The shipped config of every data set."""
SCALES = tuple(BASES)

LAMBDAS = {"cpu": ("0.001", "0.01", "0.1"), "paper": ("0.0001", "0.001", "0.01", "0.1", "1")}
FINITE_WEIGHTS = {"unit": ("1",), "centred": ("1",), "relative": ("0.1", "1", "10")}

COMPARED: dict[str, dict[str, tuple[str, ...]]] = {
    "cpu": {
        "spirograph": (
            "none",
            "unit-0.01",
            "centred-0.01",
            "relative-0.01",
            "finite-unit-1",
            "finite-relative-1",
        ),
        # The first-order centred penalty stays above the clip of 1, where it has no gradient.
        "cifar10": ("none", "unit-0.1", "unclipped-centred-0.1", "finite-relative-1"),
        "cifar100": ("none", "unit-0.1", "unclipped-centred-0.1", "finite-relative-1"),
        "moco_cifar100": ("none", "unit-0.1", "unclipped-centred-0.1", "finite-relative-1"),
    },
    "paper": {
        "spirograph": ("none", "unit-0.01"),
        "cifar10": ("none", "unit-0.1"),
        "cifar100": ("none", "unit-0.1"),
        "moco_cifar100": ("none", "unit-0.1"),
        "moco_cifar100_resnet50": ("none", "unit-0.1"),
    },
}
"""What tables and figures compare: the paper's two runs, and our forms beside them."""

WORDS: dict[str, tuple[str, Any]] = {
    "none": ("penalty.weight", 0.0),
    "unclipped": ("penalty.clip", 1e9),
    "ramp": ("penalty.ramp_epochs", 3.0),
    "row": ("transform.normalise", "row"),
    "image": ("transform.normalise", "image"),
    "long": ("num_steps", 6000),
    "wide": ("model.width", 32),
    "views": ("penalty.pair", "views"),
    "bfloat16": ("model.dtype", "bfloat16"),
    # What alpha consists of besides colour. Without a penalty it only decides what is drawn.
    "crop": ("transform.penalised", ("colour", "crop")),
    "rotation": ("transform.penalised", ("colour", "crop", "affine")),
    **{feature: ("penalty.feature", feature) for feature in Finite.features},
    **{estimator: ("penalty.estimator", estimator) for estimator in ESTIMATORS},
}
"""Parts of a run's name and the configuration key that each sets; a number is lambda."""

NUMBERED: dict[str, tuple[str, type]] = {
    "ridge": ("penalty.ridge", float),
    "batch": ("batch_size", int),
    "rate": ("optimizer.base_learning_rate", float),
}
"""Words that end in a number, `ridge0.1`, and the configuration key that each sets."""

RIDGE = 0.01
"""Ridge of `canonical` if a run's name does not give one, as fixed in docs/canonical_rule.md."""

# Rows on which metrics are measured during training.
PERIODIC_LIMIT = {"cpu": 1000, "paper": 5000}


@dataclasses.dataclass(frozen=True)
class Run:
    """One training run, up to its seed.

    Attributes:
      scale: `cpu` or `paper`.
      dataset: a key of `BASES[scale]`.
      name: what it changes, see the module.
    """

    scale: str
    dataset: str
    name: str

    def __post_init__(self):
        _choice("scale", self.scale, BASES)
        _choice("data set", self.dataset, BASES[self.scale])
        changes(self.name)

    def __str__(self) -> str:
        return f"{self.dataset}/{self.name}"

    def config(self, seed: int, data_path: str | None = None) -> ml_collections.ConfigDict:
        """The resolved configuration.

        Args:
          seed: of the run.
          data_path: where CIFAR is.
        """
        config = configuration.load(BASES[self.scale][self.dataset])
        config.seed = seed
        config.update_from_flattened_dict(changes(self.name))
        if DATASETS[self.dataset].is_read:
            config.data.path = data_path
        config = configuration.resolve(config)
        config.eval.every_steps = math.ceil(num_steps(config) / 10)
        config.eval.protocol, config.eval.limit = "invariance,alpha", PERIODIC_LIMIT[self.scale]
        return config


def parse(text: str, scale: str) -> Run:
    """`spirograph/unit-0.01` as a run."""
    dataset, _, name = text.rpartition("/")
    return Run(scale, dataset, name)


def changes(name: str) -> dict[str, Any]:
    """The configuration keys that a run's name sets."""
    found: dict[str, Any] = {}
    for part in name.split("-"):
        key, value = _meaning(part, name)
        if key in found:
            raise ValueError(f"run {name!r} sets {key} twice: leave {part!r} out")
        found[key] = value
    if found.get("penalty.feature") == "canonical":
        found.setdefault("penalty.ridge", RIDGE)
    if "penalty.weight" not in found:
        raise ValueError(f"run {name!r} has no lambda: add it, {name}-0.01, or call the run none")
    return found


def _meaning(part: str, name: str) -> tuple[str, Any]:
    if part in WORDS:
        return WORDS[part]
    for word, (key, kind) in NUMBERED.items():
        if part.startswith(word) and part != word:
            with contextlib.suppress(ValueError):
                return key, kind(part.removeprefix(word))
    try:
        return "penalty.weight", float(part)
    except ValueError:
        raise ValueError(
            f"run {name!r} has the part {part!r}: use {', '.join(WORDS)} or a number, separated "
            "by -"
        ) from None


def train_rows(config: ml_collections.ConfigDict) -> int:
    """Pictures of the training set, known without loading it."""
    return DATASETS[config.data.name].train_rows or config.data.num_train


def num_steps(config: ml_collections.ConfigDict) -> int:
    """Steps of a resolved configuration's whole schedule."""
    return total_steps(config, steps_per_epoch(train_rows(config), config.batch_size))


def _choice(what: str, value: str, allowed) -> None:
    if value not in allowed:
        raise ValueError(f"no {what} {value!r}: use one of {', '.join(allowed)}")


def compared(scale: str, *datasets: str) -> tuple[str, ...]:
    """The main comparison of some data sets, as `data set/name`."""
    return tuple(f"{data}/{name}" for data in datasets for name in COMPARED[scale].get(data, ()))
