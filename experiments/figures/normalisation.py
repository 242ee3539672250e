"""Our question: which Spirograph did the paper use, and does it matter?"""

from experiments.experiment import Experiment
from experiments.figures.comparison import SHOWN
from experiments.figures.fig3 import PAPER
from experiments.figures.metrics import TASKS, VARIANCES, at_largest, error, explained
from experiments.plots import Panel, bar_panels
from experiments.records import Records
from experiments.tables import Column, Table, metric_table

FORMS = {"cpu": ("none", "unit-0.01", "finite-relative-1"), "paper": ("none", "unit-0.01")}


def names(scale: str) -> tuple[str, ...]:
    """Both normalisations of each form."""
    return tuple(name for form in FORMS[scale] for name in (form, f"row-{form}"))


TASK_COLUMNS = (
    *(Column(text, error("M=1", task), "low") for task, text in TASKS.items()),
    Column("total", error("M=1"), "low"),
)


def tables(records: Records) -> list[Table]:
    """Errors of the four factors, then invariance."""
    measures = (
        *VARIANCES,
        Column("alpha explained", explained, "low"),
        Column("total error, largest M", at_largest(error), "low"),
    )
    wanted = names(records.scale)
    return metric_table(
        records, "spirograph", wanted, TASK_COLUMNS, "Test error, one transformation", PAPER
    ) + metric_table(records, "spirograph", wanted, measures, "Invariance, and averaged features")


def panels(records: Records) -> list[Panel]:
    """Ratio and error under both."""
    return bar_panels(records, "spirograph", names(records.scale), SHOWN)


EXPERIMENT = Experiment(
    "Spirograph's two normalisations",
    "The paper divides a picture's intensity by its maximum; the authors' code by the maximum of "
    "each row. The published table very probably belongs to the latter.",
    lambda scale: [f"spirograph/{name}" for name in names(scale)],
    tables,
    panels,
)
