"""Table 2: the best accuracies beside the literature's."""

from experiments.experiment import Experiment
from experiments.figures.metrics import accuracy, averages
from experiments.plots import label
from experiments.records import Records, Stat
from experiments.runs import COMPARED, compared
from experiments.tables import Cell, Table

DATASETS = ("cifar10", "cifar100")
LITERATURE: list[list[Cell]] = [
    ["AMDIM small", Stat(89.5), Stat(68.1)],
    ["AMDIM large", Stat(91.2), Stat(70.2)],
    ["SimCLR (its paper)", Stat(94.0), "–"],
    ["paper: SimCLR base, penalty and averaging", Stat(94.9), Stat(75.1)],
    ["supervised, ResNet50 (SimCLR's paper)", Stat(95.1), "–"],
]


def best(records: Records, data: str, name: str) -> float | None:
    """The best accuracy of any seed, untransformed or with any M."""
    features = ["untransformed", *(f"M={m}" for m in averages(records))]
    found = [v for how in features for v in records.values(data, name, accuracy(how))]
    return max(found, default=None)


def tables(records: Records) -> list[Table]:
    """Our best of each form, then the literature."""
    names = dict.fromkeys(n for data in DATASETS for n in COMPARED[records.scale][data])
    rows: list[list[Cell]] = []
    for name in names:
        scores = [best(records, data, name) for data in DATASETS]
        if any(score is not None for score in scores):
            text = f"ours at the scale {records.scale}: {label(name)}"
            rows.append([text, *("–" if s is None else Stat(s) for s in scores)])
    if not rows:
        return []
    header = ["", "CIFAR-10", "CIFAR-100"]
    title = "Best test accuracy (%) of a linear classifier"
    return [Table(title, header, rows, (None, "high", "high"), LITERATURE)]


EXPERIMENT = Experiment(
    "Table 2: beside the literature",
    "Best accuracy of any seed and any M. Only the scale paper (ResNet50, 1000 epochs) is "
    "comparable with the literature; the scale cpu shows how far a tiny encoder gets.",
    lambda scale: compared(scale, *DATASETS),
    tables,
    lambda records: [],
)
