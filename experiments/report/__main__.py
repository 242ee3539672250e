"""One page with every result: plots, tables, the paper's numbers, pictures of the data.

python -m experiments.report --results=experiments/results --out=report.html
"""

import pathlib

from absl import flags

from experiments.report.sections import build
from invclr_jax import cli

_RESULTS = flags.DEFINE_string("results", "experiments/results", "Folder of the records.")
_OUT = flags.DEFINE_string("out", "report.html", "The page.")


def main() -> int:
    """Writes the page."""
    out = pathlib.Path(_OUT.value)
    build(pathlib.Path(_RESULTS.value)).write(out)
    print(f"open {out} in a browser ({out.stat().st_size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    cli.run(main)
