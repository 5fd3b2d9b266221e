"""Data: readers of files and public data sets, writers of scores and tables.

In: paths, `-` for standard input, or names of public sets. Out: pairs, ratings, documents, graphs.
Begin with `pairs.py`; `files.py` holds the file formats, `catalogue/` the public data sets.
`scores.py` writes score files, and `tables.py` formats the tables that commands print.
"""
