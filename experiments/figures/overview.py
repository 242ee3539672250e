"""What was run, and the numbers that decide, in one table for each data set."""

from experiments.experiment import Experiment
from experiments.figures.metrics import RATIO, TITLES, accuracy, at_largest, error, explained
from experiments.records import Record, Records
from experiments.runs import COMPARED, compared
from experiments.tables import Column, Table, metric_table


def minutes(record: Record) -> float:
    """Training time by the median step, since some logs hold other work of the machine."""
    return record["seconds"]["step"] * record["training"]["step"][-1] / 60


INVARIANCE = (
    Column("V_cond/V_total", RATIO, "low"),
    Column("alpha explained", explained, "low"),
)
SPIROGRAPH = (
    *INVARIANCE,
    Column("error, M=1", error("M=1"), "low"),
    Column("error, M=50", at_largest(error), "low"),
    Column("error, h +0.5", error("robustness/h_shift=+0.5/kept"), "low"),
    Column("error, background ±0.4", error("robustness/background_widen=0.4/kept"), "low"),
    Column("minutes", minutes),
)
PICTURES = (
    *INVARIANCE,
    Column("accuracy", accuracy("untransformed"), "high"),
    Column("5 % of labels", accuracy("untransformed/fraction=0.05"), "high"),
    Column("averaged", at_largest(accuracy), "high"),
    Column("colours S=1", accuracy("robustness/strength=1/kept"), "high"),
    Column("minutes", minutes),
)


def tables(records: Records) -> list[Table]:
    """The main comparison of each data set that was run."""
    found = []
    for data, names in COMPARED[records.scale].items():
        columns = SPIROGRAPH if data == "spirograph" else PICTURES
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
