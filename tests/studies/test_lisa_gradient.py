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
from evenmatch.scoring.reducers import harmonic_mean, harmonic_mean_torch
from evenmatch.studies.lisa.gradient import (
    METHODS,
    GradientSettings,
    VectorPair,
    contrastive_loss,
    embed_pairs,
    score_all_pairs,
    train_encoder,
    train_projection,
)
from tests.support.small_models import PAIRS, save

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


def embedded(side: list[Any]) -> tuple[Any, Any, Any]:
    vectors = [torch.tensor(v, dtype=torch.float64) for v in side]
    padded = torch.nn.utils.rnn.pad_sequence(vectors, batch_first=True)
    mask = torch.arange(padded.shape[1]) < torch.tensor([len(v) for v in side])[:, None]
    return padded, mask, mask


@pytest.mark.parametrize("solver", [FixedAlignment(), FixedAlignment(em.Greedy())])
def test_scores_of_a_batch_are_the_metric_of_each_pair(solver: FixedAlignment) -> None:
    candidates, references = ["the cat sat", "a dog"], ["the cat sat on the mat", "the dog ran"]
    encoder = em.Hashed(dim=32)
    batch = embed_pairs(candidates, references, encoder)
    x, y = (embedded([pair[k] for pair in batch]) for k in (0, 1))
    found = score_all_pairs(x, y, solver)
    metric = em.AlignMetric(vectors=encoder, alignment=solver.solver)
    for i, candidate in enumerate(candidates):
        for j, reference in enumerate(references):
            wanted = em.score([candidate], [reference], metric).mean
            assert float(found[i, j]) == pytest.approx(wanted, abs=1e-5)


def test_a_pair_with_a_negative_precision_or_recall_scores_0() -> None:
    """As in the metric: 2PR / (P + R) has no meaning there, and no bound."""
    precision = torch.tensor([-0.19, 0.2, -0.3, 0.5], requires_grad=True)
    recall = torch.tensor([0.2, -0.2, -0.3, 0.25])
    found = harmonic_mean_torch(precision, recall)
    wanted = [harmonic_mean(p, r) for p, r in zip(precision.tolist(), recall.tolist(), strict=True)]
    assert found.tolist() == pytest.approx(wanted)
    found.sum().backward()
    # of 2PR / (P + R): 2 R² / (P + R)²
    assert precision.grad.tolist() == pytest.approx([0, 0, 0, 2 * 0.25**2 / 0.75**2])


def test_opposite_vectors_score_0_in_a_batch() -> None:
    x, y = (embedded([[[side, 0.1]]]) for side in (1.0, -1.0))
    assert float(score_all_pairs(x, y, FixedAlignment())) == 0


@pytest.fixture(scope="module")
def small_encoder(tmp_path_factory: pytest.TempPathFactory) -> em.Transformer:
    folder = save(tmp_path_factory.mktemp("encoder"), "bert", "AutoModel")
    return em.Transformer(str(folder), 2)


@pytest.mark.parametrize(
    ("method", "pad_to", "spec"),
    [
        ("f_cont", 0, "f_cont(model={!r}, layer=2)"),
        ("held_lsa", 24, "align(units=pieces(marks=True), alignment=lsa, "
         "vectors=transformer(model={!r}, layer=2, pad_to=24))"),
    ],
)  # fmt: skip
def test_the_encoder_is_trained_through_the_metric_itself(
    small_encoder: em.Transformer,
    method: str,
    pad_to: int,
    spec: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before training, the scores of held-out pairs are those of the metric."""
    seen: list[Any] = []

    def watch(scores: Any) -> Any:
        seen.append(scores / 10)
        return contrastive_loss(scores)

    monkeypatch.setattr("evenmatch.studies.lisa.gradient.contrastive_loss", watch)
    settings = GradientSettings(
        method, steps=6, batch=2, rate=5e-4, look_every=6, encoder=True, pad_to=pad_to
    )
    curve = train_encoder(PAIRS[:3], PAIRS[:2], small_encoder, settings)
    metric = spec.format(small_encoder.model)
    for i, j in np.ndindex(2, 2):
        wanted = em.score([PAIRS[i][0]], [PAIRS[j][1]], metric).mean
        assert float(seen[0][i, j]) == pytest.approx(wanted, abs=2e-5)
    assert curve.held_out[-1].loss < curve.held_out[0].loss


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
    with pytest.raises(InputError, match="rate must be above 0, got -1"):
        GradientSettings(rate=-1.0)
    with pytest.raises(InputError, match="seed must be at least 0, got -1"):
        GradientSettings(seed=-1)
    with pytest.raises(InputError, match="3 pairs to train on are fewer than a batch of 16"):
        train_projection(shadowed_pairs(3, 0), shadowed_pairs(20, 0), GradientSettings())
    with pytest.raises(InputError, match="only texts for the encoder are padded"):
        GradientSettings(pad_to=8)


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
