"""Write docs/choose-a-metric.md: what to use for which job, with agreement numbers.

    python -m tools.pages.choose_a_metric

The numbers are those of results/agreement, which `python -m tools.pages.agreement` computes, and
for the blend on WMT17 those of results/metrics/blend.json, written by `evenmatch calibrate`.
"""

from __future__ import annotations

import json

from evenmatch.evaluation.agreement_result import AVERAGE_SUBSET, AgreementEntry
from tools.pages import RESULTS, ROOT
from tools.pages.agreement_tables import agreement_entries, format_correlation, read_pieces
from tools.pages.markdown import table_lines

PAGE = ROOT / "docs" / "choose-a-metric.md"

# Metric as it is called, and its name in the results; layer 4 is the default of the first three.
METRICS = {
    "bertscore": "bertscore(layer=4)",
    "f_disc": "f_disc(layer=4)",
    "f_cont": "f_cont(layer=4)",
    "smart1": "smart1",
    "wmt_blend": "wmt_blend",
    "chrf": "chrf",
    "meteor": "meteor",
    "rougeL": "rougeL",
    "bleu": "bleu",
}
COLUMNS = {
    "wmt17-segments": "translation: sentences (WMT17)",
    "wmt19-systems": "translation: systems (WMT19)",
    "realsumm-pooled": "summaries (REALSumm)",
    "webnlg-systems": "data to text: systems (WebNLG)",
}

# What is scored, what to use, and why.
JOBS = [
    (
        "translations into English",
        "`wmt_blend`, or `fluent_blend` if it may take thirty times as long; without fitting to "
        "ratings, `bertscore` or `f_cont`",
        "highest agreement, for sentences and for systems",
    ),
    (
        "summaries, and other texts that are longer or shorter than the reference",
        "`meteor` or `chrf`; of the alignment metrics, `smart1` or `bertscore`",
        "**not `f_disc`**: every extra unit stays unmatched and lowers the score ({f_disc} against "
        "{bertscore} for `bertscore` and {meteor} for `meteor`)",
    ),
    (
        "descriptions of data",
        "`bertscore`",
        "highest agreement; with 16 systems the intervals are wide",
    ),
    (
        "keyphrases",
        "`fg`; to compare with papers, `f1_at_m` and `f1_at_5`",
        "counts partial matches; there are no public human ratings to test it on",
    ),
    (
        "texts that a model is trained on ([rewards](how-to/reward.md))",
        "`f_disc`; if lengths vary, times `em.length_term()`",
        "repeating a good word gains nothing: [rewarded alone](results/graph-to-text.md), greedy "
        "alignment made a language model repeat 37 % of its word pairs, `f_disc` 8 %; beside "
        "cross-entropy neither changes BLEU significantly",
    ),
    (
        "one pair, to see why it scores as it does",
        "`f_disc`",
        "each unit has at most one partner, and unmatched units are visible",
    ),
    (
        "texts about people",
        "any metric as `counterfactual_mean(base=METRIC, attributes=[…])`",
        "removes most of the gender bias and more than half of that on race from `bertscore`, and "
        "changes agreement by less than 1 % ([results](results/fairness.md))",
    ),
]

TEXT = """# Choose a metric

{jobs}

The numbers are for English, with the embedded model. For other languages name a multilingual model,
`bertscore(model='xlm-roberta-base')`, or use `chrf`, which needs none; we have no numbers for them,
so test on [ratings of your own](how-to/compare-with-human-ratings.md). For texts over 512 sub-words
see [long texts](how-to/long-texts.md).

Agreement with human ratings and its 95 % interval: Pearson's r, for summaries Spearman's ρ. Where
the intervals of two metrics overlap widely, the choice matters little. All sets and tests:
[agreement](results/agreement.md).

{table}

`wmt_blend` is on the scale of standardised ratings: 0 is an average output, and scores may be
negative or above 1. `f_partial` is not in the table. It lowers scores less than `f_disc` if lengths
differ, but its constants were chosen with three of these data sets in view
([card](reference/metric-cards.md#f_partial)).

Defaults follow this page. `em.score` uses `bertscore`: of the three alignment metrics it is the
best, or within the interval of the best, on each of these sets. `em.align`, `em.reward` and
`evenmatch tune` use `f_disc`, for the reasons given above for single pairs and rewards.

This page is written by `python -m tools.pages.choose_a_metric`. Its numbers are computed by
`python -m tools.pages.agreement` and, for `wmt_blend` on WMT17, which it was not fitted to, by
`evenmatch calibrate wmt1516-daseg --test wmt17-da`.
"""


def page() -> str:
    """Return the page as Markdown."""
    found = {name: _overall(name) for name in COLUMNS}
    rows = [["metric", *COLUMNS.values()]]
    for metric, stored in METRICS.items():
        entries = [found[name].get(stored) for name in COLUMNS]
        rows.append([f"`{metric}`", *(_cell(entry) for entry in entries)])
    summaries = found["realsumm-pooled"]
    values = {
        name: format_correlation(summaries[METRICS[name]].value)
        for name in ("f_disc", "bertscore", "meteor")
    }
    jobs = [["you score", "use", "why"], *([text.format(**values) for text in job] for job in JOBS)]
    return TEXT.format(jobs="\n".join(table_lines(jobs)), table="\n".join(table_lines(rows)))


def _overall(name: str) -> dict[str, AgreementEntry]:
    """Return the agreement by metric: the average over subsets, or that of the only subset."""
    entries = agreement_entries(read_pieces(RESULTS, name), "entries")
    if averages := [entry for entry in entries if entry.subset == AVERAGE_SUBSET]:
        entries = averages
    found = {entry.metric: entry for entry in entries}
    if name == "wmt17-segments":
        found["wmt_blend"] = _blend()
    if name == "realsumm-pooled":
        sentences = agreement_entries(read_pieces(RESULTS, "sentences-realsumm"), "entries")
        found |= {entry.metric: entry for entry in sentences if entry.metric == "smart1"}
    return found


def _blend() -> AgreementEntry:
    document = json.loads((RESULTS / "metrics" / "blend.json").read_text("utf-8"))
    rows = (row for row in document["rows"] if row["subset"] == AVERAGE_SUBSET)
    row = next(row for row in rows if row["metric"] == "calibrated")
    return AgreementEntry(**row, cluster=None)


def _cell(entry: AgreementEntry | None) -> str:
    if entry is None:
        return "-"
    value, low, high = map(format_correlation, (entry.value, entry.low, entry.high))
    return f"{value} ({low} to {high})"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE}")
