"""Data: readers of files and public data sets.

In: paths, `-` for standard input, or names of public sets. Out: pairs, ratings, documents, graphs.
Start with `pairs.py`; `files.py` holds the file formats, `catalogue/` the public data sets.
"""
