"""What the penalty costs: time of a training step compared with that of no penalty."""

from experiments.datasets import DATASETS
from experiments.experiment import Experiment
from experiments.figures import estimators
from experiments.figures.metrics import TITLES
from experiments.plots import Panel, label, stat_bars, titled
from experiments.records import Records, Stat
from experiments.runs import BASES, COMPARED, compared
from experiments.tables import Cell, Table


def seconds(record) -> float:
    """Median time of a step."""
    return record["seconds"]["step"]


def minutes(record) -> float:
    """Time of all steps at the median's speed."""
    return seconds(record) * record["training"]["step"][-1] / 60


def _names(records: Records, data: str) -> list[str]:
    more = estimators.names(records.scale) if DATASETS[data].swept else ()
    wanted = dict.fromkeys((*COMPARED[records.scale].get(data, ()), *more))
    return [name for name in wanted if records.of(data, name)]


def ratios(records: Records, data: str) -> dict[str, Stat]:
    """Step times over that of no penalty, seed by seed."""
    plain = records.stat(data, "none", seconds)
    if plain is None:
        return {}
    found = {}
    for name in _names(records, data):
        ratio = records.stat(data, name, lambda record: seconds(record) / plain.mean)
        if ratio is not None:
            found[name] = ratio
    return found


def tables(records: Records) -> list[Table]:
    """Milliseconds, ratio and time of the whole run."""
    rows: list[list[Cell]] = []
    for data in BASES[records.scale]:
        for name, ratio in ratios(records, data).items():
            step = records.stat(data, name, lambda record: 1000 * seconds(record))
            whole = records.stat(data, name, minutes)
            assert step is not None  # a ratio was made of it
            assert whole is not None
            rows.append([f"{TITLES[data]}: {label(name)}", step, ratio, whole])
    if not rows:
        return []
    header = ["", "ms a step", "over no penalty", "minutes in all"]
    extra: list[list[Cell]] = [["paper: penalty", "–", "at most 2", "–"]]
    return [Table("Training time", header, rows, extra=extra)]


def panels(records: Records) -> list[Panel]:
    """Bars of the ratios."""
    return [
        titled(stat_bars(found), f"{TITLES[data]}: step time, no penalty = 1")
        for data in BASES[records.scale]
        if (found := ratios(records, data))
    ]


EXPERIMENT = Experiment(
    "Computational cost",
    "The paper: training takes at most twice as long with the penalty. These times come from the "
    "logs of the runs themselves, on machines that did other work too; `python -m "
    "benchmarks.run` measures cleanly.",
    lambda scale: compared(scale, *BASES[scale]),
    tables,
    panels,
)
