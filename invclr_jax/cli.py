"""What the command lines share: one-sentence errors and the compilation cache."""

import logging
import pathlib
import sys
from collections.abc import Callable

import jax
from absl import app, flags
from absl import logging as absl_logging

_CACHE = flags.DEFINE_string(
    "compilation_cache",
    "~/.cache/invclr_jax",
    "Folder that keeps compiled programs, so that a second start is quick; '' for none.",
)


def run(main: Callable[..., int | None], max_arguments: int = 0) -> None:
    """Runs a command's `main` after parsing flags; a user's mistake ends in a sentence.

    Args:
      main: the command; what it returns is the exit code.
      max_arguments: how many words beside the flags it takes, as its arguments.
    """

    def guarded(argv):
        if len(argv) > 1 + max_arguments:
            wrong = argv[1 + max_arguments]
            raise app.UsageError(f"unexpected argument {wrong!r}: flags start with --")
        logging.getLogger("invclr_jax").setLevel(logging.INFO)
        if not flags.FLAGS["verbosity"].present:
            absl_logging.set_verbosity(absl_logging.ERROR)  # Orbax is talkative
        if _CACHE.value:
            cache = pathlib.Path(_CACHE.value).expanduser()
            jax.config.update("jax_compilation_cache_dir", str(cache))
        try:
            return main(*argv[1:])
        except (ValueError, OSError, FloatingPointError) as error:
            if absl_logging.get_verbosity() >= absl_logging.DEBUG:
                raise
            print(f"error: {error}\n(--verbosity=1 shows where)", file=sys.stderr)
            return 1

    app.run(guarded)


def whole_numbers(flag: str, values: list[str]) -> tuple[int, ...]:
    """Numbers of a comma separated flag, ascending and without repetition."""
    try:
        return tuple(sorted({int(value) for value in values}))
    except ValueError:
        raise ValueError(f"--{flag}={','.join(values)}: give whole numbers, 1,10,100") from None
