"""The tables of docs/accelerators.md, from the records of `experiments.accelerators`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from invclr_jax.planning.chips import CHIPS
from invclr_jax.planning.report import GIB, TERA

Record = Mapping[str, Any]

_PLACE = re.compile(r"(<!-- (plans|chips) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(text: str, records: Sequence[Record], names: Sequence[str]) -> str:
    """The page with its tables regenerated.

    Args:
      text: Markdown with the places `<!-- plans -->` and `<!-- chips -->`, each up to an `end`.
      records: plans.
      names: configs that should each have one for a TPU slice.
    """
    made = {"plans": _plans(records, names), "chips": _chips()}
    return _PLACE.sub(lambda match: match[1] + "\n" + made[match[2]] + "\n" + match[3], text)


def _plans(records: Sequence[Record], names: Sequence[str]) -> str:
    parts = []
    for topology in sorted({record["topology"] for record in records}):
        chosen = [record for record in records if record["topology"] == topology]
        parts.append(_table(topology, chosen))
    return "".join(parts) + _missing(records, names)


def _chips() -> str:
    head = "| chip | memory, GB | GB/s | links, GB/s | bfloat16 | float32 | source |\n"
    return head + "|---" * 7 + "|\n" + "".join(map(_chip, CHIPS.values()))


def _table(topology: str, records: Sequence[Record]) -> str:
    head = (
        f"## {topology}\n\n"
        "| config | encoder, batch | step | effort "
        "| memory per device, GiB: arguments, temporaries, total | TFLOP | GB "
        "| all-reduce | all-gather | roofline, ms (limit) | images/s | hours | commit |\n"
        + "|---" * 13
        + "|\n"
    )
    rows = [_row(record, name) for record in records for name in record["steps"]]
    return head + "\n".join(rows) + "\n\n"


def _row(record: Record, name: str) -> str:
    step = record["steps"][name]
    start = f"| {record['config']} | {record['encoder']}, {record['batch_size']} | {name} |"
    if "refusal" in step:
        return f"{start} | does not fit |" + " |" * 8
    memory = ", ".join(f"{step[part] / GIB:.2f}" for part in ("arguments", "temporaries", "memory"))
    roofline = step["roofline"]
    hours = record["hours"]
    last = name == list(record["steps"])[-1]
    cells = [
        step["effort"],
        f"{memory} of {record['memory'] / GIB:.1f}",
        f"{step['flops'] / TERA:.3f}",
        f"{step['bytes'] / 1e9:.1f}",
        *(_sent(step, kind) for kind in ("all-reduce", "all-gather")),
        f"{roofline['seconds'] * 1e3:.1f} ({roofline['limit']})",
        f"{step['images_per_second']:,.0f}",
        f"{hours:.1f}" if last and hours is not None else "",
        record["commit"],
    ]
    return start + " " + " | ".join(cells) + " |"


def _sent(step: Record, kind: str) -> str:
    found = [c for c in step["collectives"] if c["kind"] == kind]
    return f"{found[0]['count']}: {found[0]['bytes'] / 1e6:.2f} MB" if found else "none"


def _missing(records: Sequence[Record], names: Sequence[str]) -> str:
    compiled = {record["config"] for record in records if record["compiler"] == "tpu"}
    missing = [name for name in names if name not in compiled]
    if not missing:
        return ""
    return (
        f"Not compiled for a TPU slice yet: {', '.join(missing)}. "
        "`python -m experiments.accelerators --runs=paper,methods,imagenet` resumes where it "
        "stopped.\n"
    )


def _chip(chip) -> str:
    peaks = " / ".join(f"{peak / TERA:.4g}" for peak in chip.float32.values())
    return (
        f"| {chip.name} | {chip.memory / 1e9:.4g} | {chip.bandwidth / 1e9:.4g} | "
        f"{chip.link / 1e9:.4g} | {chip.bfloat16 / TERA:.4g} | {peaks} | {chip.source} |\n"
    )
