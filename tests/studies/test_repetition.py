from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evenmatch.errors import InputError
from evenmatch.studies.repetition import (
    ATTACKS,
    STOP_WORDS,
    AttackScores,
    damage_texts,
    measure_attacks,
    repetition_report,
    repetition_rows,
)
from evenmatch.studies.sentences import SentencePairs

TEXTS = ("one two three four five six", "seven eight nine ten eleven twelve")
PAIRS = SentencePairs("own", ("one two three", "seven ten"), TEXTS)


def test_each_attack_changes_as_many_words_as_it_says() -> None:
    damaged = {name: damage_texts(TEXTS, TEXTS, name, 4, 0)[0].split() for name in ATTACKS}
    words = TEXTS[0].split()
    assert damaged["repeat"][:6] == words
    assert set(damaged["repeat"][6:]) <= set(words)
    assert len(damaged["repeat"]) == 10
    assert damaged["drop"] == [w for w in words if w in damaged["drop"]]
    assert len(damaged["drop"]) == 2
    assert sorted(damaged["shuffle"]) == sorted(words)
    assert sum(a != b for a, b in zip(words, damaged["shuffle"], strict=True)) == 4
    assert damaged["stop words"][:6] == words
    assert set(damaged["stop words"][6:]) <= set(STOP_WORDS)


def test_a_word_stays_however_many_are_dropped() -> None:
    assert len(damage_texts(TEXTS, TEXTS, "drop", 99, 0)[0].split()) == 1


def test_resistance_is_the_share_of_the_mean_that_is_lost() -> None:
    scores = {
        ("reference", "", 0, "m"): np.array([1.0, 0.6]),
        ("reference", "repeat", 16, "m"): np.array([0.7, 0.5]),
    }
    found = AttackScores(PAIRS, scores, ("m",), 0).resistance("reference", "repeat", "m")
    assert found.value == pytest.approx(1 - 1.2 / 1.6)


def test_a_study_without_metrics_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the study has no metrics"):
        measure_attacks(PAIRS, tmp_path, metrics=())


def test_curves_begin_undamaged_and_are_stored(tmp_path: Path) -> None:
    greedy_words = "align(units=words, vectors=hashed)"
    specs = ("align(units=words, vectors=hashed, alignment=lsa)", greedy_words)
    found = measure_attacks(PAIRS, tmp_path, metrics=specs)
    exact, greedy = (found.resistance("reference", "repeat", spec).value for spec in specs)
    assert greedy == pytest.approx(0, abs=1e-6)  # every repeated word has a partner
    assert exact == pytest.approx(1 - 12 / 28)  # F1 of precision 6 / 22 and recall 1
    assert found.curve("reference", "drop", specs[0])[0][1] == pytest.approx(1.0)
    again = measure_attacks(PAIRS, tmp_path, metrics=specs)
    assert repetition_rows(again) == repetition_rows(found)
    assert set(repetition_report(found).tables) == {"resistance-reference", "resistance-candidate"}
