"""The alignment viewer: one alignment as HTML or SVG.

In: an `Aligned` pair of texts. Out: a page, a notebook cell or a part of a report.
Start with `page.py`; `links.py` draws units and their links, `trees.py` pairs of parse trees.
"""
