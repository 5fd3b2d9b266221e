"""Similarity: every candidate unit compared with every reference unit.

In: two `Embedded` texts. Out: a matrix, candidate units in rows, higher for closer units.
Begin with `vectors.py` (cosine and other vector similarities); `strings.py` compares words.
"""
