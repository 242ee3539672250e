"""Builds the documentation: `make docs`. Everything that can be generated is generated here."""
