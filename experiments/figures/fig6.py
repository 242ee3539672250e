"""Fig. 6: how lambda changes variance and downstream error on Spirograph."""

import numpy as np

from experiments.experiment import Experiment
from experiments.figures.metrics import CONDITIONAL, RATIO, VARIANCES, error, explained
from experiments.plots import Panel, colour, error_line
from experiments.records import Metric, Records
from experiments.runs import FINITE_WEIGHTS, LAMBDAS
from experiments.tables import Column, Table, metric_table

COLUMNS = (*VARIANCES, Column("total error, M=1", error("M=1"), "low"))
SHOWN: dict[str, Metric] = {
    "conditional variance": CONDITIONAL,
    "V_cond/V_total": RATIO,
    "total test error, M=1": error("M=1"),
    "share of alpha explained by z": explained,
}


def forms(scale: str) -> dict[str, tuple[str, ...]]:
    """The penalty's forms and the lambdas of each."""
    if scale == "paper":
        return {"unit": LAMBDAS["paper"]}
    first_order = dict.fromkeys(("unit", "centred", "relative"), LAMBDAS[scale])
    return first_order | {f"finite-{form}": weights for form, weights in FINITE_WEIGHTS.items()}


def names(scale: str) -> list[str]:
    """Every run of the sweep."""
    return ["none", *(f"{form}-{w}" for form, weights in forms(scale).items() for w in weights)]


def tables(records: Records) -> list[Table]:
    """The paper's form first."""
    title = "Spirograph: sweep of lambda"
    return metric_table(records, "spirograph", names(records.scale), COLUMNS, title)


def panels(records: Records) -> list[Panel]:
    """A curve over lambda for each form; the grey line is no penalty."""
    if not records.names("spirograph"):
        return []
    return [_panel(records, what, metric) for what, metric in SHOWN.items()]


def _panel(records: Records, what: str, metric: Metric) -> Panel:
    def draw(axis):
        plain = records.stat("spirograph", "none", metric)
        if plain is not None:
            axis.axhline(plain.mean, color=colour("none"), lw=1, label="no penalty")
        for form, weights in forms(records.scale).items():
            found = [(w, records.stat("spirograph", f"{form}-{w}", metric)) for w in weights]
            points = [(float(w), s.mean, s.error or 0.0) for w, s in found if s is not None]
            x, mean, spread = np.array(points).reshape(-1, 3).T
            error_line(axis, x, mean, spread, f"{form}-1", form.replace("-", " "))
        axis.set(xlabel="λ", xscale="log", title=what)
        if "share" not in what:
            axis.set_yscale("log")

    return draw


EXPERIMENT = Experiment(
    "Fig. 6: the weight of the penalty",
    "The paper: conditional variance falls with lambda; the downstream error is lowest near "
    "lambda = 0.001 and stays good above. Here every form of the penalty has its curve.",
    lambda scale: [f"spirograph/{name}" for name in names(scale)],
    tables,
    panels,
)
