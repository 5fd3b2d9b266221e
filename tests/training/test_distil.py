from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.cards import MetricCard
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.errors import InputError
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.training.loop import FitSettings
from evenmatch.training.metrics.bi_encoder import load_partly_frozen
from evenmatch.training.metrics.examples import rated_pairs, split_train_test
from evenmatch.types import Pair
from tests.support.model_families import FAMILIES, save

SETTINGS = FitSettings(epochs=15, batch=8, rate=3e-3)


@pytest.fixture(scope="module")
def pairs(rated: list[RatedSet]) -> list[Pair]:
    return rated_pairs(rated)[0]


@pytest.fixture(scope="module")
def made(tiny: str, pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> MetricCard:
    out = tmp_path_factory.mktemp("made") / "student"
    return em.distil(
        f"f_disc(model={tiny!r}, layer=4)", pairs, out, test=[pairs], settings=SETTINGS
    )


def agreement(first: str, second: str, pairs: list[Pair]) -> float:
    texts = [p.candidate for p in pairs], [p.references for p in pairs]
    scores = [[s.value for s in em.score(*texts, metric).segments] for metric in (first, second)]
    return float(np.corrcoef(scores[0], scores[1])[0, 1])


def test_a_student_says_what_its_teacher_says(
    made: MetricCard, tiny: str, pairs: list[Pair]
) -> None:
    teacher = f"f_disc(model={tiny!r}, layer=4)"
    before = agreement(f"f_disc(model={tiny!r}, layer=2)", teacher, pairs)
    after = agreement(made.metric, teacher, pairs)
    assert after > before
    assert after == pytest.approx(made.document["mean"]["value"])


def test_a_student_is_an_encoder_of_fewer_blocks(made: MetricCard) -> None:
    student = em.build(
        json.loads((made.folder / "metric.json").read_text())["metric"].replace(
            "{here}", repr(made.metric)
        )
    )
    assert isinstance(student, em.AlignMetric)
    assert json.loads((made.folder / "config.json").read_text())["num_hidden_layers"] == 2
    assert student.alignment == em.Lsa()


def test_a_student_keeps_the_promises_of_metrics(made: MetricCard) -> None:
    em.check_metric(em.AlignMetric(vectors=em.Transformer(made.metric, 2), alignment=em.Lsa()))


def test_any_metric_can_be_imitated(tiny: str, pairs: list[Pair], tmp_path: Path) -> None:
    settings = FitSettings(epochs=12, batch=8, rate=1e-3, head_rate=1e-2)
    made = em.distil("ter", pairs, tmp_path / "m", test=[pairs], model=tiny, settings=settings)
    assert made.document["mean"]["value"] > 0.8
    student = em.build(f"fitted(model={made.metric!r})")
    assert not student.higher_is_better


def test_the_card_names_the_teacher(made: MetricCard) -> None:
    card = (made.folder / "README.md").read_text()
    assert "imitates f_disc(" in card
    assert "its first 2 blocks" in card
    assert made.document["faster"] > 0


def test_without_other_texts_every_tenth_pair_is_set_apart(pairs: list[Pair]) -> None:
    rest, tests = split_train_test(pairs, ())
    assert list(tests.values()) == [pairs[::10]]
    assert len(rest) + len(pairs[::10]) == len(pairs)


def test_pairs_come_from_a_file_or_from_ratings(table: str, pairs: list[Pair]) -> None:
    assert len(split_train_test(table, [pairs])[0]) == len(pairs)


def test_too_few_pairs_to_set_apart_are_refused(pairs: list[Pair]) -> None:
    with pytest.raises(InputError, match="9 pairs are too few to hold some out"):
        split_train_test(pairs[:9], ())


def test_blocks_that_share_what_they_know_are_refused(tmp_path: Path) -> None:
    albert = next(family for family in FAMILIES if family.name == "albert")
    folder = save(albert, tmp_path)
    with pytest.raises(InputError, match="cannot be run separately"):
        load_partly_frozen(find_checkpoint(str(folder)), 0, "cpu")
