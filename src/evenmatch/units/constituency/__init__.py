"""Constituency trees derived from dependency parses.

In: a dependency `Parse`. Out: a `Parse` with phrase trees that have Penn Treebank labels.
Begin with `converter.py`.
"""
