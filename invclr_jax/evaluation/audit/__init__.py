"""A report card of any encoder: how invariant it is, to what, and by whose measure.

One measure, or one family of them, is one file. `docs/measures.md` says which paper defines which.
"""
