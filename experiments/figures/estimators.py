"""Our question: does the estimator of the penalty matter?"""

from experiments.experiment import Experiment
from experiments.figures.metrics import RATIO, VARIANCES, error, explained
from experiments.plots import Panel, bar_panels
from experiments.records import Metric, Records
from experiments.tables import Column, Table, metric_table

FIRST_ORDER = ("sampled", "moments", "forward", "exact")
DEFAULT = {"cpu": "forward", "paper": "sampled"}
"""The estimator of the configurations, which a run's name leaves out."""
COLUMNS = (
    *VARIANCES,
    Column("alpha explained", explained, "low"),
    Column("total error, M=1", error("M=1"), "low"),
    Column("s a step", lambda record: record["seconds"]["step"], "low"),
)


def names(scale: str) -> tuple[str, ...]:
    """No penalty, then the same one by each estimator."""
    others = [name for name in FIRST_ORDER if name != DEFAULT[scale]]
    return ("none", "unit-0.01", *(f"{estimator}-unit-0.01" for estimator in others))


def tables(records: Records) -> list[Table]:
    """The same penalty by each estimator."""
    title = f"Spirograph: one penalty, four estimators (plain “unit” is {DEFAULT[records.scale]})"
    return metric_table(records, "spirograph", names(records.scale), COLUMNS, title)


def panels(records: Records) -> list[Panel]:
    """Ratio and error of each."""
    shown: dict[str, Metric] = {"V_cond/V_total": RATIO, "total test error, M=1": error("M=1")}
    return bar_panels(records, "spirograph", names(records.scale), shown)


EXPERIMENT = Experiment(
    "Estimators of the penalty",
    "All four are unbiased for the same quantity; `sampled` is the paper's, the others replace "
    "draws by exact averages. If results differ beyond their errors, variance matters.",
    lambda scale: [f"spirograph/{name}" for name in names(scale)],
    tables,
    panels,
)
