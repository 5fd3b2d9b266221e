"""Rewards: metrics as numbers between 0 and 1 for reinforcement learning.

In: a metric's name or spec, and responses with references. Out: one reward per response.
Begin with `rewards.py`; `terms.py` is the expression tree behind arithmetic on rewards.
"""
