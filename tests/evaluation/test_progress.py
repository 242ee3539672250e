"""The progress bar: on a terminal only, and full at the end of every pass."""

import sys

import numpy as np
import pytest

from invclr_jax.evaluation import progress


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)


def test_nothing_is_shown_elsewhere(capsys):
    with progress.bar("features", 3) as update:
        assert update is None
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_title_and_rows(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress.bar("features", 8) as update:
        update(8)
    shown = capsys.readouterr().err
    assert "features" in shown
    assert "8/8" in shown
    with progress.bar("features", 8, shown=False) as update:
        assert update is None


def test_every_row_is_counted_once():
    from invclr_jax.evaluation.features import in_batches

    counted = []
    rows = in_batches(lambda x, index: x + index[:, None], np.zeros((7, 2)), 3, counted.append)
    assert counted == [3, 3, 1]
    np.testing.assert_array_equal(rows[:, 0], np.arange(7))
