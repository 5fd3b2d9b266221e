"""Units: the parts of a text that a metric aligns.

In: a text (str), or a parse of it. Out: `Units`, groups of words with character offsets.
Begin with `text.py` (words, sub-words, whole text); `keyphrases.py` splits a list of phrases, and
`subtrees.py` takes units from a parse.
"""
