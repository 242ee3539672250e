"""Our question: on photographs, is it the penalty's form that counts, or its strength?"""

from experiments.experiment import Experiment
from experiments.figures.metrics import RATIO, TITLES, accuracy
from experiments.figures.overview import pictures
from experiments.plots import Panel, bar_panels
from experiments.records import Metric, Records
from experiments.runs import COMPARED
from experiments.tables import Table, metric_table

DATASETS = ("cifar10", "cifar100")
STRENGTHS = ("unclipped-unit-1", "finite-relative-0.1")
"""A stronger `unit`, a weaker `relative`: those of the main comparison differ too much to tell."""

SHOWN: dict[str, Metric] = {"V_cond/V_total": RATIO, "accuracy": accuracy("untransformed")}


def names(data: str) -> list[str]:
    """The main comparison of a data set, then other strengths; at cpu scale only."""
    return [*COMPARED["cpu"][data], *STRENGTHS]


def runs(scale: str) -> list[str]:
    """What is trained for it."""
    return [f"{data}/{name}" for data in DATASETS for name in names(data)] if scale == "cpu" else []


def tables(records: Records) -> list[Table]:
    """A table for each data set."""
    return [
        table
        for data in DATASETS
        for table in metric_table(records, data, names(data), pictures(records, data), TITLES[data])
    ]


def panels(records: Records) -> list[Panel]:
    """Ratio and accuracy."""
    return [
        panel
        for data in DATASETS
        for panel in bar_panels(
            records, data, names(data), {f"{TITLES[data]}: {what}": SHOWN[what] for what in SHOWN}
        )
    ]


EXPERIMENT = Experiment(
    "Photographs: form or strength?",
    "`unit` with ten times its lambda and no clip, and `relative` with a tenth of its weight, "
    "beside the main comparison. If a form is better only because it is stronger, another form "
    "of that strength is as good.",
    runs,
    tables,
    panels,
)
