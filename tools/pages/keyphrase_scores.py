"""Write docs/results/keyphrase-scores.md: published keyphrase systems by every score, and FB.

    evenmatch keyphrases kp-predictions --all --mean-seeds --json > FILE
    python -m benchmarks.training.phrase_scorer --folder phrase-scorer
    python -m tools.pages.keyphrase_scores [FILE ...]

The rows of each file named are stored in results/benchmarks, from where the page is made.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.pages import PAGES, RESULTS
from tools.pages.markdown import table_lines

ROWS = RESULTS / "benchmarks" / "keyphrase-scores.json"
SCORER = RESULTS / "benchmarks" / "phrase-scorer.json"
PAGE = PAGES / "keyphrase-scores.md"
COLUMNS = ("present", "absent", "all")
HEAD = """# All scores of published keyphrase systems

The public predictions `kp-predictions` by every score of `evenmatch keyphrases --all`, which are
defined in [score keyphrases](../how-to/score-keyphrases.md#all-scores). Each cell is the score of
present, absent and all phrases. catSeqTG-2RF1 is the model of Chan et al. (2019), as the mean of
its seeds; humaneval-mle, humaneval-rl, Semeval-Catseq and Semeval-GAN are the predictions published
with Swaminathan et al. (2020). The gold phrases of SemEval are stems, which `sem_f1` compares as
they are. Intervals, precision and recall are in `results/benchmarks/keyphrase-scores.json`.

    evenmatch keyphrases kp-predictions --all --mean-seeds --json > scores.json
    python -m tools.pages.keyphrase_scores scores.json
"""
FB_HEAD = """## FB's phrase scorer

    python -m benchmarks.training.phrase_scorer

The scorer is trained with degenerate phrases, as described in [score
keyphrases](../how-to/score-keyphrases.md#synonyms), and compared with FG's phrase similarity on
pairs of phrases that it was not trained on. The guard gives phrases with equal stems 1 and limits
the score of long and repetitive ones, never below FG's.
"""


def page(rows: Sequence[Mapping[str, Any]], scorer: Mapping[str, Any]) -> str:
    """Return the page."""
    return "\n".join([HEAD, *_score_lines(rows), FB_HEAD, *_scorer_lines(scorer)]) + "\n"


def _score_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for data in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == data and "-seed" not in row["prediction"]]
        systems = list(dict.fromkeys(row["prediction"] for row in own))
        cells = {(row["metric"], row["prediction"]): row for row in own}
        yield f"## {data.removeprefix('kp-predictions/')}, {own[0]['documents']} documents\n"
        table = [["score", *systems]]
        for metric in dict.fromkeys(row["metric"] for row in own):
            found = [cells[metric, system] for system in systems]
            table.append([f"`{metric}`", *(_cell(row) for row in found)])
        yield from table_lines(table)
        yield ""


def _cell(row: Mapping[str, Any]) -> str:
    return " · ".join(f"{row[column]:.3f}" for column in COLUMNS)


def _scorer_lines(scorer: Mapping[str, Any]) -> Iterator[str]:
    for name, value in scorer["facts"].items():
        yield f"- {name}: {value}"
    yield ""
    tests = scorer["agreement with FG"]
    ways = [row["compared by"] for row in next(iter(tests.values()))]
    table = [["pairs", *(f"{way}: Pearson, mean error" for way in ways[1:])]]
    for what, rows in tests.items():
        by_way = {row.get("compared by"): row for row in rows}
        if set(ways) <= set(by_way):
            cells = [f"{by_way[w]['Pearson']}, {by_way[w]['mean error']}" for w in ways[1:]]
            table.append([what, *cells])
    yield from table_lines(table)


def main() -> None:
    """Store the rows of the files named, and write the page."""
    if len(sys.argv) > 1:
        rows = [
            row
            for name in sys.argv[1:]
            for row in json.loads(Path(name).read_text("utf-8"))["rows"]
        ]
        lines = ",\n".join(json.dumps(_rounded(row)) for row in rows)
        ROWS.write_text(f'{{"rows": [\n{lines}\n]}}\n', "utf-8")
    rows = json.loads(ROWS.read_text("utf-8"))["rows"]
    PAGE.write_text(page(rows, json.loads(SCORER.read_text("utf-8"))), "utf-8")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
