"""One page with every result: `python -m experiments.report`."""
