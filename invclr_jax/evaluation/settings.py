"""How to evaluate: every choice that affects a number."""

import dataclasses

from invclr_jax.evaluation.storage import MEMORY


@dataclasses.dataclass(frozen=True)
class Settings:
    """The defaults are the paper's.

    Attributes:
      seed: of transformations, samples, splits and label fractions.
      num_samples: the Ms of feature averaging, ascending.
      fractions: label fractions of the semi-supervised protocol.
      l2: weight decay of the probe; None for the paper's (1e-5 for classes, 1e-8 for numbers).
      num_images: test images of the invariance protocol.
      num_alphas: alphas per image.
      ensemble_samples: largest M of the ensemble protocol.
      ensemble_fold: largest number of transformations per training image that the ensemble's
        classifier is fitted to; their features are all kept.
      batch_size: inputs that the encoder takes at a time on each device; changes no metric.
      memory: bytes beyond which an array of features is kept in a file; changes no metric.
      limit: use a sample of at most this many training and test rows; None for all.
    """

    seed: int = 0
    num_samples: tuple[int, ...] = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    fractions: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
    l2: float | None = None
    num_images: int = 1000
    num_alphas: int = 100
    ensemble_samples: int = 100
    ensemble_fold: int = 20
    batch_size: int = 500
    memory: int = MEMORY
    limit: int | None = None

    def __post_init__(self):
        if not self.num_samples or min(self.num_samples) < 1:
            raise ValueError(f"num_samples is {self.num_samples}: every M must be at least 1")
        if not self.fractions or not all(0 < f <= 1 for f in self.fractions):
            raise ValueError(f"fractions are {self.fractions}: use numbers above 0, at most 1")
        if self.l2 is not None and not 0 <= self.l2 < float("inf"):
            raise ValueError(f"l2 is {self.l2}: use a finite number of at least 0")
        least = {"seed": 0, "num_images": 2, "num_alphas": 2, "batch_size": 1}
        least |= {"ensemble_samples": 1, "ensemble_fold": 1, "memory": 0}
        for name, smallest in least.items():
            if getattr(self, name) < smallest:
                raise ValueError(f"{name} is {getattr(self, name)}: use at least {smallest}")
        if self.limit is not None and self.limit < 2:
            raise ValueError(f"limit is {self.limit}: use at least 2, or leave it out")
