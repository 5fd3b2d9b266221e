"""Alignment: which units are matched, given their similarities.

In: problems (similarity matrix, row masses, column masses). Out: one `Alignment` per problem.
Begin with `assignment.py`, then `transport.py` and `lisa.py` (approximate assignment).
"""
