from __future__ import annotations

from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.studies.lisa.gradient import GradientSettings, gradient_report, train_through_metric
from evenmatch.studies.sentences import SentencePairs

pytest.importorskip("torch", reason="torch is not installed")

WORDS = "cat dog rain sun tree fish bird house river stone cloud apple road train lamp wolf".split()
SENTENCES = SentencePairs(
    "sixteen",
    tuple(f"the {w} was seen by a {v}" for w, v in zip(WORDS, WORDS[1:] + WORDS[:1], strict=True)),
    tuple(f"a {w} saw the {v}" for v, w in zip(WORDS, WORDS[1:] + WORDS[:1], strict=True)),
)
METHOD_SETTINGS = [
    GradientSettings(m, steps=8, batch=4, rate=0.02, look_every=4) for m in ("gumbel", "held_lsa")
]


def test_each_method_is_trained_once_and_lowers_the_loss(tmp_path: Path) -> None:
    lines: list[str] = []
    encoder = em.Hashed(dim=32)
    first = train_through_metric(SENTENCES, encoder, METHOD_SETTINGS, tmp_path, log=lines.append)
    assert [line.split(":")[0] for line in lines] == ["seed 0, gumbel", "seed 0, held_lsa"]
    assert all(c.held_out[-1].loss < c.held_out[0].loss for c in first)
    for path in (tmp_path / "cells").iterdir():
        path.write_text(path.read_text().replace('"losses": [', '"losses": [9.0, '))
    again = train_through_metric(SENTENCES, encoder, METHOD_SETTINGS, tmp_path)
    assert [c.losses[0] for c in again] == [9.0, 9.0]


def test_the_report_shows_each_method(tmp_path: Path) -> None:
    found = train_through_metric(SENTENCES, em.Hashed(dim=32), METHOD_SETTINGS, tmp_path)
    report = gradient_report(found, SENTENCES)
    assert [row[0] for row in report.tables["losses"]] == ["method", "gumbel", "held_lsa"]
    assert report.figures["losses"].count("<path ") == 2


def test_no_methods_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no method to train with"):
        train_through_metric(SENTENCES, em.Hashed(dim=32), [], tmp_path)
