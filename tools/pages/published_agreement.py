"""Published agreement on the same data sets, and remarks for comparing with it."""

from __future__ import annotations

from typing import Any

_STRUCTURE = "Chousa & Hirao"
_FAIR = "Sun et al. 2022, table 5"
_SCORES = "from the scores Sun et al. published"
_RUN = "another run of the same encoder"
_TO_ENGLISH = ["cs-en", "de-en", "iu-en", "ja-en", "km-en", "pl-en", "ps-en", "ru-en", "zh-en"]

HEADINGS: dict[str, tuple[str, str]] = {
    "wmt17-segments": (
        "WMT17, segments",
        "All rated outputs of a language pair pooled (560 per pair; 535 for zh-en, where the "
        "outputs of one rated system are not available).",
    ),
    "wmt18-systems": (
        "WMT18, systems",
        "Into English. The human scores are the organisers' standardised means.",
    ),
    "wmt19-systems": (
        "WMT19, systems",
        "Into English. The human scores are the organisers' standardised means.",
    ),
    "wmt20-zh-en": (
        "WMT20 zh-en, systems",
        "The listed outlier and the human translation are excluded: 15 systems, where Chousa & "
        "Hirao count 13. References are available for 800 of 2000 segments; they were selected "
        "for the variance of metric scores, not at random.",
    ),
    "wmt20-mqm": (
        "WMT20 zh-en, professional ratings (MQM)",
        "8 systems × 800 segments with a reference, the mean error score of three professional "
        "translators (0 is flawless). The sentinels do not read the content: raters count errors, "
        "and long outputs have more of them, so that the pooled correlation of a metric that knows "
        "only the length is higher than that of every other metric here. Within a segment that "
        "advantage is gone: `untied_accuracy` is the share of the pairs of outputs, of those that "
        "the raters do not rate equal, which a metric orders as they do; `calibrated_accuracy` "
        "also counts equal ratings, with a tie threshold fitted for each metric; `soft_accuracy` "
        "(SPA) compares systems.",
    ),
    "sentences-realsumm": (
        "REALSumm, sentence by sentence",
        "`smart1` matches sentences, by chrF unless it names a metric.",
    ),
    "sentences-summeval": (
        "SummEval, sentence by sentence",
        "`smart1` matches sentences, by chrF unless it names a metric; 11 references.",
    ),
    "wmt20-official": (
        "WMT20, official scores",
        "The scores submitted by the metrics' authors, correlated again without the listed "
        "outliers and human translations. This table uses no text and no encoder of ours: it "
        "checks the correlation code.",
    ),
    "webnlg-systems": (
        "WebNLG 2020, systems",
        "16 systems (Chousa & Hirao report 15), ratings standardised per rater, best of several "
        "references.",
    ),
    "realsumm-pooled": (
        "REALSumm, pooled",
        "All 2400 summaries pooled, as in Sun et al.",
    ),
    "realsumm-per-document": (
        "REALSumm, per document",
        "The correlation over 24 systems of each document, averaged over 100 documents. "
        "This measures whether a metric ranks the summaries of one document correctly.",
    ),
    "summeval-systems": ("SummEval, systems", "Means over 100 documents, 11 references each."),
    "summeval-per-document": (
        "SummEval, per document",
        "The correlation over 16 systems of each document, averaged over documents.",
    ),
}

PAPERS: dict[str, dict[str, Any]] = {
    "wmt17-segments": {
        "subsets": ["average"],
        "rows": [
            ("greedy, layer 4", [0.666], _RUN),
            ("transport, layer 4", [0.666], _RUN),
            ("one-to-one, layer 4", [0.649], _RUN),
            ("greedy, layer 6", [0.657], _RUN),
            ("transport, layer 6", [0.674], _RUN),
            ("one-to-one, layer 6", [0.666], _RUN),
        ],
    },
    "wmt20-zh-en": {
        "subsets": ["zh-en"],
        "rows": [
            ("sentBLEU", [0.950], _STRUCTURE),
            ("COMET", [0.931], _STRUCTURE),
            ("Prism", [0.945], _STRUCTURE),
            ("BERTScore", [0.942], _STRUCTURE),
            ("con + head", [0.924], _STRUCTURE),
            ("dep + head", [0.904], _STRUCTURE),
            ("greedy, layer 4", [0.914], _RUN),
            ("transport, layer 4", [0.932], _RUN),
            ("one-to-one, layer 4", [0.941], _RUN),
        ],
    },
    "wmt20-official": {
        "subsets": [*_TO_ENGLISH, "average of 10"],
        "rows": [
            (
                "sentBLEU",
                [0.800, 0.786, 0.469, 0.851, 0.969, 0.284, 0.888, 0.833, 0.950, None],
                _STRUCTURE,
            ),
            (
                "COMET",
                [0.694, 0.773, 0.605, 0.828, 0.971, 0.345, 0.941, 0.836, 0.931, None],
                _STRUCTURE,
            ),
            (
                "Prism",
                [0.720, 0.775, 0.616, 0.869, 0.950, 0.269, 0.966, 0.839, 0.945, None],
                _STRUCTURE,
            ),
            (
                "BERTScore",
                [0.743, 0.794, 0.643, 0.856, 0.948, 0.293, 0.938, 0.838, 0.942, None],
                _STRUCTURE,
            ),
            ("BERTScore, bert-base", [*[None] * 9, 0.796], _FAIR),
            ("BARTScore, base", [*[None] * 9, 0.775], _FAIR),
            ("BLEURT, base", [*[None] * 9, 0.766], _FAIR),
        ],
    },
    "webnlg-systems": {
        "subsets": ["Correctness", "DataCoverage", "Fluency", "Relevance", "TextStructure"],
        "rows": [
            ("sentBLEU", [0.650, 0.534, 0.907, 0.609, 0.912], _STRUCTURE),
            ("Prism", [0.913, 0.829, 0.897, 0.896, 0.893], _STRUCTURE),
            ("BERTScore", [0.857, 0.769, 0.926, 0.836, 0.912], _STRUCTURE),
            ("con + head", [0.768, 0.679, 0.935, 0.744, 0.922], _STRUCTURE),
            ("dep + head", [0.660, 0.535, 0.897, 0.658, 0.893], _STRUCTURE),
        ],
    },
    "realsumm-pooled": {
        "subsets": ["litepyramid_recall"],
        "rows": [
            ("BERTScore, bert-large", [0.464], _FAIR),
            ("BERTScore, bert-base", [0.465], _FAIR),
            ("BARTScore, base", [0.325], _FAIR),
            ("BLEURT, base", [0.299], _SCORES),
        ],
    },
    "realsumm-per-document": {
        "subsets": ["litepyramid_recall"],
        "rows": [
            ("BARTScore, base", [0.232], _SCORES),
            ("BLEURT, base", [0.254], _SCORES),
        ],
    },
}
