"""MoverScore against POT itself, with everything that leads to it computed here once more."""

from __future__ import annotations

import math
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.models import checkpoints
from evenmatch.scoring.reducers import Nearness
from evenmatch.types import Alignment, Array, Embedded, Pair, Units

CANDIDATES = [
    "The committee meets again on Friday.",
    "A man plays the guitar, badly!",
    "Unbelievably, prices fell by 3 percent.",
]
REFERENCES = [
    "The panel will meet on Friday.",
    "A man is playing guitar.",
    "Prices were unbelievably down three percent.",
]


class Plain:
    """The embedded model by transformers alone, one text at a time."""

    def __init__(self) -> None:
        from transformers import AutoModel, AutoTokenizer

        folder = checkpoints.find_checkpoint("minilm").folder
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).eval()

    def pieces(self, text: str) -> list[str]:
        ids: list[int] = self.tokenizer(text)["input_ids"]
        return [self.tokenizer.convert_ids_to_tokens(each) for each in ids]

    def layers(self, text: str) -> list[Array]:
        import torch

        with torch.no_grad():
            run = self.model(**self.tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        return [h[0].double().numpy() for h in run.hidden_states]

    def idf(self, texts: list[str]) -> dict[str, float]:
        kinds = [set(self.pieces(text)) for text in texts]
        every = set().union(*kinds)
        count = len(texts) + 1
        return {p: math.log(count / (sum(p in k for k in kinds) + 1)) for p in every}


@pytest.fixture(scope="module")
def plain() -> Plain:
    return Plain()


def unit(vectors: Array) -> Array:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def is_kept(piece: str) -> bool:
    return "##" not in piece and piece not in string.punctuation


def moved(x: Array, y: Array, a: Array, b: Array, power: int) -> float:
    """The earth mover's distance by POT, from vectors and masses."""
    import ot

    cost = np.linalg.norm(unit(x)[:, None] - unit(y)[None], axis=-1) ** power
    return float(ot.emd2(a / a.sum(), b / b.sum(), cost))


def second(plain: Plain, text: str, idf: dict[str, float]) -> tuple[Array, Array]:
    pieces, vectors = plain.pieces(text), plain.layers(text)[-1]
    at = [i for i, piece in enumerate(pieces) if is_kept(piece) and idf[piece] > 0]
    return vectors[at], np.array([idf[pieces[i]] for i in at])


def first(plain: Plain, text: str, idf: dict[str, float], n: int) -> tuple[Array, Array]:
    pieces = plain.pieces(text)
    last = np.stack([unit(layer) for layer in plain.layers(text)[-5:]])
    vectors = np.concatenate([last.min(0), last.mean(0), last.max(0)], -1)
    at = [i for i, piece in enumerate(pieces) if is_kept(piece)]
    runs = [at[i : i + n] for i in range(len(at) - n + 1)]
    weights = [np.array([idf[pieces[i]] for i in run]) for run in runs]
    both = [(w @ vectors[run] / w.sum(), w.sum()) for run, w in zip(runs, weights, strict=True)
            if w.sum() > 0]  # fmt: skip
    return np.array([v for v, _ in both]), np.array([w for _, w in both])


@pytest.mark.model
def test_moverscore_is_the_earth_movers_distance_by_pot(plain: Plain) -> None:
    scores = em.score(CANDIDATES, REFERENCES, "moverscore(idf=True)")
    left, right = plain.idf(CANDIDATES), plain.idf(REFERENCES)
    for candidate, reference, score in zip(CANDIDATES, REFERENCES, scores.segments, strict=True):
        x, a = second(plain, candidate, left)
        y, b = second(plain, reference, right)
        assert score.value == pytest.approx(1 / (1 + moved(x, y, a, b, 1)), abs=1e-6)
        assert (score.precision, score.recall) == (None, None)


@pytest.mark.model
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_first_version_is_so_too_with_power_means_and_n_grams(plain: Plain, n: int) -> None:
    scores = em.score(CANDIDATES, REFERENCES, f"moverscore(version=1, n_gram={n}, idf=True)")
    left, right = plain.idf(CANDIDATES), plain.idf(REFERENCES)
    for candidate, reference, score in zip(CANDIDATES, REFERENCES, scores.segments, strict=True):
        x, a = first(plain, candidate, left, n)
        y, b = first(plain, reference, right, n)
        assert score.value == pytest.approx(1 - moved(x, y, a, b, 2), abs=1e-6)


@pytest.mark.model
def test_without_idf_all_tokens_have_equal_weights(plain: Plain) -> None:
    [score] = em.score(CANDIDATES[:1], REFERENCES[:1], "moverscore(idf=False)").segments
    sides = []
    for text in (CANDIDATES[0], REFERENCES[0]):
        pieces = plain.pieces(text)
        at = [i for i, p in enumerate(pieces) if is_kept(p) and p not in ("[CLS]", "[SEP]")]
        sides.append((plain.layers(text)[-1][at], np.ones(len(at))))
    (x, a), (y, b) = sides
    assert score.value == pytest.approx(1 / (1 + moved(x, y, a, b, 1)), abs=1e-6)


@pytest.mark.model
@pytest.mark.parametrize("version", [1, 2])
def test_without_a_request_nothing_is_counted_in_the_call(version: int) -> None:
    metric = f"moverscore(version={version})"
    together = em.score(CANDIDATES, REFERENCES, metric)
    assert "idf" not in together.signature
    for candidate, reference, score in zip(CANDIDATES, REFERENCES, together.segments, strict=True):
        alone = em.score([candidate], [reference], metric)
        assert alone.mean == pytest.approx(score.value, abs=1e-6)
    counted = em.score(CANDIDATES, REFERENCES, f"moverscore(version={version}, idf=True)")
    assert "candidates=idf(table='sha256:" in counted.signature


@pytest.mark.model
def test_a_pair_alone_where_idf_says_nothing_is_scored_without_it() -> None:
    one = em.score(CANDIDATES[:1], REFERENCES[:1], "moverscore(idf=True)").mean
    assert one == pytest.approx(
        em.score(CANDIDATES[:1], REFERENCES[:1], "moverscore(idf=False)").mean, abs=1e-9
    )


@pytest.mark.model
def test_equal_texts_score_one_and_others_less() -> None:
    metrics = ["moverscore(idf=False)", "moverscore(idf=False, version=1, n_gram=2)"]
    for scores in em.score(CANDIDATES, [CANDIDATES[0]] * 3, metrics).values():
        values = [s.value for s in scores.segments]
        assert values[0] == pytest.approx(1.0, abs=1e-6)
        assert max(values[1:]) < 0.8


@pytest.mark.model
def test_stop_words_are_left_out() -> None:
    metric = "moverscore(idf=False, stop_words=['the', 'a'])"
    scores = em.align("the committee", "a committee", metric)
    assert scores.candidate_units == scores.reference_units == ["committee"]


@pytest.mark.model
def test_texts_of_nothing_but_punctuation_match_nothing() -> None:
    scores = em.score(
        ["!!!", "", "", "..."], ["!!!", "", "a word", "a word"], "moverscore(idf=True)"
    )
    assert [s.value for s in scores.segments] == [0.0, 1.0, 0.0, 0.0]
    assert [sorted(s.flags) for s in scores.segments] == [
        ["no_match"],
        ["empty_candidate", "empty_reference"],
        ["empty_candidate"],
        ["no_match"],
    ]


@pytest.mark.model
def test_an_alignment_shows_n_grams_of_tokens() -> None:
    found = em.align("A man plays, badly", "a man", "moverscore(version=1, n_gram=2, idf=False)")
    assert found.candidate_units[1:3] == ["A man", "man plays"]
    assert found.similarity.shape == (len(found.candidate_units), len(found.reference_units))
    assert "A man" in str(found)


@pytest.mark.model
def test_vectors_come_from_the_cache(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenmatch.models.backbone import OpenBackbone

    metrics = ["moverscore(idf=True)", "moverscore(version=1, n_gram=2)"]
    before = em.score(CANDIDATES, REFERENCES, metrics, cache=True)

    def never(*_: Any) -> Any:
        raise AssertionError("a text went through the model again")

    monkeypatch.setattr(OpenBackbone, "encode", never)
    after = em.score(CANDIDATES, REFERENCES, metrics, cache=True)
    for name in metrics:
        assert [s.value for s in after[name].segments] == [s.value for s in before[name].segments]
        assert "vectors compact" in after[name].signature


@pytest.mark.model
def test_a_text_goes_through_the_model_once_for_every_metric(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from evenmatch.models.backbone import OpenBackbone

    seen: list[str] = []
    encode = OpenBackbone.encode

    def noting(self: OpenBackbone, texts: list[str], layers: list[int]) -> Any:
        seen.extend(texts)
        return encode(self, texts, layers)

    monkeypatch.setattr(OpenBackbone, "encode", noting)
    metrics = ["moverscore", "bertscore", "moverscore(version=1)"]
    em.score(CANDIDATES, REFERENCES, metrics)
    assert sorted(seen) == sorted({*CANDIDATES, *REFERENCES})


@pytest.mark.model
def test_a_text_is_embedded_for_its_own_side_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from evenmatch.vectors.mover import _MoverSide

    seen: list[tuple[Any, str]] = []
    look = _MoverSide.embed

    def noting(self: _MoverSide, units: Units, found: Any) -> Embedded:
        seen.append((self.weighting, units.text))
        return look(self, units, found)

    monkeypatch.setattr(_MoverSide, "embed", noting)
    candidates, references = ["a cat", "the dog", "a cat"], ["a cat", "the dog", "two birds"]
    em.score(candidates, references, "moverscore(idf=True)")
    texts = [[text for weighting, text in seen if weighting == side] for side in _in_order(seen)]
    assert [sorted(some) for some in texts] == [sorted(set(candidates)), sorted(set(references))]


def _in_order(seen: list[tuple[Any, str]]) -> list[Any]:
    return list(dict.fromkeys(side for side, _ in seen))


@pytest.mark.model
def test_idf_that_was_counted_stays_with_the_signature() -> None:
    scores = em.score(CANDIDATES, REFERENCES, "moverscore(idf=True)")
    fixed = em.build(scores.signature.split(" · ")[0])
    alone = fixed([Pair(CANDIDATES[1], (REFERENCES[1],))])
    assert alone.mean == pytest.approx(scores.segments[1].value, abs=1e-6)
    assert fixed.vectors.candidates != fixed.vectors.references


@pytest.mark.model
def test_more_layers_than_there_are_is_refused() -> None:
    with pytest.raises(em.InputError, match=r"has 3 layers from layer 2 down, .* got layers=5"):
        em.score(["a"], ["a"], "moverscore(version=1, layer=2, idf=False)")


def test_n_grams_are_the_first_versions() -> None:
    with pytest.raises(em.InputError, match="second version has no n-grams; set version=1"):
        em.build("moverscore(n_gram=2)")


@pytest.mark.parametrize("setting", ["layers=0", "n_gram=0"])
def test_nothing_read_or_joined_is_refused(setting: str) -> None:
    with pytest.raises(em.InputError, match="layers and n_gram must be at least 1"):
        em.build(f"mover({setting})")


def test_nearness_knows_its_bounds() -> None:
    assert Nearness().score_bounds(-2.0, 0.0) == (0.0, 1.0)
    assert Nearness(linear=True).score_bounds(-4.0, 0.0) == (-3.0, 1.0)
    assert em.build("moverscore(version=1)").bounds == (-3.0, 1.0)


def test_nearness_is_one_over_one_and_the_distance() -> None:
    sides = [Embedded(Units("a"), np.ones((1, 2)), np.ones(1), np.ones(1)) for _ in range(2)]
    plan = Alignment(np.ones((1, 1)), np.ones((1, 1)))
    distance = np.array([[-0.25]])
    assert Nearness()(distance, plan, *sides).value == pytest.approx(0.8)
    assert Nearness(linear=True)(distance, plan, *sides).value == pytest.approx(0.75)
