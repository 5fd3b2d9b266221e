from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import evenmatch as em
from evenmatch.errors import InputError, UnknownNameError
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.training.metrics.cross_encoder import load_cross_encoder
from tests.support.model_families import FAMILIES, save

SETTINGS = em.FitSettings(epochs=40, batch=8, rate=1e-3, head_rate=3e-3)


@pytest.fixture(scope="module")
def made(
    tiny: str, rated: list[em.RatedSet], tmp_path_factory: pytest.TempPathFactory
) -> em.MetricCard:
    out = tmp_path_factory.mktemp("made") / "metric"
    return em.fit(rated, out, test=rated, kind="cross", model=tiny, frozen=1, settings=SETTINGS)


def test_a_cross_encoder_learns_what_it_is_shown(made: em.MetricCard) -> None:
    assert made.document["mean"]["value"] > 0.9
    assert made.facts["kind"] == "cross: cross-encoder, both texts encoded together"


def test_a_cross_encoder_is_on_the_scale_of_its_ratings(made: em.MetricCard) -> None:
    reference = "the quick brown fox jumps over the lazy dog"
    others = "the dog looked at the lazy cat on the"
    found = em.score([reference, others], [reference] * 2, made.metric)
    assert 60 < found.segments[0].value < 140
    assert -40 < found.segments[1].value < 50


def test_a_cross_encoder_is_a_regression_metric(made: em.MetricCard) -> None:
    texts = ["a cat sat on the mat"], ["a cat sat on a mat"]
    by_spec = em.score(*texts, f"regression(model={made.metric!r})")
    assert em.score(*texts, made.metric) == by_spec
    assert str(made.folder) not in by_spec.signature


def test_the_blocks_below_stay_as_they_are(made: em.MetricCard, tiny: str) -> None:
    from safetensors.numpy import load_file

    before, after = (
        load_file(Path(folder) / "model.safetensors") for folder in (tiny, made.folder)
    )
    both = {name: after[f"bert.{name}"] for name in before if f"bert.{name}" in after}
    changed = {name for name in both if not np.array_equal(before[name], both[name])}
    assert {n.split(".")[2] for n in changed if n.startswith("encoder.")} == {"1", "2", "3"}
    assert not any(name.startswith("embeddings.") for name in changed)


def test_the_same_seed_begins_with_the_same_head(tiny: str) -> None:
    first, again, other = (
        load_cross_encoder(find_checkpoint(tiny), [("a", "b")], frozen=0, seed=seed)(
            np.array([0])
        ).item()
        for seed in (0, 0, 1)
    )
    assert first == again != other


def test_blocks_that_are_shared_cannot_be_frozen_apart(tmp_path: Path) -> None:
    albert = next(family for family in FAMILIES if family.name == "albert")
    folder = str(save(albert, tmp_path))
    with pytest.raises(InputError, match="has no separate blocks that could be frozen"):
        load_cross_encoder(find_checkpoint(folder), [("a", "b")], frozen=0, seed=0)


def test_all_blocks_cannot_be_frozen(tiny: str) -> None:
    with pytest.raises(InputError, match="has 4 blocks; at least one must be trained"):
        load_cross_encoder(find_checkpoint(tiny), [("a", "b")], frozen=4, seed=0)


def test_an_unknown_kind_is_refused(rated: list[em.RatedSet], tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no kind of metric is called 'tower'; known: tow"):
        em.fit(rated, tmp_path / "m", kind="tower")  # type: ignore[arg-type]  # that is the test
