"""Fig. 4 and its twin: transformations at test time that training never saw."""

import functools

from experiments.experiment import Experiment
from experiments.figures.metrics import TITLES, accuracy, error, paper_row, printed
from experiments.plots import Panel, curves
from experiments.records import Metric, Records
from experiments.runs import COMPARED, compared
from experiments.tables import Accuracy, Column, Table, metric_table

STRENGTHS = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
DATASETS = ("cifar10", "cifar100")
SHIFTS = {
    "h_shift": ("h: shift of the mean", (-0.5, -0.3, -0.1, 0.0, 0.1, 0.3, 0.5)),
    "background_widen": ("background: widened", (0.0, 0.1, 0.2, 0.3, 0.4)),
    "h_widen": ("h: widened", (0.0, 0.1, 0.3, 0.5)),
    "background_shift": ("background: shift of the mean", (0.0, 0.1, 0.2, 0.3, 0.4)),
}
SHOWN = (
    *("h_shift=-0.5", "h_shift=+0.5", "h_widen=0.5"),
    *("background_shift=0.4", "background_widen=0.4"),
)
PAPER = {
    "SimCLR": (93.02, 92.59, 90.01),
    "SimCLR + penalty": (93.36, 92.90, 90.96),
}


def _strength(s: float, probe: str = "refitted") -> str:
    return accuracy(f"robustness/strength={s:g}/{probe}")


def _shift(kind: str, size: float, probe: str) -> str:
    if size == 0:
        return error("robustness/no_shift")
    sign = "+" if kind == "h_shift" else ""
    return error(f"robustness/{kind}={size:{sign}g}/{probe}")


def _cifar(records: Records, data: str) -> list[Table]:
    columns = [
        Accuracy(f"S={s:g}, {probe}", _strength(s, probe))
        for s in (0.0, 0.5, 0.875, 1.0)
        for probe in ("refitted", "kept")
    ]
    paper = []
    if data == "cifar10":
        for name, (zero, half, most) in PAPER.items():
            cells = (printed(zero), "–", printed(half), "–", printed(most), "–", "–", "–")
            paper.append(paper_row(name, *cells))
    title = f"{TITLES[data]}: test accuracy (%) under colour distortion of strength S"
    return metric_table(records, data, COMPARED[records.scale][data], columns, title, paper)


def tables(records: Records) -> list[Table]:
    """Accuracy by strength, and Spirograph's error at the ends of each shift."""
    found = [table for data in DATASETS for table in _cifar(records, data)]
    names = COMPARED[records.scale]["spirograph"]
    for probe in ("refitted", "kept"):
        metrics: dict[str, Metric] = {"no shift": error("robustness/no_shift")}
        metrics |= {text: error(f"robustness/{text}/{probe}") for text in SHOWN}
        columns = [
            Column(text.replace("_", " "), metric, "low") for text, metric in metrics.items()
        ]
        title = f"Spirograph: total test error under a shift, probe {probe}"
        found += metric_table(records, "spirograph", names, columns, title)
    return found


def panels(records: Records) -> list[Panel]:
    """Solid lines: the probe fitted under the shift; dashed: kept from the training regime."""
    found = [_cifar_panel(records, data) for data in DATASETS if records.names(data)]
    if records.names("spirograph"):
        found += [_spirograph_panel(records, kind) for kind in SHIFTS]
    return found


def _cifar_panel(records: Records, data: str) -> Panel:
    def draw(axis):
        _both_probes(axis, records, data, STRENGTHS, _strength)
        axis.axvline(0.5, color="#8888", lw=1)
        axis.set(xlabel="strength S (0.5 in training)", ylabel="test accuracy (%)")
        axis.set_title(f"{TITLES[data]}: colour")

    return draw


def _spirograph_panel(records: Records, kind: str) -> Panel:
    title, sizes = SHIFTS[kind]

    def draw(axis):
        metric = functools.partial(_shift, kind)
        _both_probes(axis, records, "spirograph", sizes, metric)
        axis.set(xlabel="shift S", ylabel="total test error", yscale="log")
        axis.set_title(f"Spirograph, {title}")

    return draw


def _both_probes(axis, records: Records, data: str, xs, metric) -> None:
    names = COMPARED[records.scale][data]
    refitted = functools.partial(metric, probe="refitted")
    kept = functools.partial(metric, probe="kept")
    curves(axis, records, data, names, xs, refitted)
    curves(axis, records, data, names, xs, kept, style="--", legend=False)


EXPERIMENT = Experiment(
    "Fig. 4 and its twin: robustness to shifted transformations",
    "The paper: penalised representations lose less when transformations at test time are "
    "stronger than in training. The authors fit the probe anew under each shift (“refitted”, "
    "solid lines); a probe that is kept from the training regime (“kept”, dashed) is the harder "
    "test.",
    lambda scale: compared(scale, *DATASETS, "spirograph"),
    tables,
    panels,
)
