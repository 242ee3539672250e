"""The progress bar: on a terminal only, and full at the end of every pass."""

import sys

from invclr_jax.evaluation import progress


def test_nothing_is_shown_elsewhere(capsys):
    with progress.bar("features", 3) as update:
        assert update is None
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_title_and_rows_and_is_left_clean(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress.bar("features", 8) as update:
        update(5)
        update.__self__.refresh()
        shown = capsys.readouterr().err
        assert "features" in shown
        assert "5/8" in shown
    assert not capsys.readouterr().err.strip()
    with progress.bar("features", 8, shown=False) as update:
        assert update is None
