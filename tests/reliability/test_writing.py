"""Where writing fails, a sentence says so; a damaged checkpoint is written anew."""

import contextlib
import errno
import sys
import threading

import jax
import numpy as np
import pytest

from invclr_jax import cli
from invclr_jax.checkpoint import Checkpoints
from invclr_jax.training import loop
from tests.tiny_run import tiny_config


def save(checkpoints, step):
    tree = {"w": np.full(500, step, np.float32)}
    checkpoints.save(step, tree, {"step": np.int32(step)}, tiny_config().to_dict())


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)
def test_a_damaged_checkpoint_is_replaced_when_training_comes_to_its_step(tmp_path):
    with contextlib.closing(Checkpoints(tmp_path, keep=3)) as checkpoints:
        save(checkpoints, 1)
        save(checkpoints, 2)
    (tmp_path / "checkpoints" / "2" / "encoder" / "manifest.ocdbt").write_bytes(b"")
    template = {"encoder": {"w": np.zeros(500, np.float32)}}
    with contextlib.closing(Checkpoints(tmp_path, keep=3)) as checkpoints:
        assert checkpoints.newest(template)[0] == 1
        save(checkpoints, 2)
        checkpoints.wait()
        step, parts = checkpoints.newest(template)
    assert step == 2
    np.testing.assert_array_equal(parts["encoder"]["w"], 2.0)


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (ValueError("RESOURCE_EXHAUSTED: x\ny [os_error_code='28']"), "No space left on device"),
        (OSError(errno.EROFS, "Read-only file system"), "Read-only file system"),
        (RuntimeError("something\nelse"), "something"),
    ],
)
def test_what_fails_in_writing_is_an_os_error(tmp_path, monkeypatch, raised, reason):
    with contextlib.closing(Checkpoints(tmp_path, keep=1)) as checkpoints:

        def fail(*args, **options):
            raise raised

        monkeypatch.setattr(checkpoints._manager, "save", fail)
        sentence = rf"^runs/a cannot be written to \(.*{reason}\): make room there"
        with pytest.raises(OSError, match=sentence), loop.writing_to("runs/a"):
            save(checkpoints, 1)


def test_a_lost_process_and_lack_of_memory_get_a_sentence(monkeypatch):
    lost = jax.errors.JaxRuntimeError("INTERNAL: Gloo all-reduce failed: Connection reset by peer")
    assert cli._sentence(lost) is None, "in one process this is a bug, which needs its traceback"
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    assert "the job lost a process" in cli._sentence(lost)
    full = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes")
    assert "set config.model.remat (GPUs and TPUs), lower config.batch_size" in cli._sentence(full)
    assert cli._sentence(TypeError("a bug")) is None


def test_errors_of_background_threads_are_shown_once_in_a_line(capsys):
    hooks = sys.unraisablehook, threading.excepthook
    with cli._background_in_short():
        for _ in range(2):
            thread = threading.Thread(target=lambda: 1 / 0)
            thread.start()
            thread.join()
    shown = capsys.readouterr().err
    assert shown == "in the background: ZeroDivisionError: division by zero\n"
    assert (sys.unraisablehook, threading.excepthook) == hooks
