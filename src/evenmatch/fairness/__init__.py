"""Fairness: social bias in metrics, measured and reduced.

In: a metric, and pairs that differ in a social attribute. Out: an audit, a debiasing adapter, or a
metric that averages over groups.
Begin with `audit.py`, then `debias.py`; `counterfactuals.py` makes the training pairs.
"""
