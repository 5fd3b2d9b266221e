"""Human ratings of system outputs.

In: a folder, a table or the name of a public set. Out: a `RatedSet`, systems × segments.
Start with `reading.py`; `table.py` reads a user's own ratings, `wmt.py` the WMT layout.
"""
