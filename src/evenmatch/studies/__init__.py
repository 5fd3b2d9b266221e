"""Studies: experiments, most of them from papers; resumable, run from the command line.

In: data sets and an output folder. Out: result files, tables, figures and a report page.
Begin with `experiment.py` (stored results, claims); `sentences.py` loads sentence pairs. A study
measures, then makes a `StudyReport`. The commands are in `cli/study.py`.
"""
