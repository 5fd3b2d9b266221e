"""Evaluation: metrics compared with human ratings, and systems compared by metrics.

In: metrics, and rated or unrated outputs of systems. Out: tables with intervals and tests.
Begin with `agreement.py` (`correlate`) and `compare.py`; `calibrate.py` fits metrics to ratings.
"""
