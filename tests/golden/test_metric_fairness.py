"""The biases that Sun et al. publish with their data (README of txsun1997/Metric-Fairness)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from evenmatch.data.fairness_sets import FairnessSet, read_fair_pairs
from evenmatch.fairness.audit import audit

ATTRIBUTES = ("age", "gender", "physical-appearance", "race", "religion", "socioeconomic")
TABLE = """
BARTScore-BART-base-F    6.2   3.67  6.04  2.44 5.97  6.65
BARTScore-BART-base-p    6.51  6.5   7.59  2.6  7.63  8.0
BARTScore-BART-base-r    7.1   2.47  8.44  2.52 7.12  7.55
BARTScore-BART-large-F   3.83  9.47  6.38  1.67 4.7   3.47
BARTScore-BART-large-p   7.65  14.17 6.42  1.87 5.13  4.55
BARTScore-BART-large-r   2.36  3.69  4.92  2.13 4.34  3.48
BERTScore-BERT-base      5.68  8.73  6.36  1.24 6.2   7.66
BERTScore-BERT-large     4.64  4.39  6.07  2.3  7.87  6.85
BERTScore-DistilBERT     5.26  8.36  4.93  1.94 6.82  7.64
BERTScore-RoBERTa-base   6.63  3.75  7.82  2.27 4.08  6.21
BERTScore-RoBERTa-large  8.23  6.99  7.94  2.59 4.64  7.4
BLEU                     2.35  0.1   0.94  0.19 0.61  2.79
BLEURT-BERT-base         13.44 29.97 12.92 3.02 16.21 15.41
BLEURT-BERT-large        15.07 27.08 7.98  4.0  16.18 14.6
BLEURT-BERT-tiny         14.01 6.47  10.71 8.43 6.39  13.01
BLEURT-RemBERT           16.52 20.93 8.84  4.21 17.12 12.93
chrF                     3.43  1.23  1.57  1.89 1.44  3.46
FrugalScore-BERT-medium  5.02  5.73  5.07  0.93 5.57  8.09
FrugalScore-BERT-small   4.9   7.04  4.64  0.91 5.82  8.78
FrugalScore-BERT-tiny    7.96  3.2   5.27  1.39 5.96  7.12
METEOR                   4.96  2.63  3.08  1.53 2.56  4.4
MoverScore-BERT-base     6.06  11.36 6.69  3.84 9.63  7.94
MoverScore-BERT-large    6.78  6.68  8.04  4.43 10.24 8.3
MoverScore-DistilBERT    7.24  13.24 4.94  3.35 9.67  8.59
NIST                     2.2   0.11  1.03  0.25 0.54  1.43
PRISM-F                  6.69  7.13  7.48  1.97 6.79  4.85
PRISM-p                  9.1   14.33 7.05  2.6  7.06  6.51
PRISM-r                  5.1   3.0   7.13  2.65 5.92  4.91
ROUGE                    3.83  0.21  2.01  0.12 1.02  3.4
"""
PAIRS = {
    "age": 71,
    "gender": 396,
    "physical-appearance": 62,
    "race": 179,
    "religion": 105,
    "socioeconomic": 130,
}
# Their Table 9: the same with its sign, on the gender set.
SIGNED = {
    "BLEU": 0.10,
    "ROUGE": 0.21,
    "METEOR": 0.11,
    "NIST": 0.11,
    "chrF": 0.15,
    "BERTScore-RoBERTa-large": 4.43,
    "MoverScore-DistilBERT": 1.67,
    "BLEURT-BERT-large": 7.92,
    "PRISM-F": 1.31,
    "BARTScore-BART-large-F": 3.54,
}


@pytest.fixture(scope="module")
def pairs(data: Path) -> FairnessSet:
    if not (data / "metric-fairness").is_dir():
        pytest.skip("EVENMATCH_DATA has no folder metric-fairness")
    return read_fair_pairs(data / "metric-fairness")


def published() -> Mapping[tuple[str, str], str]:
    rows = (line.split() for line in TABLE.strip().splitlines())
    return {
        (name, attribute): f"{float(value):.2f}"
        for name, *values in rows
        for attribute, value in zip(ATTRIBUTES, values, strict=True)
    }


def test_the_sets_have_as_many_pairs_as_the_paper_says(pairs: FairnessSet) -> None:
    assert {name: len(own) for name, own in pairs.pairs.items()} == PAIRS


def test_published_scores_give_the_published_biases_to_two_decimals(pairs: FairnessSet) -> None:
    found = audit([], pairs, published=True, worst=0, resamples=2, trials=2)
    biases = {(b.metric, b.attribute): f"{b.bias:.2f}" for b in found.biases}
    assert biases == published()


def test_published_scores_give_the_published_signed_biases(pairs: FairnessSet) -> None:
    gender = FairnessSet("gender", {"gender": pairs.pairs["gender"]})
    found = audit([], gender, published=True, worst=0, resamples=2, trials=2)
    signed = {b.metric: round(b.stereotype, 2) for b in found.biases if b.metric in SIGNED}
    assert signed == pytest.approx(SIGNED, abs=0.0101)
