"""The run-time type checker that the tests switch on for the whole package."""

from beartype import BeartypeConf, beartype

# An int passes where a float is asked for, as in PEP 484.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
