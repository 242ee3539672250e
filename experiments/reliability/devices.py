"""Runs that are resumed with another number of devices."""

import pathlib

from experiments.reliability import tiny

STEPS, EVERY = 20, 7
TOLERANCE = 1e-9
"""Allowed difference in float64, relative to the largest entry of each array."""


def devices(folder: pathlib.Path, counts: tuple[int, ...] = (8, 1, 4)) -> dict:
    """Resumes with other numbers of devices after 7 and 14 of 20 steps, in float64.

    The end must be that of one device throughout, to 1e-9. The same in float32 is measured too:
    sums over other groups of samples round differently, and training propagates the difference.
    """
    one = _finish(folder / "one_device", devices=1, float64=True)
    workdir = folder / "devices"
    _finish(workdir, devices=counts[0], float64=True)
    for i, count in enumerate(counts[1:], 1):
        workdir = tiny.rewound(workdir, folder / f"devices{i}", EVERY * i)
        _finish(workdir, devices=count, float64=True)
    difference = tiny.distance(one, tiny.final(workdir))
    single = [_finish(folder / f"float32_{n}", devices=n) for n in (1, counts[0])]
    survived = int(difference < TOLERANCE)
    return {
        "tried": 1,
        "survived": survived,
        "lost": 1 - survived,
        "counts": list(counts),
        "difference_float64": difference,
        "difference_float32": tiny.distance(*single),
    }


def _finish(workdir: pathlib.Path, **options) -> tiny.Arrays:
    return tiny.finish(
        workdir, num_steps=STEPS, checkpoint__every_steps=EVERY, checkpoint__keep=9, **options
    )
