"""Times for people."""


def duration(seconds: float) -> str:
    """A time in the largest unit of which there are at least two: `90 s`, `2 min`, `2.5 h`."""
    minutes, hours = seconds / 60, seconds / 3600
    if hours >= 2:
        return f"{hours:.1f} h"
    return f"{minutes:.0f} min" if minutes >= 2 else f"{seconds:.0f} s"
