"""What was run, and the decisive numbers, in one table per data set."""

from collections.abc import Callable

from experiments.datasets import DATASETS, Kind
from experiments.experiment import Experiment
from experiments.figures.cost import minutes
from experiments.figures.metrics import (
    RATIO,
    TITLES,
    accuracy,
    at_largest,
    error,
    explained,
    largest_name,
)
from experiments.records import Records
from experiments.runs import COMPARED, compared
from experiments.tables import Accuracy, Column, Table, metric_table

INVARIANCE = (
    Column("V_cond/V_total", RATIO, "low"),
    Column("alpha explained", explained, "low"),
)


def factors(records: Records, data: str) -> tuple[Column, ...]:
    """Columns of data whose factors are regressed."""
    return (
        *INVARIANCE,
        Column("error, M=1", error("M=1"), "low"),
        Column(f"error, {largest_name(records, data)}", at_largest(error), "low"),
        Column("error, h +0.5", error("robustness/h_shift=+0.5/kept"), "low"),
        Column("error, background ±0.4", error("robustness/background_widen=0.4/kept"), "low"),
        Column("minutes", minutes),
    )


def pictures(records: Records, data: str) -> tuple[Column, ...]:
    """Columns of data whose classes are predicted."""
    return (
        *INVARIANCE,
        Accuracy("accuracy", accuracy("untransformed")),
        Accuracy("5 % of labels", accuracy("untransformed/fraction=0.05")),
        Accuracy(f"accuracy, {largest_name(records, data)}", at_largest(accuracy)),
        Accuracy("colours S=1", accuracy("robustness/strength=1/kept")),
        Column("minutes", minutes),
    )


COLUMNS: dict[Kind, Callable[[Records, str], tuple[Column, ...]]] = {
    "factors": factors,
    "pictures": pictures,
}


def tables(records: Records) -> list[Table]:
    """The main comparison of each data set that was run."""
    found = []
    for data, names in COMPARED[records.scale].items():
        columns = COLUMNS[DATASETS[data].kind](records, data)
        found += metric_table(records, data, names, columns, TITLES[data])
    return found


EXPERIMENT = Experiment(
    "Overview",
    "Invariance, downstream error or accuracy, and robustness of probes that were not fitted anew "
    "under shifted transformations. “minutes” is the training of one seed.",
    lambda scale: compared(scale, *COMPARED[scale]),
    tables,
    lambda records: [],
)
