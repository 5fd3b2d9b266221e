"""Studies: replications of published experiments, resumable, run from the command line.

In: data sets and an output folder. Out: result files, tables, figures and a report page.
Begin with `experiment.py`, which all of them share.
"""
