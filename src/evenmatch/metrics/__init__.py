"""Metrics by name, each built from parts or wrapping a model or library.

In: the options of a metric. Out: a metric that `evenmatch.score` accepts.
Begin with `presets.py`, the table of metrics by name: BERTScore, F_DISC, F_CONT and LiSAScore are
combinations of parts. The combination itself, `AlignMetric`, is in `scoring/metric.py`.
"""
