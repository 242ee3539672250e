"""Our question: how do invariance and loss move during training?"""

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.experiment import Experiment
from experiments.figures.metrics import ALPHA, CONDITIONAL, RATIO, REFERENCE, TITLES, TOTAL
from experiments.plots import Panel, colour, label
from experiments.records import Records
from experiments.runs import COMPARED, compared
from experiments.tables import Table

DATASETS = ("spirograph", "cifar10", "cifar100")


Columns = Mapping[str, Sequence[float]]


def _explained(columns: Columns) -> np.ndarray:
    return 1 - np.array(columns[ALPHA]) / np.array(columns[REFERENCE])


def _plain(name: str):
    return lambda columns: np.array(columns[name])


SHOWN = {
    # title: (part of the record, what to compute from its columns)
    "contrastive loss": ("training", _plain("contrastive")),
    "V_cond/V_total": ("trajectory", _plain(RATIO)),
    "V_cond": ("trajectory", _plain(CONDITIONAL)),
    "V_total": ("trajectory", _plain(TOTAL)),
    "share of alpha explained by z": ("trajectory", _explained),
}


def series(parts: list[Columns], measure) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Share of the schedule, mean over seeds, standard error (0 for one seed)."""
    parts = [columns for columns in parts if columns]
    length = min((len(columns["step"]) for columns in parts), default=0)
    if not length:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    values = np.array([measure(columns)[:length] for columns in parts])
    steps = np.array(parts[0]["step"][:length])
    error = values.std(0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0 * values[0]
    return steps / parts[0]["step"][-1], values.mean(0), error


def panels(records: Records) -> list[Panel]:
    """The loss and four measures for each data set."""
    return [
        _panel(records, data, what) for data in DATASETS if records.names(data) for what in SHOWN
    ]


def _panel(records: Records, data: str, what: str) -> Panel:
    part, measure = SHOWN[what]

    def draw(axis):
        for name in COMPARED[records.scale][data]:
            parts = [record[part] for record in records.of(data, name)]
            x, mean, error = series(parts, measure)
            if len(x):
                axis.plot(x, mean, color=colour(name), lw=1.5, label=label(name))
                axis.fill_between(x, mean - error, mean + error, color=colour(name), alpha=0.2)
        axis.set(xlabel="share of the schedule", title=f"{TITLES[data]}: {what}")
        if what.startswith("V_"):
            axis.set_yscale("log")

    return draw


def tables(records: Records) -> list[Table]:
    """The curves are in the records; nothing to tabulate."""
    return []


EXPERIMENT = Experiment(
    "During training",
    "In the authors' stored CIFAR curves alpha becomes unpredictable only after 600 of 1000 "
    "epochs, when the learning rate falls. Bands are one standard error; each point is measured "
    "on a few rows.",
    lambda scale: compared(scale, *DATASETS),
    tables,
    panels,
)
