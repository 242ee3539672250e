"""What the command lines share: help, one-sentence errors and the compilation cache."""

import contextlib
import logging
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

from absl import app, flags
from absl import logging as absl_logging

from invclr_jax import cpu

_CACHE = flags.DEFINE_string(
    "compilation_cache",
    "~/.cache/invclr_jax",
    "Folder that keeps compiled programs, so that a second start is quick; '' for none.",
)


def compilation_cache() -> pathlib.Path | None:
    """The folder that keeps compiled programs, if the user wants one."""
    return pathlib.Path(_CACHE.value).expanduser() if _CACHE.value else None


def define_trust() -> flags.FlagHolder:
    """The flag of commands that read a checkpoint."""
    return flags.DEFINE_list(
        "trust", [], "Packages outside invclr_jax whose classes the checkpoint may name."
    )


def define_job(module: str) -> Callable[[], None]:
    """The flags of a command that several processes run together, and how to join them.

    Args:
      module: of the command, whose help lists the flags.
    """
    distributed = flags.DEFINE_bool(
        "distributed", None, "Join the job that the cluster describes; by default if there is one."
    )
    coordinator = flags.DEFINE_string("coordinator", None, "host:port of the first process.")
    count = flags.DEFINE_integer(
        "num_processes", None, "Number of processes in the job.", lower_bound=1
    )
    number = flags.DEFINE_integer(
        "process_id", None, "Index of this process, from 0.", lower_bound=0
    )
    shown_by = sys.argv[0] if module == "__main__" else module  # as absl calls modules
    for flag in (distributed, coordinator, count, number):
        flags.FLAGS.register_key_flag_for_module(shown_by, flags.FLAGS[flag.name])

    def join() -> None:
        from invclr_jax import clusters

        given = coordinator.value, count.value, number.value
        clusters.join(*given, distributed=distributed.value)

    return join


def run(main: Callable[..., int | None], max_arguments: int = 0) -> None:
    """Runs a command's `main` after parsing flags; a user's mistake ends with a one-line message.

    Args:
      main: the command; what it returns is the exit code.
      max_arguments: how many words beside the flags it takes, as its arguments.
    """
    cpu.prepare()

    def guarded(argv):
        if len(argv) > 1 + max_arguments:
            wrong = argv[1 + max_arguments]
            raise app.UsageError(f"unexpected argument {wrong!r}: flags start with --")
        logging.getLogger("invclr_jax").setLevel(logging.INFO)
        if not flags.FLAGS["verbosity"].present:
            absl_logging.set_verbosity(absl_logging.FATAL)  # Orbax logs, then raises
        if cache := compilation_cache():
            import jax

            jax.config.update("jax_compilation_cache_dir", str(cache))
        verbose = absl_logging.get_verbosity() >= absl_logging.DEBUG
        with contextlib.nullcontext() if verbose else _background_in_short():
            try:
                return main(*argv[1:])
            except Exception as error:
                sentence = _sentence(error)
                if sentence is None or verbose:
                    raise
                _leave(sentence)

    app.run(guarded, flags_parser=lambda argv: _parse(argv, main.__module__))


def _help(module: str) -> str:
    """What a command does, and its flags."""
    own = flags.FLAGS.get_key_flags_for_module(sys.modules[module])
    lines = [f"  --{flag.name}: {flag.help}" for flag in sorted(own, key=lambda flag: flag.name)]
    return "\n".join([(sys.modules[module].__doc__ or "").strip(), "", "Flags:", *lines])


def _parse(argv: list[str], module: str) -> list[str]:
    """Parses flags; help exits with code 0, and unknown config keys are named."""
    from invclr_jax import config as configuration

    argv = [argv[0], *map(_found, argv[1:])]
    if {"-h", "-help", "--help", "--helpshort"} & set(argv[1:]):
        print(_help(module))
        raise SystemExit(0)
    try:
        return app.parse_flags_with_usage(argv)
    except (AttributeError, KeyError):  # what ml_collections raises then
        known = configuration.flatten(configuration.default_config())
        given = [word.removeprefix("--config.") for word in argv if word.startswith("--config.")]
        for key in (word.partition("=")[0] for word in given):
            if key not in known and ".options." not in key:
                _leave(f"unknown config key {key!r}: {configuration.nearest(key, known)}")
        raise


def _found(word: str) -> str:
    """`--config=cifar10` with the file of the shipped config; other words as they are."""
    flag, _, value = word.partition("=")
    name, colon, argument = value.partition(":")
    if flag.lstrip("-") != "config" or not name or "/" in name or name.endswith(".py"):
        return word
    from invclr_jax.config import named

    try:
        return f"{flag}={named.find(name)}{colon}{argument}"
    except ValueError as error:
        _leave(str(error))


def _sentence(error: Exception) -> str | None:
    """What to tell the user; None for what is not a user error."""
    import jax

    if isinstance(error, ValueError | OSError | FloatingPointError):
        return str(error)
    if not isinstance(error, jax.errors.JaxRuntimeError):
        return None
    if "RESOURCE_EXHAUSTED" in str(error):
        return (
            f"out of memory ({error}): set config.model.remat (GPUs and TPUs), lower "
            "config.batch_size, or raise config.chunks"
        )
    if jax.process_count() > 1:
        return (
            f"the job lost a process ({error}): start all of them again, they resume from the "
            "newest checkpoint"
        )
    return None


def _leave(sentence: str) -> NoReturn:
    """Prints a message and ends the process with code 1.

    At once: exit handlers would write to the disk that is full, or wait for processes of the job
    that are gone.
    """
    print(f"error: {sentence}\n(--verbosity=1 shows where)", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(1)


@contextlib.contextmanager
def _background_in_short() -> Iterator[None]:
    """Shows what fails in the background in one line, and each failure once.

    Most of it is raised again in the main thread with a message; a traceback would hide that.
    """
    hooks = sys.unraisablehook, threading.excepthook
    seen: set[str] = set()

    def show(failure) -> None:
        value = failure.exc_value
        line = (str(value).strip().splitlines() or [""])[0][:200]
        text = f"in the background: {failure.exc_type.__name__}: {line}"
        if text not in seen:
            seen.add(text)
            print(text, file=sys.stderr, flush=True)

    sys.unraisablehook = threading.excepthook = show
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = hooks


def whole_numbers(flag: str, values: list[str]) -> tuple[int, ...]:
    """Numbers of a comma separated flag, ascending and without repetition."""
    try:
        return tuple(sorted({int(value) for value in values}))
    except ValueError:
        raise ValueError(
            f"--{flag}={','.join(values)}: expected integers, such as 1,10,100"
        ) from None
