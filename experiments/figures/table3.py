"""Table 3: MoCo v2 on CIFAR-100."""

from experiments.experiment import Experiment
from experiments.figures.metrics import (
    CONDITIONAL,
    RATIO,
    TITLES,
    accuracy,
    averages,
    explained,
    printed,
)
from experiments.plots import Panel, bar_panels
from experiments.records import Record, Records
from experiments.runs import COMPARED, compared
from experiments.tables import Accuracy, Cell, Column, Table, metric_table

DATASETS = ("moco_cifar100", "moco_cifar100_resnet50")
PAPER: list[list[Cell]] = [
    ["paper: ResNet18, MoCo v2", "3", printed(52.3, 0.3), "–"],
    ["paper: ResNet18, with penalty", "3", printed(54.1, 0.1), printed(60.6, 0.1)],
    ["paper: ResNet50, MoCo v2", "2", printed(57.9, 0.1), "–"],
    ["paper: ResNet50, with penalty", "2", printed(58.9, 0.2), printed(64.4, 0.2)],
]


def averaged(record: Record) -> float:
    """Accuracy at M = 40, or at the largest M below if 40 was not measured."""
    m = max(m for m in averages([record]) if m <= 40)
    return record["metrics"][accuracy(f"M={m}")]


COLUMNS = (
    Accuracy("untransformed", accuracy("untransformed")),
    Accuracy("averaging, M=40 or next below", averaged),
)
MEASURES = (
    Column("V_cond", CONDITIONAL, "low"),
    Column("V_cond/V_total", RATIO, "low"),
    Column("alpha explained", explained, "low"),
)


def tables(records: Records) -> list[Table]:
    """Accuracies with the paper's beside them, then invariance."""
    found = []
    for data in DATASETS:
        names = COMPARED[records.scale].get(data, ())
        title = f"{TITLES[data]}: test accuracy (%)"
        found += metric_table(records, data, names, COLUMNS, title, PAPER)
        found += metric_table(records, data, names, MEASURES, f"{TITLES[data]}: invariance")
    return found


def panels(records: Records) -> list[Panel]:
    """Bars of both accuracies."""
    found = []
    for data in DATASETS:
        shown = {f"{TITLES[data]}: {column.label}": column.metric for column in COLUMNS}
        found += bar_panels(records, data, COMPARED[records.scale].get(data, ()), shown)
    return found


EXPERIMENT = Experiment(
    "Table 3: MoCo v2",
    "The paper: the penalty and feature averaging help MoCo v2 as well.",
    lambda scale: compared(scale, *DATASETS),
    tables,
    panels,
)
