"""Audits encoders: how invariant they are, to what, and by whose measure.

    invclr audit --workdir=runs/c10 --quick
    invclr audit --workdir=runs/a,runs/b --data_name=cifar10 --data_path=FOLDER
    invclr audit --function=my_lab.nets:encode --trust=my_lab --images=pictures.npz

An encoder is a run's folder, or a function images [n, h, w, channels] in [0, 1] -> features [n, d]
by its import path; name several of either to see them side by side. Pictures come from --images, an
npz file (`train_images`, `test_images` and their labels) or a folder of class folders, from
--data_name, or from the data that the first run was trained on; the test part is used where there
is one. The report is printed and written as JSON and as one HTML page.
"""

import functools
import pathlib
from typing import Any

from absl import flags

from invclr_jax import cli, data, importing
from invclr_jax import config as configuration
from invclr_jax.checkpoint import Encoder, load_encoder
from invclr_jax.evaluation.audit.page import page
from invclr_jax.evaluation.audit.report import Report, beside
from invclr_jax.evaluation.audit.run import audit
from invclr_jax.files import write_atomically
from invclr_jax.transforms.base import Transform
from invclr_jax.transforms.image import ImageTransform

_WORKDIR = flags.DEFINE_list("workdir", [], "Folders of runs, comma separated.")
_FUNCTION = flags.DEFINE_list("function", [], "Functions, package.module:name, comma separated.")
_TRUST = cli.define_trust()
_IMAGES = flags.DEFINE_string("images", None, "npz file or folder of class folders.")
_DATA_NAME = flags.DEFINE_string("data_name", None, "A data set by name, such as cifar10.")
_DATA_PATH = flags.DEFINE_string("data_path", None, "Where it is.")
_SIZE = flags.DEFINE_integer(
    "size", 32, "Side of the pictures in pixels, for --images=folder.", lower_bound=1
)
_QUICK = flags.DEFINE_bool("quick", False, "Fewer pictures and draws, for a first look.")
_OUTPUT = flags.DEFINE_string("output", "audit", "Folder for the reports.")

AFFINE = (1 / 12, 1 / 8, 1 / 8, 0.25, 0.1, 0.1)
"""Half widths of the maps that pictures are audited against: up to 30 degrees, an eighth, …"""


def encoders(workdirs: list[str], functions: list[str], trust: list[str]) -> dict[str, Any]:
    """Encoders by name, or a ValueError if there is none to audit."""
    found: dict[str, Any] = {}
    for workdir in workdirs:
        found[workdir] = load_encoder(workdir, trust=trust)
    for name in functions:
        found[name] = importing.find(name, home="invclr_jax.models", trust=trust)
    if not found:
        raise ValueError("there is no encoder to audit: give --workdir or --function")
    return found


def pictures(first: Any) -> data.Split:
    """The pictures that the flags name, or those of the first encoder's run."""
    if _IMAGES.value:
        path = pathlib.Path(_IMAGES.value)
        if not path.exists():
            raise FileNotFoundError(f"{path} (--images) does not exist")
        folder = {"name": "folder", "size": _SIZE.value}
        dataset = data.load(path=path, **(folder if path.is_dir() else {"name": "arrays"}))
    elif _DATA_NAME.value:
        dataset = data.load(_DATA_NAME.value, path=_DATA_PATH.value)
    elif isinstance(first, Encoder):
        config = configuration.from_dict(first.config.to_dict())
        config.data.path = _DATA_PATH.value or config.data.path
        dataset = configuration.load_data(config, trust=_TRUST.value)
    else:
        raise ValueError("there are no pictures to audit with: give --images or --data_name")
    return dataset.test or dataset.train


def transform_for(split: data.Split, first: Any) -> Transform:
    """Colours and affine maps of the pictures; the run's own where those are drawn from factors."""
    if split.images.ndim != 4:
        if not isinstance(first, Encoder):
            raise ValueError(f"rows of shape {split.images.shape[1:]} are not pictures")
        return first.transform
    height, width, channels = split.images.shape[1:]
    return ImageTransform(
        (height, width),
        (0.0,) * channels,
        (1.0,) * channels,
        affine=AFFINE,
        penalised=("colour", "affine") if channels == 3 else ("affine",),
    )


def main() -> int:
    """Audits every encoder, prints tables, and writes the files."""
    found = encoders(_WORKDIR.value, _FUNCTION.value, _TRUST.value)
    first = next(iter(found.values()))
    split = pictures(first)
    transform = transform_for(split, first)
    labels = split.labels if split.labels is not None and split.labels.ndim == 1 else None
    folder = pathlib.Path(_OUTPUT.value)
    reports: list[Report] = []
    for name, encoder in found.items():
        report = audit(
            encoder,
            split.array,
            transform,
            labels,
            quick=_QUICK.value,
            name=name,
            progress=functools.partial(print, " ", name, flush=True),
        )
        reports.append(report)
        print(f"\n{report}\n", flush=True)
        report.to_json(folder / f"{pathlib.Path(name).name.replace(':', '.')}.json")
    if len(reports) > 1:
        print(beside(reports))
    write_atomically(folder / "report.html", page(reports))
    print(f"the page is {folder / 'report.html'}")
    return 0


def start() -> None:
    """Runs the command."""
    cli.run(main)


if __name__ == "__main__":
    start()
