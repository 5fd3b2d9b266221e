"""Reports: any result as one self-contained HTML page.

In: a result object or its JSON document. Out: an HTML page, or SVG and PNG figures.
Begin with `results.py`: `write_report` picks the page for a result; `plots.py` draws the figures.
"""
