"""How thorough an audit is."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class AuditSettings:
    """Numbers of draws.

    Attributes:
      seed: of images, transformations and splits.
      num_images: largest number of the given pictures to use, drawn at random.
      retrieved_images: how many of them, transformed once, are looked for among as many plain ones.
      varied_images: how many are transformed repeatedly.
      num_draws: transformations of each of those, per part.
      grid: points along each parameter.
      shifts: largest shift in pixels.
      severities: of the corruptions.
      resamples: of the bootstrap.
      confidence: of the intervals.
      batch_size: pictures encoded at a time.
    """

    seed: int = 0
    num_images: int = 10_000
    retrieved_images: int = 10_000
    varied_images: int = 2000
    num_draws: int = 8
    grid: int = 11
    shifts: int = 7
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)
    resamples: int = 1000
    confidence: float = 0.95
    batch_size: int = 250

    def __post_init__(self):
        least = {
            "num_images": 20,
            "retrieved_images": 20,
            "varied_images": 20,
            "num_draws": 2,
            "grid": 2,
            "shifts": 0,
        }
        for name, smallest in (least | {"resamples": 2, "batch_size": 1, "seed": 0}).items():
            if getattr(self, name) < smallest:
                raise ValueError(f"{name} is {getattr(self, name)}: use at least {smallest}")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence is {self.confidence}: use a number between 0 and 1")


QUICK = AuditSettings(
    num_images=2000,
    retrieved_images=1000,
    varied_images=200,
    num_draws=4,
    grid=5,
    severities=(3,),
    resamples=500,
)
"""For a first look at small pictures."""
