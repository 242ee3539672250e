"""Our question: is what we found an accident of a small encoder or a short schedule?"""

from experiments.figures.comparison import comparison
from experiments.figures.metrics import at_largest, error
from experiments.tables import Column

FORMS = {"cpu": ("none", "unit-0.01", "finite-relative-1"), "paper": ("none", "unit-0.01")}
SIZES = {"cpu": ("long-", "wide-"), "paper": ()}
"""Three times as many steps; four times as many channels."""

MORE = (
    Column("total error, largest M", at_largest(error), "low"),
    Column("error, h +0.5", error("robustness/h_shift=+0.5/kept"), "low"),
    Column("error, background ±0.4", error("robustness/background_widen=0.4/kept"), "low"),
)


def names(scale: str) -> tuple[str, ...]:
    """Each form at the usual size, then at larger ones."""
    return tuple(f"{size}{form}" for size in ("", *SIZES[scale]) for form in FORMS[scale])


EXPERIMENT = comparison(
    "Longer training, larger encoders",
    "“long” is 6000 steps instead of 2000, “wide” 32 base channels instead of 8, sixteen times "
    "the multiplications.",
    "Spirograph: the main comparison at three sizes",
    names,
    MORE,
)
