"""Debiasing through every kind of metric that has a model: not only alignment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.fairness_sets import FairnessSet, make_fairness_pair
from evenmatch.errors import InputError
from evenmatch.fairness.adapter_training import DebiasSettings, train_adapter
from evenmatch.fairness.counterfactuals import Counterfactual
from evenmatch.fairness.debias import debias
from evenmatch.fairness.differentiable import adapted_metric, make_differentiable
from evenmatch.fairness.training_data import Contrast, DebiasData
from evenmatch.models.adapters import Adapter
from evenmatch.scoring.metric import as_metric
from evenmatch.types import Pair, Run
from tests.support.small_models import save, save_causal

pytest.importorskip("transformers", reason="transformers is not installed")

REGRESSION, SEQ2SEQ = "AutoModelForSequenceClassification", "AutoModelForSeq2SeqLM"
TEXTS = [
    ("he sat on the mat", "the cat sat on a mat"),
    ("the dog", "a quick dog"),
    ("rain", "a box"),
]
COUNTERFACTUALS = tuple(
    Counterfactual(text.format("he"), text.format("she"), text.format("it"))
    for text in ("{} sat on the mat", "the dog looked at {}", "{} fell", "rain is on {}")
)
DATA = DebiasData(
    COUNTERFACTUALS,
    tuple(TEXTS),
    tuple(
        (Contrast(c.original, c.swapped, c.original), Contrast(c.swapped, c.original, c.swapped))
        for c in COUNTERFACTUALS
    ),
)
SETS = [
    FairnessSet(
        "small", {"gender": [make_fairness_pair("he ran", "it ran", "she ran", "it ran")] * 2}
    )
]
PAIRS = [Pair("He sat on the mat.", ("She sat on the mat.",)), Pair("Rain.", ("It rains.",))]


def towers(folder: Path) -> str:
    """A fitted metric with a head that was drawn."""
    from evenmatch.metrics.fitted import BiEncoderHead, save_bi_encoder_head

    save(folder, "bert", "AutoModel")
    weights = np.random.default_rng(0).normal(size=2 * 16 + 6)
    save_bi_encoder_head(BiEncoderHead((2, 4), weights, 0.5), folder)
    return f"fitted(model={str(folder)!r})"


def bert(folder: Path) -> str:
    save(folder, "bert", REGRESSION, num_labels=1, max_position_embeddings=64)
    return f"bleurt(model={str(folder)!r})"


def roberta(folder: Path) -> str:
    wide = {"max_position_embeddings": 66, "initializer_range": 0.3}
    save(folder, "roberta", REGRESSION, num_labels=1, **wide)
    return f"frugalscore(model={str(folder)!r})"


def bart(folder: Path) -> str:
    return f"bartscore(model={str(save(folder, 'bart', SEQ2SEQ))!r})"


def t5(folder: Path) -> str:
    save(folder, "t5", SEQ2SEQ, decoder_start_token_id=0)
    return f"bartscore_recall(model={str(folder)!r})"


def causal(folder: Path) -> str:
    return f"likelihood(model={str(save_causal(folder))!r}, direction='precision')"


@pytest.fixture(scope="module", params=[towers, bert, roberta, bart, t5, causal])
def metric(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    make: Callable[[Path], str] = request.param
    return make(tmp_path_factory.mktemp(make.__name__))


def test_training_scores_are_the_metric_s_own(metric: str) -> None:
    found = make_differentiable(as_metric(metric), Run()).scores(TEXTS, None).tolist()
    wanted = [em.score([c], [r], metric).mean for c, r in TEXTS]
    assert found == pytest.approx(wanted, abs=2e-5)


def test_training_lowers_what_it_is_to_lower(metric: str) -> None:
    through = make_differentiable(as_metric(metric), Run())
    settings = DebiasSettings(
        steps=25, batch=4, rate=0.02, factor=2, anchor_weight=0.1, contrast_weight=0.0
    )
    adapter = train_adapter(through, DATA, settings)

    def apart(one: Adapter | None) -> float:
        pairs = (
            [(c.original, c.neutral) for c in COUNTERFACTUALS],
            [(c.swapped, c.neutral) for c in COUNTERFACTUALS],
        )
        a, b = (through.scores(side, one).tolist() for side in pairs)
        return float(np.abs(np.subtract(a, b)).mean())

    assert apart(adapter) < 0.8 * apart(None)


def test_a_trained_adapter_is_a_metric_and_leaves_the_original_as_it_was(
    metric: str, tmp_path: Path
) -> None:
    candidates, references = [c for c, _ in TEXTS], [r for _, r in TEXTS]
    before = em.score(candidates, references, metric)
    settings = DebiasSettings(steps=3, batch=2, rate=0.02, factor=4)
    how: dict[str, Any] = {"settings": settings, "judge_on": SETS, "templates": False}
    made = debias(metric, tmp_path / "mine", [PAIRS], **how)
    assert made.document["model"] in before.signature
    adapted = em.score(candidates, references, str(tmp_path / "mine"))
    assert "adapter" in adapted.signature
    assert str(tmp_path) not in adapted.signature
    rebuilt = em.score(candidates, references, em.build(adapted.signature.split(" · ")[0]))
    assert rebuilt.segments == adapted.segments
    assert adapted.mean != before.mean
    assert em.score(candidates, references, metric) == before  # bit by bit
    with pytest.raises(InputError, match="already has one; leave out adapter="):
        make_differentiable(adapted_metric(as_metric(metric), str(tmp_path / "mine")), Run())


def test_only_a_metric_over_a_transformer_takes_an_adapter() -> None:
    for plain in ("chrf", "align(vectors=hashed)"):
        with pytest.raises(InputError, match="only a metric with a transformer takes an adapter"):
            adapted_metric(as_metric(plain), "mine")


def test_only_an_alignment_metric_is_trained_for_the_last_block_alone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only adapters for alignment metrics can be for the last"):
        make_differentiable(as_metric(towers(tmp_path)), Run(), last_block=True)
