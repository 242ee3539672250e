"""Fig. 5: feature averaging over M transformations."""

from experiments.experiment import Experiment
from experiments.figures.metrics import (
    TITLES,
    accuracy,
    at_largest,
    averages,
    error,
    paper_row,
    printed,
)
from experiments.plots import Panel, colour, curves
from experiments.records import Records
from experiments.runs import COMPARED, compared
from experiments.tables import Accuracy, Column, Table, metric_table

DATASETS = ("cifar10", "cifar100")
PAPER: dict[str, dict[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    "cifar10": {"SimCLR": ((93.0,), (94.60,)), "SimCLR + penalty": ((93.35, 0.04), (94.83, 0.03))},
    "cifar100": {
        "SimCLR": ((71.3, 0.14), (74.10, 0.09)),
        "SimCLR + penalty": ((72.2, 0.06), (74.94, 0.09)),
    },
}


def _cifar(records: Records, data: str) -> list[Table]:
    columns = [
        Accuracy("untransformed", accuracy("untransformed")),
        Accuracy("M=1", accuracy("M=1")),
        Accuracy("M=10", accuracy("M=10")),
        Accuracy("largest M", at_largest(accuracy)),
    ]
    paper = [
        paper_row(name, printed(*plain), "–", "–", printed(*averaged))
        for name, (plain, averaged) in PAPER[data].items()
    ]
    title = f"{TITLES[data]}: test accuracy (%) with features averaged over M transformations"
    return metric_table(records, data, COMPARED[records.scale][data], columns, title, paper)


def tables(records: Records) -> list[Table]:
    """Accuracy and error at a few Ms; the paper's largest is 100."""
    columns = [
        Column("M=1", error("M=1"), "low"),
        Column("M=5", error("M=5"), "low"),
        Column("M=10", error("M=10"), "low"),
        Column("largest M", at_largest(error), "low"),
    ]
    names = COMPARED[records.scale]["spirograph"]
    title = "Spirograph: total test error with features averaged over M transformations"
    return [
        *(table for data in DATASETS for table in _cifar(records, data)),
        *metric_table(records, "spirograph", names, columns, title),
    ]


def panels(records: Records) -> list[Panel]:
    """Scores against M; dashed lines are untransformed inputs."""
    found = [_accuracies(records, data) for data in DATASETS if records.names(data)]
    return found + ([lambda axis: _errors(axis, records)] if records.names("spirograph") else [])


def _accuracies(records: Records, data: str) -> Panel:
    def draw(axis):
        names = COMPARED[records.scale][data]
        for name in names:
            plain = records.stat(data, name, accuracy("untransformed"))
            if plain is not None:
                axis.axhline(plain.mean, color=colour(name), ls="--", lw=1)
        ms = averages(records)
        curves(axis, records, data, names, ms, lambda m: accuracy(f"M={m}"))
        axis.set(xlabel="M", ylabel="test accuracy (%)", xscale="log", title=TITLES[data])

    return draw


def _errors(axis, records: Records) -> None:
    names, ms = COMPARED[records.scale]["spirograph"], averages(records)
    curves(axis, records, "spirograph", names, ms, lambda m: _mean_error(m))
    axis.set(xlabel="M", ylabel="test error, mean of four tasks", xscale="log", yscale="log")
    axis.set_title("Spirograph")


def _mean_error(m: int):
    return lambda record: record["metrics"][error(f"M={m}")] / 4


EXPERIMENT = Experiment(
    "Fig. 5: feature averaging",
    "The paper: averaging the features of M random transformations improves every score, and "
    "the penalty's advantage remains at large M.",
    lambda scale: compared(scale, *DATASETS, "spirograph"),
    tables,
    panels,
)
