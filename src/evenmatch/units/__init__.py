"""Units: the pieces of a text that a metric aligns.

In: a text (str), or a parse of it. Out: `Units`, groups of words with character offsets.
Begin with `text.py` (words, sub-words, whole text); `subtrees.py` needs a parse, `keyphrases.py` a list.
"""
