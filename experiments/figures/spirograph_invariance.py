"""The appendix's table of invariance metrics for Spirograph."""

from experiments.experiment import Experiment
from experiments.figures.metrics import (
    ALPHA,
    ALPHA_LBFGS,
    RATIO,
    REFERENCE,
    VARIANCES,
    explained,
    paper_row,
    printed,
)
from experiments.plots import Panel, bar_panels
from experiments.records import Metric, Record, Records
from experiments.runs import COMPARED, compared
from experiments.tables import Column, Table, metric_table

NUISANCES = ("h", "f_g", "f_b", "b_r", "b_g", "b_b")
COLUMNS = (
    *VARIANCES,
    Column("alpha, ridge", ALPHA, "high"),
    Column("alpha, L-BFGS", ALPHA_LBFGS, "high"),
    Column("a constant", REFERENCE),
    Column("explained", explained, "low"),
    Column("as published", "invariance/as_published"),
)
PAPER = [
    paper_row(
        "no regularization",
        *("–", printed(0.789, 0.0069), "–", "–", printed(0.0751, 0.0003), printed(0.0806)),
        *(printed(1 - 0.0751 / 0.0806), printed(0.789, 0.0069)),
    ),
    paper_row(
        "regularization",
        *("–", printed(0.0016, 0.00004), "–", "–", printed(0.0808, 0.00009), printed(0.0806)),
        *(printed(1 - 0.0808 / 0.0806), printed(0.0016, 0.00004)),
    ),
]


def tables(records: Records) -> list[Table]:
    """Variances and alpha's error, then the latter by component."""
    names = COMPARED[records.scale]["spirograph"]
    components = [Column(name, explained_part(name), "low") for name in NUISANCES]
    return metric_table(
        records, "spirograph", names, COLUMNS, "Invariance of z/|z| on Spirograph", PAPER
    ) + metric_table(
        records, "spirograph", names, components, "Share of each nuisance explained by z"
    )


def explained_part(name: str) -> Metric:
    """Share of one nuisance's variance that is read from z."""

    def measure(record: Record) -> float:
        metrics = record["metrics"]
        return 1 - metrics[f"alpha/ridge/mse/{name}"] / metrics[f"alpha/reference/{name}"]

    return measure


def panels(records: Records) -> list[Panel]:
    """Ratio and explained share."""
    shown: dict[str, Metric] = {
        "V_cond/V_total": RATIO,
        "share of alpha explained by z": explained,
    }
    return bar_panels(records, "spirograph", COMPARED[records.scale]["spirograph"], shown)


EXPERIMENT = Experiment(
    "Spirograph: invariance",
    "The paper: conditional variance falls from 0.789 to 0.0016 and alpha becomes as "
    "unpredictable as from a constant. Its conditional variance mixes images (see Fig. 2), so it "
    "stands under V_total and “as published”.",
    lambda scale: compared(scale, "spirograph"),
    tables,
    panels,
)
