from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.alignment.differentiable import FixedAlignment
from evenmatch.errors import InputError
from evenmatch.studies.lisa.gradient import (
    METHODS,
    GradientSettings,
    VectorPair,
    contrastive_loss,
    embed_pairs,
    score_all_pairs,
    train_projection,
)

torch: Any = pytest.importorskip("torch", reason="torch is not installed")


def shadowed_pairs(count: int, seed: int) -> list[VectorPair]:
    """A candidate is its reference reordered and blurred, both under one strong common direction.

    Only who learns to look past that direction tells pairs from negatives.
    """
    random = np.random.default_rng(seed)
    shadow = np.zeros(16)
    shadow[0] = 6.0
    pairs = []
    for _ in range(count):
        reference = random.normal(size=(random.integers(3, 8), 16))
        candidate = random.permutation(reference) + 0.7 * random.normal(size=reference.shape)
        pairs.append((candidate + shadow, reference + shadow))
    return pairs


@pytest.mark.parametrize("method", METHODS)
def test_training_through_the_metric_lowers_the_loss(method: str) -> None:
    settings = GradientSettings(method, steps=25, batch=8, rate=0.03, look_every=25)
    curve = train_projection(shadowed_pairs(48, seed=0), shadowed_pairs(24, seed=1), settings)
    assert len(curve.losses) == 25
    assert np.mean(curve.losses[-5:]) < 0.7 * np.mean(curve.losses[:5])
    before, after = curve.held_out[0], curve.held_out[-1]
    assert (before.step, after.step) == (0, 25)
    assert after.loss < 0.7 * before.loss
    assert after.right >= before.right


def test_training_is_the_same_twice() -> None:
    pairs = shadowed_pairs(16, seed=0)
    settings = GradientSettings("gumbel", steps=3, batch=4)
    assert (
        train_projection(pairs, pairs, settings).losses
        == train_projection(pairs, pairs, settings).losses
    )


def test_scores_of_a_batch_are_the_metric_of_each_pair() -> None:
    candidates, references = ["the cat sat", "a dog"], ["the cat sat on the mat", "the dog ran"]
    encoder = em.Hashed(dim=32)
    batch = embed_pairs(candidates, references, encoder)
    found = score_all_pairs(batch, torch.eye(32), FixedAlignment())
    metric = em.AlignMetric(vectors=encoder, alignment=em.Lsa())
    for i, candidate in enumerate(candidates):
        for j, reference in enumerate(references):
            wanted = em.score([candidate], [reference], metric).mean
            assert float(found[i, j]) == pytest.approx(wanted, abs=1e-5)


def test_empty_texts_are_left_out_of_training() -> None:
    assert len(embed_pairs(["a", "", "b"], ["a", "b", ""], em.Hashed(dim=4))) == 1


def test_the_loss_is_lowest_where_the_diagonal_stands_out() -> None:
    assert float(contrastive_loss(torch.eye(4) * 20)) < 1e-6
    assert float(contrastive_loss(torch.zeros(4, 4))) == pytest.approx(np.log(4), abs=1e-6)


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(InputError, match="there is no method 'magic'; known: straight_through"):
        GradientSettings("magic")
    with pytest.raises(InputError, match="a batch needs 2 pairs to have a negative, got 1"):
        GradientSettings(batch=1)
    with pytest.raises(InputError, match="3 pairs to train on are fewer than a batch of 16"):
        train_projection(shadowed_pairs(3, 0), shadowed_pairs(20, 0), GradientSettings())


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.parametrize("method", ["straight_through", "held_lsa"])
def test_a_projection_on_the_embedded_encoder_learns_from_translations(
    method: str, data: Path
) -> None:
    """References of WMT17 with one system's translations, against each other as negatives."""
    with gzip.open(data / "wmt17-da" / "de-en.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for _, line in zip(range(256), lines, strict=False)]
    system = sorted(rows[0]["out"])[0]
    pairs = embed_pairs(
        [r["out"][system] for r in rows], [r["ref"] for r in rows], em.Transformer()
    )
    curve = train_projection(
        pairs[:192], pairs[192:], GradientSettings(method, steps=60, look_every=60)
    )
    assert curve.held_out[-1].loss < 0.85 * curve.held_out[0].loss
    assert curve.held_out[-1].right >= curve.held_out[0].right
