"""Data: files and public data sets read into records.

In: paths, `-` for standard input, or names of public sets. Out: pairs, ratings, documents, graphs.
Begin with `pairs.py`; `files.py` holds the file formats, `catalogue/` the public sets.
"""
