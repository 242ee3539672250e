"""Faults tried on real training processes: what survives, and what is lost.

Each family of faults is a function that takes a folder and returns its figures; `tried` is the
number of faults, `survived` those after which the run ended as if nothing had happened (or, if it
should stop, stopped with an error message and nothing lost), `lost` the others.
"""
