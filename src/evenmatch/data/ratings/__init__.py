"""Human ratings of system outputs.

In: a folder, a table or the name of a public set. Out: a `RatedSet`, systems × segments.
Start with `reading.py`, which reads a user's own table too; `public_sets.py` reads public sets.
"""
