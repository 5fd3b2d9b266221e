"""The command line: one function per command, each a thin layer over the Python API.

In: arguments and files. Out: results on standard output, messages on standard error.
Begin with `main.py`; `options.py` and `console.py` hold what commands share.
"""
