"""The catalogue of public data sets: listing, download, conversion and verification.

In: the name of a data set. Out: its files in the data folder, checked against their hashes.
Start with `catalogue.py`, then `fetch.py`; `convert.py` converts upstream formats to ours.
"""
