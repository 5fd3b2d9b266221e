"""`bertscore` beside the bert_score package itself, one pair at a time, same model and layer.

In batches bert_score's numbers depend on what else is in the batch, so its batch size here is 1.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.files import models_dir

NEAR = 1e-5
LAYER = 4
PAIRS = [
    ("The cat sat on the mat.", "A cat was sitting on the mat."),
    ("the the the the cat", "the cat"),
    ("It rained.", "It rained heavily in the north all week, and nobody went out."),
    ("Nobody expected the minister to resign on Monday.", "The minister resigned on Monday."),
    ("identical text stays identical", "identical text stays identical"),
    ("up", "down"),
    ("  spaces   all  around  ", "spaces all around"),
    ("UPPER CASE IS FOLDED", "upper case is folded"),
    ("Prices fell by 3.5% in 2021, to $1,299.99.", "In 2021 prices dropped 3.5% to $1299.99."),
    ("e-mail me at someone@example.org", "write to someone@example.org"),
    ("naïve café owners in Zürich", "naive cafe owners in Zurich"),
    ("un texte français", "a French text"),
    ("一只猫", "a cat"),
    ("🙂 thanks!", "thanks 🙂"),
    ("antidisestablishmentarianism", "disestablishment"),
    ("...", "!"),
    ("a [SEP] b", "a b"),
    ("She said: “go home”, and he did.", 'She said "go home" and he did.'),
    ("word " * 600, "word " * 20),
    ("tabs\tand\nnew lines", "tabs and new lines"),
]


def by_package(
    candidates: Sequence[str], references: Sequence[object], idf: bool
) -> list[list[float]]:
    import bert_score

    found = bert_score.score(
        list(candidates),
        list(references),
        model_type=str(models_dir() / "minilm"),
        num_layers=LAYER,
        idf=idf,
        batch_size=1,
        nthreads=0,
        device="cpu",
    )
    return [numbers.tolist() for numbers in found]


def check_equal(pairs: Sequence[tuple[str, str]], idf: bool) -> None:
    candidates, references = (list(side) for side in zip(*pairs, strict=True))
    precision, recall, value = by_package(candidates, references, idf)
    ours = em.score(candidates, references, f"bertscore(layer={LAYER}, idf={idf})").segments
    assert [s.precision for s in ours] == pytest.approx(precision, abs=NEAR)
    assert [s.recall for s in ours] == pytest.approx(recall, abs=NEAR)
    assert [s.value for s in ours] == pytest.approx(value, abs=NEAR)


@pytest.mark.model
@pytest.mark.parametrize("idf", [False, True])
def test_our_pairs_score_as_the_package_scores_them(idf: bool) -> None:
    check_equal(PAIRS, idf)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("idf", [False, True])
def test_500_translations_score_as_the_package_scores_them(data: Path, idf: bool) -> None:
    pairs = translations(data / "wmt17-da")
    assert len(pairs) == 500
    check_equal(pairs, idf)


def translations(folder: Path) -> list[tuple[str, str]]:
    """The outputs of different systems, language pair by language pair."""
    found: list[tuple[str, str]] = []
    for path in sorted(folder.glob("*-en.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for number, line in zip(range(72), file, strict=False):
                row = json.loads(line)
                outputs = [row["out"][name] for name in sorted(row["out"])]
                found.append((outputs[number % len(outputs)], row["ref"]))
    return [pair for pair in found if pair[0].strip() and pair[1].strip()][:500]


@pytest.mark.model
@pytest.mark.parametrize("idf", [False, True])
def test_of_several_references_the_package_takes_the_same_best(idf: bool) -> None:
    candidates = ["the cat sat on the mat", "rain is expected"]
    references = [["a dog stood", "a cat sat on a mat", "mats"], ["rain was forecast"]]
    value = by_package(candidates, references, idf)[2]
    ours = em.score(candidates, references, f"bertscore(layer={LAYER}, idf={idf})").segments
    assert [s.value for s in ours] == pytest.approx(value, abs=NEAR)
