"""C++ for CPUs, compiled by setup.py where there is a compiler; see `library`."""
