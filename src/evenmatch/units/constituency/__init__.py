"""Constituency trees derived from dependency parses.

In: a dependency `Parse`. Out: a `Parse` whose trees are phrases with Penn Treebank labels.
Begin with `converter.py`; `bracketing.py` measures agreement with a treebank.
"""
