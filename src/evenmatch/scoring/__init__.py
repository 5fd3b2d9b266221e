"""Scoring: from parts and pairs of texts to scores.

In: metrics and pairs. Out: `Scores`, one score per pair, in input order.
Begin with `metric.py` (five parts in a row), then `engine.py`, which runs many metrics over one pass.
"""
