"""The catalogue of public data sets: listed, fetched, converted and verified.

In: the name of a data set. Out: its files in the data folder, checked against their hashes.
Begin with `catalogue.py`, then `fetch.py`; `convert.py` turns upstream formats into ours.
"""
