"""Fig. 3: downstream tasks, with few labels on CIFAR, four factors on Spirograph."""

from experiments.experiment import Experiment
from experiments.figures.metrics import TASKS, TITLES, accuracy, error, paper_row, printed
from experiments.plots import Panel, colour, curves, label
from experiments.records import Records
from experiments.runs import COMPARED, compared
from experiments.tables import Accuracy, Column, Table, metric_table

FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
DATASETS = ("cifar10", "cifar100")
UNTRANSFORMED = {
    "cifar10": {"SimCLR": printed(93.0), "SimCLR + penalty": printed(93.35, 0.04)},
    "cifar100": {"SimCLR": printed(71.3, 0.14), "SimCLR + penalty": printed(72.2, 0.06)},
}
PAPER = [
    paper_row(
        "no regularization",
        *(printed(6.773e-4, 5.09e-5), printed(1.1248e-2, 2.555e-4)),
        *(printed(9.14e-5, 1.08e-5), printed(2.32e-5, 4e-7), printed(1.204e-2)),
    ),
    paper_row(
        "regularization",
        *(printed(5.073e-4, 7.8e-6), printed(7.3607e-3, 1.079e-4)),
        *(printed(5.27e-5, 2.6e-6), printed(2.8e-6, 1e-7), printed(7.9236e-3)),
    ),
]


def _fraction(fraction: float) -> str:
    return accuracy(f"untransformed/fraction={fraction:g}")


def _cifar(records: Records, data: str) -> list[Table]:
    columns = [Accuracy(f"{fraction:.0%}", _fraction(fraction)) for fraction in FRACTIONS]
    blank = ["–"] * (len(FRACTIONS) - 1)
    paper = [paper_row(name, *blank, stat) for name, stat in UNTRANSFORMED[data].items()]
    title = f"{TITLES[data]}: test accuracy (%) by share of the labels, untransformed inputs"
    names = COMPARED[records.scale][data]
    return metric_table(records, data, names, columns, title, paper)


def tables(records: Records) -> list[Table]:
    """Accuracies by label fraction, then the raw values of the four Spirograph tasks."""
    columns = [Column(text, error("M=1", task), "low") for task, text in TASKS.items()]
    columns.append(Column("total", error("M=1"), "low"))
    names = COMPARED[records.scale]["spirograph"]
    title = "Spirograph: test squared error of each factor, one transformation"
    return [
        *(table for data in DATASETS for table in _cifar(records, data)),
        *metric_table(records, "spirograph", names, columns, title, PAPER),
    ]


def panels(records: Records) -> list[Panel]:
    """Label curves, and errors relative to no penalty."""
    found = [_curve(records, data) for data in DATASETS if records.names(data)]
    if records.of("spirograph", "none"):
        found.append(lambda axis: _tasks(axis, records))
        found.append(lambda axis: _spirograph_fractions(axis, records))
    return found


def _curve(records: Records, data: str) -> Panel:
    def draw(axis):
        curves(axis, records, data, COMPARED[records.scale][data], FRACTIONS, _fraction)
        axis.set(xlabel="share of the labels", ylabel="test accuracy (%)", title=TITLES[data])

    return draw


def _tasks(axis, records: Records) -> None:
    names = [n for n in COMPARED[records.scale]["spirograph"] if records.of("spirograph", n)]
    width = 0.8 / len(names)
    for at, name in enumerate(names):
        for place, task in enumerate(TASKS):
            base = records.stat("spirograph", "none", error("M=1", task))
            stat = records.stat("spirograph", name, error("M=1", task))
            if base is None or stat is None:
                continue
            position = place + (at - (len(names) - 1) / 2) * width
            axis.bar(
                position,
                stat.mean / base.mean,
                width,
                yerr=(stat.error or 0) / base.mean,
                color=colour(name),
                label=label(name) if place == 0 else None,
            )
    axis.set_xticks(range(len(TASKS)), TASKS.values())
    axis.set(ylabel="test error, no penalty = 1", title="Spirograph: four tasks")


def _spirograph_fractions(axis, records: Records) -> None:
    names = COMPARED[records.scale]["spirograph"]
    curves(axis, records, "spirograph", names, FRACTIONS, lambda f: error(f"M=1/fraction={f:g}"))
    axis.set(xlabel="share of the labels", ylabel="total test error", yscale="log")
    axis.set_title("Spirograph: label fractions")


EXPERIMENT = Experiment(
    "Fig. 3: downstream tasks",
    "The paper: accuracy improves at every share of the labels, and all four Spirograph factors "
    "are recovered better. At the scale cpu the probe is fitted to a subset of the training set, "
    "so that even 100 % are few labels.",
    lambda scale: compared(scale, *DATASETS, "spirograph"),
    tables,
    panels,
)
