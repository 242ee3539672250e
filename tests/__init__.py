"""Loaded first, so that the import hook finds the checker named in setup.cfg."""

from tests import typechecker as typechecker
