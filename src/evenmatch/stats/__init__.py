"""Statistics: correlations, intervals and significance tests.

In: arrays of metric scores and human ratings. Out: coefficients, intervals and p-values.
Start with `levels.py` (what is correlated with what), then `bootstrap.py` and `permutation.py`.
"""
