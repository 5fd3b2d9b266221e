"""Scoring: from parts and pairs of texts to scores.

In: metrics and pairs. Out: `Scores`, one score per pair, in input order.
Begin with `metric.py` (a metric as a chain of five parts), then `engine.py`, which scores many
metrics in one pass over the texts. `reducers.py` turns an alignment into a score, and
`metric_contract.py` checks the properties that every metric must have.
"""
