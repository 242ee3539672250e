"""docs/accelerators.md from the records of `experiments.accelerators`."""


def page(records, names):
    """Placeholder."""
    return ""
