"""Our question: how do invariance and loss move during training?"""

import numpy as np

from experiments.experiment import Experiment
from experiments.figures.metrics import ALPHA, CONDITIONAL, RATIO, REFERENCE, TITLES, TOTAL
from experiments.plots import Panel, colour, label
from experiments.records import Record, Records
from experiments.runs import COMPARED, compared
from experiments.tables import Table

DATASETS = ("spirograph", "cifar10", "cifar100")


def _explained(trajectory: dict[str, list[float]]) -> np.ndarray:
    return 1 - np.array(trajectory[ALPHA]) / np.array(trajectory[REFERENCE])


def _plain(name: str):
    return lambda trajectory: np.array(trajectory[name])


SHOWN = {
    "V_cond/V_total": _plain(RATIO),
    "V_cond": _plain(CONDITIONAL),
    "V_total": _plain(TOTAL),
    "share of alpha explained by z": _explained,
}


def series(records: list[Record], measure) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Share of the schedule, mean over seeds, standard error (0 for one seed)."""
    whole = [record["trajectory"] for record in records if record["trajectory"]]
    length = min((len(trajectory["step"]) for trajectory in whole), default=0)
    if not length:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    values = np.array([measure(trajectory)[:length] for trajectory in whole])
    steps = np.array(whole[0]["step"][:length])
    error = values.std(0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0 * values[0]
    return steps / whole[0]["step"][-1], values.mean(0), error


def panels(records: Records) -> list[Panel]:
    """Four measures for each data set, and the contrastive loss of Spirograph."""
    return [
        _panel(records, data, what, measure)
        for data in DATASETS
        if records.names(data)
        for what, measure in SHOWN.items()
    ]


def _panel(records: Records, data: str, what: str, measure) -> Panel:
    def draw(axis):
        for name in COMPARED[records.scale][data]:
            x, mean, error = series(records.of(data, name), measure)
            if len(x):
                axis.plot(x, mean, color=colour(name), marker="o", ms=3, label=label(name))
                axis.fill_between(x, mean - error, mean + error, color=colour(name), alpha=0.2)
        axis.set(xlabel="share of the schedule", title=f"{TITLES[data]}: {what}")
        if "share" not in what:
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
