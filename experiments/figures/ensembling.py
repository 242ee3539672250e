"""The appendix's comparison of feature averaging with ensembling."""

import functools

from experiments.experiment import Experiment
from experiments.figures.metrics import TITLES
from experiments.plots import Panel, curves
from experiments.records import Records
from experiments.runs import COMPARED, compared
from experiments.tables import Accuracy, Column, Table, metric_table

DATASETS = ("cifar10", "cifar100")
KINDS = {"averaging": "-", "ensembling": "--"}
PAPER = [["paper: penalty, CIFAR-10, M=100", "3", "–", "–", "0.154", "0.239"]]


def _metric(kind: str, score: str, m: int) -> str:
    return f"ensemble/{kind}/M={m}/{score}"


def sizes(records: Records) -> list[int]:
    """The Ms that were compared."""
    found = {
        int(metric.split("/")[2][2:])
        for record in records
        for metric in record["metrics"]
        if metric.startswith("ensemble/averaging/")
    }
    return sorted(found)


def tables(records: Records) -> list[Table]:
    """Accuracy and loss at the largest M."""
    ms = sizes(records)
    if not ms:
        return []
    columns = [
        *(Accuracy(f"accuracy, {kind}", _metric(kind, "accuracy", ms[-1])) for kind in KINDS),
        *(Column(f"loss, {kind}", _metric(kind, "loss", ms[-1]), "low") for kind in KINDS),
    ]
    found = []
    for data in DATASETS:
        title = f"{TITLES[data]}: the same {ms[-1]} transformations used in both ways"
        paper = PAPER if data == "cifar10" else ()
        names = COMPARED[records.scale][data]
        found += metric_table(records, data, names, columns, title, paper)
    return found


def panels(records: Records) -> list[Panel]:
    """Solid lines average features, dashed ones probabilities."""
    scores = {"accuracy": "test accuracy (%)", "loss": "test cross entropy"}
    return [
        _panel(records, data, score, text)
        for data in DATASETS
        if sizes(records) and records.names(data)
        for score, text in scores.items()
    ]


def _panel(records: Records, data: str, score: str, text: str) -> Panel:
    def draw(axis):
        names, ms = COMPARED[records.scale][data], sizes(records)
        for kind, style in KINDS.items():
            metric = functools.partial(_metric, kind, score)
            curves(axis, records, data, names, ms, metric, style=style, legend=style == "-")
        axis.set(xlabel="M", ylabel=text, xscale="log", title=TITLES[data])

    return draw


EXPERIMENT = Experiment(
    "Appendix: averaging features or ensembling predictions",
    "The paper: both give the same accuracy, but ensembling has the higher loss. Solid lines "
    "average features, dashed ones the probabilities of a classifier of single features.",
    lambda scale: compared(scale, *DATASETS),
    tables,
    panels,
)
