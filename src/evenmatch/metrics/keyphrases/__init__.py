"""Keyphrase metrics: FG, FB, F1@k and F1@M.

In: lists of predicted and reference phrases. Out: a score per document, and per corpus.
Begin with `keyphrase_metric.py`, then `phrase_lists.py` for normalisation and duplicates.
"""
