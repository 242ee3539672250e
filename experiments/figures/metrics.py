"""Names of the metrics that several experiments show."""

from experiments.datasets import DATASETS
from experiments.records import Metric, Record, Stat
from experiments.tables import Cell, Column

TASKS = {"m": "m", "b": "b", "sigma": "σ", "f_r": "f_r"}
CONDITIONAL = "invariance/conditional_variance"
TOTAL = "invariance/total_variance"
RATIO = "invariance/ratio"
ALPHA = "alpha/ridge/mse/mean"
ALPHA_LBFGS = "alpha/lbfgs/mse/mean"
REFERENCE = "alpha/reference/mean"

TITLES = {name: data.title for name, data in DATASETS.items()}

VARIANCES = (
    Column("V_cond", CONDITIONAL, "low"),
    Column("V_total", TOTAL),
    Column("V_cond/V_total", RATIO, "low"),
)


def explained(record: Record) -> float:
    """Share of alpha's variance that a linear model reads from z: 0 is invariant."""
    return 1 - record["metrics"][ALPHA] / record["metrics"][REFERENCE]


def error(name: str, task: str = "total") -> str:
    """Squared error of a Spirograph task; `name` says from which features."""
    return f"probe/ridge/{name}/mse/{task}"


def accuracy(name: str) -> str:
    """Test accuracy in percent of the softmax probe; `name` says on which features."""
    return f"probe/lbfgs/{name}/accuracy"


def averages(records) -> list[int]:
    """The Ms of feature averaging that were measured, ascending."""
    found = {
        int(part[2:])
        for record in records
        for metric in record["metrics"]
        for part in metric.split("/")[2:3]
        if part.startswith("M=")
    }
    return sorted(found)


def largest(record: Record) -> int:
    """The largest M of a record."""
    return max(averages([record]))


def largest_name(records, data: str) -> str:
    """The largest M of a data set's records: `M=50`, or `M=20–50` if they differ."""
    measured = (averages([record]) for record in records if record["dataset"] == data)
    found = sorted({ms[-1] for ms in measured if ms})
    if not found:
        return "largest M"
    return f"M={found[0]}" if len(found) == 1 else f"M={found[0]}–{found[-1]}"


def at_largest(metric) -> Metric:
    """`metric("M=50")` of each record's own largest M."""
    return lambda record: record["metrics"][metric(f"M={largest(record)}")]


def paper_row(name: str, *cells: Cell) -> list[Cell]:
    """A row of numbers that the paper or the authors print."""
    return [f"paper: {name}", "3", *cells]


def printed(mean: float, error: float | None = None) -> Stat:
    """A number from the paper, three runs."""
    return Stat(mean, error, 3)
