"""One page with every result: plots, tables, the paper's numbers, pictures of the data.

python -m experiments.report --results=experiments/results --out=report.html
"""

import pathlib

from experiments import records
from experiments.experiment import Experiment
from experiments.figures import EXPERIMENTS
from experiments.plots import compose, label
from experiments.report import pictures
from experiments.report.page import Page
from experiments.runs import SCALES, parse
from experiments.tables import Table

TITLE = "Does the penalty make representations invariant?"
INTRODUCTION = (
    "A contrastive encoder should find what a picture shows and ignore how it was taken. Foster, "
    "Pukdee and Rainforth (ICLR 2021) add a penalty on the derivative of the representation in "
    "the parameters alpha of the transformation, and average representations over M "
    "transformations at test time. This page has every table and figure of their paper, "
    "remeasured, and some questions of our own. Numbers are the mean over seeds ± one standard "
    "error; the best of a column is bold; tinted rows are the paper's."
)
MANY_ROWS, FEW = 9, 5


def section(page: Page, name: str, experiment: Experiment, measured: records.Records) -> None:
    """One experiment: its text, plots and tables, and what has not been run."""
    tables, panels = experiment.tables(measured), experiment.panels(measured)
    if not tables and not panels:
        return
    page.heading(experiment.title, f"{measured.scale}-{name}", experiment.title.partition(":")[0])
    page.text(experiment.text)
    coloured = any(table.factors for table in tables)  # shows what the panels would
    if panels and not coloured:
        page.panels([compose([panel]) for panel in panels], experiment.title)
    for table in tables:
        folded = bool(panels) and len(table.rows) > MANY_ROWS and not table.factors
        factors = _means(table) if table.factors else ()
        marked = table.marked()
        page.table(table.header, marked, title=table.title, folded=folded, factors=factors)
    wanted = dict.fromkeys(experiment.runs(measured.scale))
    missing = [text for text in wanted if not _made(measured, text)]
    if missing:
        more = f" and {len(missing) - FEW} more" if len(missing) > FEW else ""
        page.text(f"Not run yet: {', '.join(missing[:FEW])}{more}.", "note")


def _means(table: Table) -> list[list[float | None]]:
    rows = [*table.rows, *table.extra]
    return [[cell.mean if isinstance(cell, records.Stat) else None for cell in row] for row in rows]


def _made(measured: records.Records, text: str) -> bool:
    run = parse(text, measured.scale)
    return bool(measured.of(run.dataset, run.name))


def summary(page: Page, measured: records.Records) -> None:
    """How much was run, on what."""
    # The median step, since some logs include hours in which the machine did other work.
    seconds = sum(r["seconds"]["step"] * r["training"]["step"][-1] for r in measured)
    steps = sum(record["training"]["step"][-1] for record in measured)
    seeds = {record["seed"] for record in measured}
    names = {(record["dataset"], record["name"]) for record in measured}
    page.cards(
        {
            "training runs": str(len(measured)),
            "kinds of run": str(len(names)),
            "seeds": str(len(seeds)),
            "steps in total": f"{steps:,.0f}",
            "hours of training": f"{seconds / 3600:.1f}",
        }
    )
    hardware = sorted({record["hardware"] for record in measured})
    code = sorted({record["code"]["trained"] for record in measured})
    page.text(f"Hardware: {'; '.join(hardware)}. Code: {', '.join(code)}.", "note")


def sizes(page: Page, measured: records.Records) -> None:
    """What was trained: one row per data set."""
    rows = []
    for data in dict.fromkeys(record["dataset"] for record in measured):
        config = next(record["config"] for record in measured if record["dataset"] == data)
        model, size = config["model"], config["transform"]["size"] or 32
        runs = ", ".join(label(name) for name in measured.names(data))
        step = next(r["training"]["step"][-1] for r in measured if r["dataset"] == data)
        encoder = f"{model['name']}, {model['width']} base channels"
        rows.append([data, encoder, f"{size}×{size}", str(config["batch_size"]), f"{step:g}", runs])
    header = ["data", "encoder", "pictures", "batch", "steps", "runs"]
    page.table(header, rows, title="What was trained", folded=True)


def build(results: pathlib.Path) -> Page:
    """The page of all records under a folder."""
    scales = [measured for scale in SCALES if len(measured := records.load(results, scale))]
    if not scales:
        raise ValueError(f"{results} holds no records: python -m experiments.run makes them")
    page = Page(TITLE)
    page.picture(*pictures.animation(), still=pictures.still())
    page.text(INTRODUCTION)
    page.heading("The pictures", "pictures", "Pictures")
    page.text(pictures.TEXT)
    page.panels(pictures.gallery(), "Spirograph samples")
    for measured in scales:
        page.heading(
            f"The scale {measured.scale}", f"scale-{measured.scale}", f"Scale {measured.scale}"
        )
        summary(page, measured)
        sizes(page, measured)
        for name, experiment in EXPERIMENTS.items():
            section(page, name, experiment, measured)
    return page
