"""Parsers: dependency and constituency parses of a text.

In: texts. Out: one `Parse` per text, in order. `cache.py` stores parses between runs.
Begin with `spacy.py`; `benepar.py` and `files.py` are other sources of parses.
"""
