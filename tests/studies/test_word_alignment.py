from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenmatch.errors import DataError, InputError
from evenmatch.studies import word_alignment
from evenmatch.studies.word_alignment import (
    LinkCounts,
    LinkRule,
    WordAlignedSet,
    measure_word_alignment,
    read_word_alignments,
    word_similarities,
    word_units,
)
from evenmatch.studies.word_alignment_report import word_alignment_report, word_alignment_rows

ROWS: list[dict[str, Any]] = [
    {
        "source": ["the", "cat", "sat"],
        "target": ["a", "cat", "was", "sitting"],
        "sure": [[1, 1]],
        "possible": [[0, 0], [2, 3]],
    },
    {"source": ["prices", "rose"], "target": ["prices", "went", "up"], "sure": [[0, 0], [1, 1]]},
    {"source": ["rain", "fell"], "target": ["rain", "fell"], "sure": [[0, 0], [1, 1]]},
]


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_scores_are_of_links_summed_over_sentences() -> None:
    # A = 5 links, 3 of them human and 2 of these sure; 6 human links, 4 of them sure
    counts = LinkCounts(*(np.array(c, float) for c in ([2, 3], [1, 2], [1, 1], [2, 4], [1, 3])))
    ones = np.ones((1, 2))
    assert counts.precision(ones)[0] == pytest.approx(3 / 5)
    assert counts.recall(ones)[0] == pytest.approx(3 / 6)
    assert counts.f1(ones)[0] == pytest.approx(6 / 11)
    assert counts.aer(ones)[0] == pytest.approx(1 - (2 + 3) / (5 + 4))


def test_a_link_needs_its_share_and_its_similarity() -> None:
    strength = np.array([[1.0, 0.4], [0.5, 0.0]])
    similarity = np.array([[0.3, 0.9], [0.8, 0.9]])
    assert LinkRule(1, 0.5, -1.0).links(strength, similarity).tolist() == [[1, 0], [1, 0]]
    assert LinkRule(1, 0.4, 0.5).links(strength, similarity).tolist() == [[0, 1], [1, 0]]


def test_words_keep_their_places() -> None:
    units = word_units(["a", "cat", "sat"])
    assert units.text == "a cat sat"
    assert [units.text[a:b] for a, b in units.spans] == ["a", "cat", "sat"]
    assert units.items == ("a", "cat", "sat")


def test_files_are_read_and_bad_lines_named(tmp_path: Path) -> None:
    read = read_word_alignments(write(tmp_path / "own.jsonl", ROWS))
    assert read.name == "own"
    assert read.pairs[0].links == {(0, 0), (1, 1), (2, 3)}
    for bad, words in (
        ({"source": ["a"]}, "line 4 is not a word alignment"),
        ({"source": ["a"], "target": []}, "line 4: source and target must be lists of words"),
        ({"source": ["a"], "target": ["b"], "sure": [[0, 1]]}, "line 4: there are no words for"),
    ):
        with pytest.raises(DataError, match=words):
            read_word_alignments(write(tmp_path / "bad.jsonl", [*ROWS, bad]))
    with pytest.raises(DataError, match="has 1 pairs; intervals need at least 2"):
        read_word_alignments(write(tmp_path / "one.jsonl", ROWS[:1]))


def test_two_sets_of_one_name_are_refused(tmp_path: Path) -> None:
    both = read_word_alignments(write(tmp_path / "own.jsonl", ROWS))
    with pytest.raises(InputError, match="two sets are called own"):
        measure_word_alignment(both, [both], tmp_path)


@pytest.mark.model
def test_a_word_is_the_mean_of_its_pieces(tmp_path: Path) -> None:
    from evenmatch.similarity.vectors import Cosine
    from evenmatch.vectors.transformer import Transformer

    read = read_word_alignments(write(tmp_path / "own.jsonl", ROWS))
    found = word_similarities(read.pairs, "minilm", [4])[4][0]
    x, y = Transformer(layer=4, pool="mean")(
        [word_units(side) for side in (read.pairs[0].source, read.pairs[0].target)]
    )
    assert found == pytest.approx(Cosine()(x, y), abs=1e-5)


@pytest.mark.model
def test_rules_are_chosen_on_dev_and_results_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev = read_word_alignments(write(tmp_path / "dev.jsonl", ROWS))
    test = read_word_alignments(write(tmp_path / "test.jsonl", ROWS[::-1]))
    solvers = ("greedy", "lsa", "unbalanced")
    found = measure_word_alignment(dev, [test], tmp_path / "study", solvers=solvers)
    report = word_alignment_report(found, dev, [test])
    assert [row[0] for row in report.tables["test"]] == ["solver", *solvers]
    assert "people" in report.figures["links"]
    by_solver = {s.solver: s for s in found}
    # the same sentences in another order: what was chosen on dev gives the same F1
    for solver in found:
        for rule in ("plain", "tuned"):
            counts = solver.counts["test"][rule]
            assert counts.f1(np.ones((1, 3)))[0] == pytest.approx(solver.dev_f1[rule], abs=1e-6)
    assert by_solver["lsa"].rules["plain"].threshold == -1.0
    assert by_solver["greedy"].dev_f1["tuned"] >= by_solver["greedy"].dev_f1["plain"]

    def encode_again(*_: object, **__: object) -> None:
        raise AssertionError("stored results are encoded again")

    monkeypatch.setattr(word_alignment, "word_similarities", encode_again)
    again = measure_word_alignment(dev, [test], tmp_path / "study", solvers=solvers)
    assert word_alignment_rows(again) == word_alignment_rows(found)


def test_a_digest_depends_on_links(tmp_path: Path) -> None:
    read = read_word_alignments(write(tmp_path / "own.jsonl", ROWS))
    fewer = WordAlignedSet(read.name, read.pairs[:2])
    assert read.digest != fewer.digest
