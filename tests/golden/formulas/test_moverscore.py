"""MoverScore of a tiny model, against transformers and POT with everything in between done here."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.alignment.transport import Emd
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.registry import CallContext
from evenmatch.scoring.reducers import Nearness
from evenmatch.similarity.vectors import Euclidean
from evenmatch.types import Array, Pair, Run, Units
from evenmatch.vectors import mover
from evenmatch.vectors.mover import Mover
from evenmatch.vectors.weighting import Idf, Norm, Uniform, load_idf_table
from tests.support.model_families import FolderOf

ot = pytest.importorskip("ot")

CANDIDATES = ["the lazy dog jumps, over rain", "a cat sat on the mat", "prices fell"]
REFERENCES = ["the quick fox sat on a dog", "a dog looked at the cat.", "prices fell by 3 percent"]


class Plain:
    """The model by transformers alone, one text at a time."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.model: Any = AutoModel.from_pretrained(folder).eval()

    def tokens(self, text: str) -> list[str]:
        found: list[str] = self.tokenizer.convert_ids_to_tokens(self.tokenizer(text)["input_ids"])
        return found

    def layers(self, text: str) -> Array:
        import torch

        given = self.tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            states = self.model(**given, output_hidden_states=True).hidden_states
        return np.stack([layer[0].double().numpy() for layer in states])

    def idf(self, texts: list[str]) -> dict[str, float]:
        documents = [set(self.tokens(text)) for text in texts]
        return {
            token: math.log((len(texts) + 1) / (sum(token in d for d in documents) + 1))
            for token in set().union(*documents)
        }


@pytest.fixture(scope="module")
def folder(folder_of: FolderOf) -> Path:
    return folder_of("bert")


@pytest.fixture(scope="module")
def plain(folder: Path) -> Plain:
    return Plain(folder)


def unit(vectors: Array) -> Array:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def distance(x: tuple[Array, Array], y: tuple[Array, Array], power: int) -> float:
    cost = np.linalg.norm(unit(x[0])[:, None] - unit(y[0])[None], axis=-1) ** power
    return float(ot.emd2(x[1] / x[1].sum(), y[1] / y[1].sum(), cost))


def is_kept(token: str) -> bool:
    return not token.startswith("##") and token not in ",."


def tokens_of(plain: Plain, text: str, idf: dict[str, float], layer: int) -> tuple[Array, Array]:
    tokens = plain.tokens(text)
    at = [i for i, t in enumerate(tokens) if is_kept(t) and idf.get(t, 0) > 0]
    return plain.layers(text)[layer][at], np.array([idf[tokens[i]] for i in at])


def words(plain: Plain) -> dict[str, float]:
    """A weight of 1 for every token but the special ones."""
    return {token: 1.0 for token in plain.tokenizer.get_vocab() if "[" not in token}


@pytest.mark.parametrize(("layer", "read"), [("", -1), (", layer=2", 2), (", layer=0", 0)])
def test_tokens_of_the_layer_are_moved(folder: Path, plain: Plain, layer: str, read: int) -> None:
    found = em.score(CANDIDATES, REFERENCES, f"moverscore(model={str(folder)!r}{layer})")
    idf = words(plain)
    for score, c, r in zip(found.segments, CANDIDATES, REFERENCES, strict=True):
        moved = distance(tokens_of(plain, c, idf, read), tokens_of(plain, r, idf, read), 1)
        assert score.value == pytest.approx(1 / (1 + moved), abs=2e-6)


def test_idf_is_counted_on_each_side_where_it_is_asked_for(folder: Path, plain: Plain) -> None:
    found = em.score(CANDIDATES, REFERENCES, f"moverscore(model={str(folder)!r}, idf=True)")
    sides = plain.idf(CANDIDATES), plain.idf(REFERENCES)
    for score, c, r in zip(found.segments, CANDIDATES, REFERENCES, strict=True):
        moved = distance(tokens_of(plain, c, sides[0], -1), tokens_of(plain, r, sides[1], -1), 1)
        assert score.value == pytest.approx(1 / (1 + moved), abs=2e-6)


def first_version(folder: Path, **settings: Any) -> Any:
    vectors = Mover(str(folder), **({"layers": 4, "n_gram": 2} | settings))
    return em.AlignMetric(
        em.Pieces(), vectors, Euclidean(squared=True), Emd(), Nearness(linear=True)
    )


@pytest.mark.parametrize(("layer", "top"), [("last", 4), (3, 3)])
def test_the_first_version_moves_bigrams_of_combined_layers(
    folder: Path, plain: Plain, layer: Any, top: int
) -> None:
    found = em.score(CANDIDATES, REFERENCES, first_version(folder, layer=layer))
    for score, c, r in zip(found.segments, CANDIDATES, REFERENCES, strict=True):
        moved = distance(bigrams(plain, c, top), bigrams(plain, r, top), 2)
        assert score.value == pytest.approx(1 - moved, abs=1e-5)


def bigrams(plain: Plain, text: str, top: int) -> tuple[Array, Array]:
    tokens, every = plain.tokens(text), unit(plain.layers(text)[top - 3 : top + 1])
    vectors = np.concatenate([every.min(0), every.mean(0), every.max(0)], axis=-1)
    at = [i for i, token in enumerate(tokens) if is_kept(token)]
    weights = [0.0 if "[" in tokens[i] else 1.0 for i in at]
    pairs = [(i, i + 1) for i in range(len(at) - 1)]
    means = [
        (weights[a] * vectors[at[a]] + weights[b] * vectors[at[b]]) / (weights[a] + weights[b])
        for a, b in pairs
    ]
    return np.array(means), np.array([weights[a] + weights[b] for a, b in pairs])


@pytest.mark.parametrize(
    ("candidates", "references"), [(Idf(), Norm()), (Norm(), Idf()), (Idf(), Idf())]
)
def test_only_a_side_without_a_table_is_counted(
    folder: Path, plain: Plain, candidates: Any, references: Any
) -> None:
    encoder = Mover(str(folder), candidates=candidates, references=references)
    pairs = [Pair(c, (r,)) for c, r in zip(CANDIDATES, REFERENCES, strict=True)]
    counted = encoder.count_idf(CallContext(Run(), pairs))
    for before, after, texts in (
        (candidates, counted.candidates, CANDIDATES),
        (references, counted.references, REFERENCES),
    ):
        if not isinstance(after, Idf):
            assert after == before == Norm()
            continue
        idf = plain.idf(texts)
        ids = np.array(plain.tokenizer.convert_tokens_to_ids(list(idf)))
        assert load_idf_table(after.table).idf(ids) == pytest.approx(list(idf.values()))
    assert dataclasses.replace(counted, candidates=candidates, references=references) == encoder
    plainly = Mover(str(folder))
    assert plainly.count_idf(CallContext(Run(), pairs)) is plainly


def test_units_are_shown_as_n_grams_of_tokens(folder: Path) -> None:
    [found] = first_version(folder).vectors([Units("the dog, sat", by_model=True)])
    assert found.units.text == "the dog, sat"
    assert found.units.words == ("[CLS]", "the", "dog", ",", "sat", "[SEP]")
    assert found.units.spans == ((0, 0), (0, 3), (4, 7), (7, 8), (9, 12), (0, 0))
    assert found.units.groups == ((0, 1), (1, 2), (2, 4), (4, 5))
    assert found.mass.tolist() == [1, 2, 2, 1]
    words = Units("the dog", ("the", "dog"), ((0, 3), (4, 7)), ((0,), (1,)))
    [kept] = first_version(folder).vectors([words])
    assert kept.units == words


def test_stop_words_have_no_mass(folder: Path) -> None:
    [found] = Mover(str(folder), stop_words=("the",))([Units("the dog sat", by_model=True)])
    assert [found.units.words[i] for (i,) in found.units.groups] == ["dog", "sat"]


def test_a_tokenizer_s_code_is_trusted_where_the_model_s_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []

    def find(checkpoint: Any, trust_remote_code: bool, stop_words: tuple[str, ...]) -> Array:
        found.append((trust_remote_code, stop_words))
        return np.zeros(1, dtype=bool)

    monkeypatch.setattr(mover, "_find_dropped_tokens", find)
    for trusted in (False, True):
        Mover(str(folder), stop_words=("a",), trust_remote_code=trusted).open(CallContext())
    assert found == [(False, ("a",)), (True, ("a",))]


def test_layers_are_counted_down_from_the_top_one(folder: Path) -> None:
    with pytest.raises(em.InputError, match=r"has 4 layers from layer 3 down, .* got layers=5"):
        em.score(["a"], ["a"], first_version(folder, layer=3, layers=5))
    em.score(["a"], ["a"], first_version(folder, layer=3, layers=4))


def test_sides_of_equal_weighting_are_one_encoder(folder: Path) -> None:
    one, other = Mover(str(folder)).open(CallContext())
    assert one is other
    weighed = Mover(str(folder), references=Norm())
    one, other = weighed.open(CallContext())
    assert one.vectors_key == (weighed, Uniform(), one.facts)
    assert other.vectors_key == (weighed, Norm(), one.facts)


def test_a_signature_names_the_model_by_content_and_the_layer_by_number(folder: Path) -> None:
    resolved, facts = Mover(str(folder), n_gram=3).resolve(CallContext())
    assert resolved == Mover(resolved.model, 4, n_gram=3)
    checkpoint = find_checkpoint(str(folder))
    assert (resolved.model, facts) == (checkpoint.name, (f"model {checkpoint.label}",))
