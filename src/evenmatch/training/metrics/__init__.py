"""Metrics trained on ratings or on another metric.

In: rated pairs, or a teacher metric. Out: a folder that `evenmatch.score` accepts as a metric.
Begin with `fit.py`, then `distil.py`; the other modules are the models they train.
"""
