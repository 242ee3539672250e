"""Our question: does a penalty fail because of what it does to the first steps?"""

from experiments.figures.comparison import comparison

FORMS = ("unit-0.01", "centred-0.01", "relative-0.01")


def names(scale: str) -> tuple[str, ...]:
    """Each first-order form from the first step on, and with lambda growing from zero."""
    del scale
    return ("none", *(name for form in FORMS for name in (form, f"ramp-{form}")))


EXPERIMENT = comparison(
    "When the penalty sets in",
    "At the start of training the first-order penalty is hundreds of times what it is later. With "
    "“ramp” lambda grows from zero in a straight line, over the first half of training at cpu "
    "scale. If a form fails only without it, the first steps are to blame.",
    "Spirograph: lambda from the first step on, or growing",
    names,
)
