"""Table 1 and its twins: predicting alpha from z on CIFAR."""

from experiments.experiment import Experiment
from experiments.figures.metrics import (
    ALPHA,
    ALPHA_LBFGS,
    REFERENCE,
    TITLES,
    explained,
    paper_row,
    printed,
)
from experiments.plots import Panel, bar_panels
from experiments.records import Metric, Records
from experiments.runs import COMPARED, compared
from experiments.tables import Cell, Column, Table, metric_table

PAPER = {
    "cifar10": {"no regularization": (0.0353, 0.0002), "regularization": (0.0415, 0.00006)},
    "cifar100": {"no regularization": (0.0357, 0.0003), "regularization": (0.0417, 0.00007)},
}
PAPER_REFERENCE = 0.0408
COLUMNS = (
    Column("ridge", ALPHA, "high"),
    Column("L-BFGS", ALPHA_LBFGS, "high"),
    Column("a constant", REFERENCE),
    Column("explained", explained, "low"),
)


def _paper(data: str) -> list[list[Cell]]:
    return [
        paper_row(name, "–", printed(mean, error), printed(PAPER_REFERENCE), printed(_share(mean)))
        for name, (mean, error) in PAPER[data].items()
    ]


def _share(mse: float) -> float:
    return 1 - mse / PAPER_REFERENCE


def tables(records: Records) -> list[Table]:
    """Mean squared error over alpha's four components."""
    return [
        table
        for data in PAPER
        for table in metric_table(
            records,
            data,
            COMPARED[records.scale][data],
            COLUMNS,
            f"{TITLES[data]}: test error of alpha from z, higher is more invariant",
            _paper(data),
        )
    ]


def panels(records: Records) -> list[Panel]:
    """Share of alpha's variance that is read from z."""
    found = []
    for data in PAPER:
        shown: dict[str, Metric] = {f"{TITLES[data]}: share of alpha explained by z": explained}
        found += bar_panels(records, data, COMPARED[records.scale][data], shown)
    return found


EXPERIMENT = Experiment(
    "Table 1 and its twin: what z reveals about alpha",
    "The paper: with the penalty, linear regression predicts the colour distortion no better "
    "than a constant. “Explained” is 1 - error/constant: 0 means that z reveals nothing. The "
    "l2 weight of our regression is chosen on a validation split.",
    lambda scale: compared(scale, *PAPER),
    tables,
    panels,
)
