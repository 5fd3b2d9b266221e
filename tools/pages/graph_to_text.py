"""Make docs/results/graph-to-text.md: the rewards of Jin & Gildea (2022), compared on small models.

    evenmatch study graphs --out FOLDER [--data amr]
    python -m tools.pages.graph_to_text [webnlg=FOLDER] [amr=FOLDER]

A folder named is where `evenmatch study graphs` was run; its results are copied to
results/graph_to_text, from where the page is made. Needs EVENMATCH_DATA.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from evenmatch.reports.study_page import StudyReport
from evenmatch.studies.experiment import REPLICATED, ArmScores, Experiment, format_interval
from evenmatch.studies.graph_to_text import (
    GRAPH_ARMS,
    GRAPH_CORPORA,
    GraphStudy,
    make_graph_design,
)
from evenmatch.studies.graph_to_text_report import (
    BLEU,
    check_graph_claims,
    describe_power,
    graph_report,
    score_graph_arms,
)
from tools.pages import PAGES, RESULTS
from tools.pages.markdown import claim_lines, table_lines

STORED = RESULTS / "graph_to_text"
SEEDS = (1, 2, 3)
LEARNT = "wmt_blend"  # learnt from ratings, as BLEURT is
NAMES = {"webnlg": "WebNLG v2, graphs of up to three triples", "amr": "AMR: the Little Prince"}
HEAD = """# Graph to text with rewards

Jin & Gildea (2022) fine-tune T5 on AMR with cross-entropy alone (XENT), or mixed with a reward:
BLEU (BL-R), or F_BERT, F_CONT and F_DISC over the model's own input embeddings. Here is the same
comparison with small models trained from nothing, since no pretrained T5 and no LDC corpus can be
had offline. Their table 1 on LDC2017T10, for the order of things:

| | BLEU | METEOR | chrF | BLEURT |
|---|--:|--:|--:|--:|
| XENT | 36.37 | 39.94 | 65.68 | 56.30 |
| BL-R | 37.06 | 40.30 | 66.19 | 56.08 |
| F_BERT | 36.06 | 39.85 | 65.23 | 55.45 |
| F_CONT | 36.91 | 40.34 | 66.07 | 55.96 |
| F_DISC | 37.65 | 40.61 | 66.55 | 57.01 |

The column *learnt* is `wmt_blend`, a metric trained on human ratings, as BLEURT is: 0 is the mean
of the outputs of WMT15 and WMT16, 100 is one standard deviation of the ratings better.
"""


def main(given: Sequence[str]) -> None:
    """Copy the results that are named, and write the page of all there are."""
    for name, folder in (each.split("=", 1) for each in given):
        for part in ("cells", "texts"):
            shutil.copytree(Path(folder) / part, STORED / name / part, dirs_exist_ok=True)
    there = [name for name in GRAPH_CORPORA if (STORED / name).is_dir()]
    lines = [HEAD, *(line for name in there for line in section(name))]
    if not there:
        lines.append("No run of it is kept here yet.\n")
    (PAGES / "graph-to-text.md").write_text("\n".join(lines), "utf-8")


def section(name: str) -> Iterator[str]:
    """The lines about one corpus."""
    design = make_graph_design(name, tuple(GRAPH_ARMS), SEEDS)
    runs = Experiment(GraphStudy(GRAPH_CORPORA[name](), design), STORED / name)
    found = score_graph_arms(runs, learnt=LEARNT)
    report = graph_report(runs, found)
    yield from (f"## {NAMES[name]}", "", f"    evenmatch study graphs --data {name}", "")
    yield from (f"- {note}" for note in report.notes)
    yield ""
    yield from [*table_lines(report.tables["scores"]), ""]
    yield from ["What each reward adds to cross-entropy alone:", ""]
    yield from [*table_lines(report.tables["differences"]), ""]
    yield from ["### What replicates and what does not", "", *replicates(found), ""]
    yield from [*drawn(name, report), "### Examples", ""]
    yield from [*table_lines(report.tables["examples"]), ""]


def replicates(found: Sequence[ArmScores]) -> Iterator[str]:
    """The paper's claims beside what is seen, and what could be seen at all."""
    claims = list(check_graph_claims(found))
    yield from claim_lines(claims, "test graphs")
    kept = [claim.statement for claim in claims if claim.results[BLEU][1] == REPLICATED]
    lost = [
        f"{c.statement} ({format_interval(c.results[BLEU][0], signed=True, times=100, places=2)})"
        for c in claims
    ]
    lost = [text for text, c in zip(lost, claims, strict=True) if c.results[BLEU][1] != REPLICATED]
    yield f"- By BLEU, this replicates: {'; '.join(kept) or 'nothing'}."
    yield f"- This does not: {'; '.join(lost) or 'nothing'}."
    for line in describe_power(found):
        yield f"- {line[0].upper()}{line[1:]}."


def drawn(name: str, report: StudyReport) -> Iterator[str]:
    """The figures, written beside the results."""
    yield from ["### Curves", ""]
    for figure in ("validation-bleu", "start"):
        (PAGES / "graphs" / name / f"{figure}.svg").write_text(report.figures[figure], "utf-8")
        yield f"![{figure.replace('-', ' ')}](graphs/{name}/{figure}.svg)"
        yield ""


if __name__ == "__main__":
    main(sys.argv[1:])
