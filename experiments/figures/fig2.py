"""Fig. 2 and its twin: conditional variance on CIFAR-10 and CIFAR-100."""

from experiments.experiment import Experiment
from experiments.figures.metrics import CONDITIONAL, RATIO, TITLES, VARIANCES
from experiments.plots import Panel, bar_panels
from experiments.records import Records
from experiments.runs import COMPARED, compared
from experiments.tables import Column, Table, metric_table

DATASETS = ("cifar10", "cifar100")
COLUMNS = (*VARIANCES, Column("as published", "invariance/as_published"))


def tables(records: Records) -> list[Table]:
    """Both variances, their ratio, and what the authors' script computes."""
    return [
        table
        for data in DATASETS
        for table in metric_table(
            records,
            data,
            COMPARED[records.scale][data],
            COLUMNS,
            f"{TITLES[data]}: variance of z/|z| over colour",
        )
    ]


def panels(records: Records) -> list[Panel]:
    """Bars of the conditional variance, and of its share of the total."""
    found = []
    for data in DATASETS:
        shown = {
            f"{TITLES[data]}: V_cond": CONDITIONAL,
            f"{TITLES[data]}: V_cond/V_total": RATIO,
        }
        found += bar_panels(records, data, COMPARED[records.scale][data], shown)
    return found


EXPERIMENT = Experiment(
    "Fig. 2 and its twin: conditional variance",
    "The paper: the penalty strikingly reduces the conditional variance (Eq. 6). V_cond alone "
    "can fall because all representations move together, so V_total and the ratio are shown "
    "too. The authors' script regroups the features by mistake and shows the total variance of "
    "unit features: the column “as published”. The figure's own numbers are not printed.",
    lambda scale: compared(scale, *DATASETS),
    tables,
    panels,
)
