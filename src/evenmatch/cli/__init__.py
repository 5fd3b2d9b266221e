"""The command line: one function per command, each a thin layer over the Python API.

In: arguments and files. Out: results on standard output, messages on standard error.
Begin with `main.py`: its table `COMMANDS` gives the module and the function of each command.
`options.py` and `console.py` hold what commands share.
"""
