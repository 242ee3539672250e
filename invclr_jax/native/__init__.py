"""C++ for CPUs, compiled by setup.py where there is a compiler; see `models/library.py`."""
