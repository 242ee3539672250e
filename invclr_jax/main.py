"""`invclr train`, `invclr evaluate` and so on: the command lines under one name."""

import importlib
import sys
from collections.abc import Sequence

COMMANDS = {
    "train": "trains an encoder",
    "evaluate": "measures a checkpoint by the paper's protocols",
    "audit": "measures how invariant any encoder is, and to what",
    "adapt": "makes an encoder more invariant without training it again",
    "import": "turns weights trained with PyTorch into a run's folder",
    "export": "writes an encoder for PyTorch, or as a program that needs JAX alone",
    "extract": "writes the features of your images",
    "plan": "tells what a run needs on a TPU slice or GPUs, without them",
    "data": "shows what a data set holds",
    "gallery": "draws what the transformations do",
}
MODULES = {"data": "invclr_jax.show_data", "import": "invclr_jax.import_weights"}
"""Commands whose module has another name."""


def usage() -> str:
    """The commands, a line each."""
    lines = [f"  invclr {name:<10} {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        ["usage: invclr COMMAND [--flags]", *lines, "invclr COMMAND --help shows its flags"]
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command that the first word names with the rest of the words."""
    words = list(sys.argv if argv is None else argv)
    if len(words) < 2 or words[1] in ("-h", "--help", "help"):
        print(usage())
        raise SystemExit(0 if len(words) > 1 else 2)
    name = words[1]
    if name not in COMMANDS:
        print(f"error: no command {name!r}\n{usage()}", file=sys.stderr)
        raise SystemExit(2)
    # Only the chosen command is imported: each defines flags of its own.
    command = importlib.import_module(MODULES.get(name, f"invclr_jax.{name}"))
    sys.argv = [f"invclr {name}", *words[2:]]
    command.start()


if __name__ == "__main__":
    main()
