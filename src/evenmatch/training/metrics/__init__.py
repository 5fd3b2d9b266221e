"""Metrics trained on human ratings or on the scores of another metric.

In: rated pairs, or a teacher metric. Out: a folder that `evenmatch.score` accepts as a metric.
Begin with `fit.py`, then `distil.py`; the other modules are the models they train.
"""
