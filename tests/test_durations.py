import pytest

from invclr_jax.durations import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (9000, "2.5 h")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
