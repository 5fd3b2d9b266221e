"""Make docs/results/word-alignment.md and repetition.md from the studies of these names.

    evenmatch study alignment --out FOLDER
    evenmatch study repetition --pairs 200 --out FOLDER
    python -m tools.pages.alignments [alignment] [repetition] [--out FOLDER]

Runs the studies that are named in a folder each below FOLDER, where they are resumed, and writes
their reports to results/alignments. Then writes the pages of all reports there, and
docs/results/word-alignment.svg, the figure of the README.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenmatch.reports.study_page import StudyReport
from evenmatch.studies.experiment import make_study_folder
from evenmatch.studies.repetition import measure_attacks, repetition_report, repetition_rows
from evenmatch.studies.sentences import load_sentence_pairs
from evenmatch.studies.word_alignment import (
    DEV_FILE,
    TEST_FILES,
    measure_word_alignment,
    read_word_alignments,
)
from evenmatch.studies.word_alignment_report import word_alignment_report, word_alignment_rows
from tools.pages import PAGES, RESULTS
from tools.pages.markdown import table_lines

STORED = RESULTS / "alignments"
FIGURES = PAGES / "alignments"
PAIRS = 200
Run = tuple[StudyReport, list[dict[str, Any]]]
# The bars of the figure.
SHOWN_SOLVERS = {
    "greedy": "greedy (BERTScore)",
    "emd": "transport (emd)",
    "lsa": "one-to-one (lsa)",
    "mutual": "each other's best (mutual)",
    "partial": "partial one-to-one",
    "unbalanced": "unbalanced transport",
    "sinkhorn": "entropic transport",
}


def run_alignment(folder: Path) -> Run:
    """Word alignments on MultiMWA."""
    dev, tests = read_word_alignments(DEV_FILE), [read_word_alignments(n) for n in TEST_FILES]
    found = measure_word_alignment(dev, tests, folder)
    return word_alignment_report(found, dev, tests), word_alignment_rows(found)


def run_repetition(folder: Path) -> Run:
    """Damaged texts of WMT17."""
    found = measure_attacks(load_sentence_pairs("", PAIRS, 0), folder)
    return repetition_report(found), repetition_rows(found)


STUDIES: Mapping[str, tuple[str, str, Callable[[Path], Run]]] = {
    "alignment": ("word-alignment", "evenmatch study alignment", run_alignment),
    "repetition": ("repetition", f"evenmatch study repetition --pairs {PAIRS}", run_repetition),
}


def main() -> None:
    """Run the studies that are named, then write all pages."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("study", nargs="*", choices=[*STUDIES, []])
    parser.add_argument("--out", type=Path, default=Path("alignment-studies"), metavar="FOLDER")
    given = parser.parse_args()
    STORED.mkdir(parents=True, exist_ok=True)
    for name in given.study:
        report, rows = STUDIES[name][2](make_study_folder(given.out / name))
        document: dict[str, Any] = {"command": STUDIES[name][1], **report.document, "rows": rows}
        document["figures"].pop("links", None)  # it shows sentences of the data set
        (STORED / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    for name, (page, _, _) in STUDIES.items():
        if (path := STORED / f"{name}.json").exists():
            lines = page_lines(page, json.loads(path.read_text("utf-8")))
            (PAGES / f"{page}.md").write_text("\n".join(lines) + "\n", "utf-8")
    document = json.loads((STORED / "alignment.json").read_text("utf-8"))
    (PAGES / "word-alignment.svg").write_text(draw_bars(document["rows"]), "utf-8")


def draw_bars(rows: Sequence[Mapping[str, Any]]) -> str:
    """Draw a bar per solver: F1 without a threshold, with its interval, on a light or dark page."""
    data = TEST_FILES[0]
    own = {r["solver"]: r["f1"] for r in rows if (r["data"], r["rule"]) == (data, "plain")}
    height, left, low, high = 26, 200, 0.6, 0.85

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * 380

    bars = ""
    for number, (solver, label) in enumerate(SHOWN_SOLVERS.items()):
        f1, y = own[solver], 50 + height * number
        bars += (
            f'<text x="{left - 10}" y="{y + 13}" text-anchor="end">{label}</text>'
            f'<rect class="{"greedy" if solver == "greedy" else "bar"}" x="{left}" y="{y}" '
            f'width="{x(f1["value"]) - left:.1f}" height="18" rx="2"/>'
            f'<path class="line" d="M{x(f1["low"]):.1f} {y + 9}H{x(f1["high"]):.1f}"/>'
            f'<text x="{x(f1["high"]) + 8:.1f}" y="{y + 13}">{f1["value"]:.3f}</text>'
        )
    bottom = 50 + height * len(SHOWN_SOLVERS)
    title = "F1 against word alignments drawn by people"
    note = f"MTRef test, 800 sentence pairs; bars begin at {low}; lines: 95 % intervals"
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" width="640" '
        f'height="{bottom + 30}" viewBox="0 0 640 {bottom + 30}" '
        'font-family="system-ui, sans-serif" font-size="13">'
        f"<title>{title}</title><style>text{{fill:#212529}}.quiet{{fill:#5c636a}}"
        ".bar{fill:#6ea8dc}.greedy{fill:#f08c5a}.line{stroke:#212529;stroke-width:2}"
        "@media (prefers-color-scheme:dark){text{fill:#e9ecef}.quiet{fill:#adb5bd}"
        ".bar{fill:#2f6fb0}.greedy{fill:#c2551d}.line{stroke:#e9ecef}}</style>"
        f'<text x="16" y="24" font-size="15" font-weight="600">{title}</text>{bars}'
        f'<text class="quiet" x="16" y="{bottom + 20}" font-size="12">{note}</text></svg>\n'
    )


def page_lines(page: str, document: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a page; figures are written beside it."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    yield from (f"# {document['title']}", "", f"    {document['command']}", "")
    yield from (f"- {each[0].upper()}{each[1:]}." for each in document["notes"])
    yield from ("", "## Findings", "")
    yield from (f"- {each[0].upper()}{each[1:]}." for each in document["findings"])
    for name, table in document["tables"].items():
        yield from ("", f"## {name.replace('-', ', ').capitalize()}", "", *table_lines(table))
    yield from ("", "## Figures", "")
    for name, figure in document["figures"].items():
        (FIGURES / f"{page}-{name}.svg").write_text(figure, "utf-8")
        yield from (f"![{name.replace('-', ', ')}](alignments/{page}-{name}.svg)", "")
    yield "This page is written by `python -m tools.pages.alignments`."


if __name__ == "__main__":
    main()
