"""Distributed scoring: large inputs split into shards and scored by worker processes.

In: files or pairs, and metrics. Out: the same scores as one process, in order; runs resume.
Begin with `run.py`, then `driver.py`; `pool.py` keeps the workers: processes or Ray actors.
"""
