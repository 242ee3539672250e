"""Full disks and folders without write permission."""

import contextlib
import hashlib
import os
import pathlib
import shutil
import subprocess
from collections.abc import Callable, Iterator

from experiments.reliability import tiny

KEPT = 12
"""Step of the newest checkpoint when the fault comes."""

Fault = Callable[[pathlib.Path], contextlib.AbstractContextManager[list[str]]]


def disk(folder: pathlib.Path) -> dict:
    """Resumes a run under each fault, and once more without it.

    The faulty start must end with code 1 and an error message, without a traceback; earlier
    checkpoints must be unchanged; the next start must end with the bits of an undisturbed run.
    """
    source = folder / "kept"
    expected = tiny.finish(source, checkpoint__keep=100)
    figures: dict = {"tried": 0, "survived": 0, "lost": 0, "faults": {}}
    for name, fault in FAULTS.items():
        workdir = folder / name.replace(" ", "_")
        if fault is full and not _mounted(workdir):
            continue
        tiny.rewound(source, workdir, KEPT)
        try:
            outcome = "survived" if _stops_and_goes_on(workdir, fault, expected) else "lost"
        finally:
            if fault is full:
                subprocess.run(["umount", workdir], check=True)
        figures["tried"] += 1
        figures[outcome] += 1
        figures["faults"][name] = outcome
    return figures


def _stops_and_goes_on(workdir: pathlib.Path, fault: Fault, expected: tiny.Arrays) -> bool:
    before = _digests(workdir)
    with fault(workdir) as prefix:
        job = tiny.start(workdir, before=prefix, checkpoint__keep=100)
        code, said = job.code(), job.said()
    stopped = code == 1 and "cannot be written to" in said and "Traceback" not in said
    untouched = {name: _digests(workdir).get(name) for name in before} == before
    return stopped and untouched and tiny.ends_like(expected, workdir, checkpoint__keep=100)


def _digests(workdir: pathlib.Path) -> dict[str, str]:
    """A digest of every file of the checkpoints, which nothing may change."""
    files = (path for path in (workdir / "checkpoints").rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _mounted(place: pathlib.Path) -> bool:
    """Tries to mount a small file system on a folder, which takes an administrator."""
    place.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(place)]
    return shutil.which("mount") is not None and not subprocess.run(command).returncode


@contextlib.contextmanager
def read_only(workdir: pathlib.Path) -> Iterator[list[str]]:
    """Removes write permission from every folder and file."""
    everything = [workdir, *workdir.rglob("*")]
    for path in everything:
        path.chmod(path.stat().st_mode & ~0o222)
    try:  # an administrator may write anyway, unless this privilege is dropped
        yield ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
    finally:
        for path in everything:
            path.chmod(path.stat().st_mode | 0o200)


@contextlib.contextmanager
def size_limit(workdir: pathlib.Path) -> Iterator[list[str]]:
    """Lets no file grow beyond what the configuration needs: the metrics and arrays do not fit."""
    yield ["prlimit", f"--fsize={(workdir / 'config.json').stat().st_size + 100}"]


@contextlib.contextmanager
def full(workdir: pathlib.Path) -> Iterator[list[str]]:
    """Leaves room for one checkpoint and a half on the file system of the workdir."""
    sizes = [path.stat().st_size for path in (workdir / "checkpoints" / str(KEPT)).rglob("*")]
    ballast = workdir / "ballast"
    ballast.write_bytes(b"0" * (shutil.disk_usage(workdir).free - 3 * sum(sizes) // 2))
    try:
        yield []
    finally:
        ballast.unlink()


FAULTS: dict[str, Fault] = {
    "read-only workdir": read_only,
    "file size limit": size_limit,
    "full disk": full,
}
