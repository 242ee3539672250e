"""Our question: does the estimator of the penalty matter?"""

from experiments.figures.comparison import comparison
from experiments.tables import Column

FIRST_ORDER = ("sampled", "moments", "forward", "exact")
DEFAULT = {"cpu": "forward", "paper": "sampled"}
"""The estimator of the configurations, which a run's name leaves out."""


def names(scale: str) -> tuple[str, ...]:
    """No penalty, then the same one by each estimator."""
    others = [name for name in FIRST_ORDER if name != DEFAULT[scale]]
    return ("none", "unit-0.01", *(f"{estimator}-unit-0.01" for estimator in others))


EXPERIMENT = comparison(
    "Estimators of the penalty",
    "All four are unbiased for the same quantity; `sampled` is the paper's, the others replace "
    "draws by exact averages. If results differ beyond their errors, variance matters.",
    f"Spirograph: one penalty, four estimators (plain “unit” is {DEFAULT['cpu']} at cpu scale, "
    f"{DEFAULT['paper']} at the paper's)",
    names,
    (Column("s a step", lambda record: record["seconds"]["step"], "low"),),
)
