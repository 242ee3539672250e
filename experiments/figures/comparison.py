"""Experiments that set some Spirograph runs side by side in one table and a few bars."""

from collections.abc import Callable, Sequence

from experiments.experiment import Experiment
from experiments.figures.metrics import RATIO, VARIANCES, error, explained
from experiments.plots import bar_panels
from experiments.records import Metric
from experiments.tables import Column, metric_table

COLUMNS = (
    *VARIANCES,
    Column("alpha explained", explained, "low"),
    Column("total error, M=1", error("M=1"), "low"),
)
SHOWN: dict[str, Metric] = {"V_cond/V_total": RATIO, "total test error, M=1": error("M=1")}


def comparison(
    title: str,
    text: str,
    heading: str,
    names: Callable[[str], Sequence[str]],
    more: Sequence[Column] = (),
) -> Experiment:
    """An experiment on Spirograph.

    Args:
      title: of the experiment.
      text: what is asked.
      heading: of the table.
      names: scale -> the runs, in order.
      more: columns of the table besides variances, alpha and the error.
    """
    return Experiment(
        title,
        text,
        lambda scale: [f"spirograph/{name}" for name in names(scale)],
        lambda records: metric_table(
            records, "spirograph", names(records.scale), (*COLUMNS, *more), heading
        ),
        lambda records: bar_panels(records, "spirograph", names(records.scale), SHOWN),
    )
