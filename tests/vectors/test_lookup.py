"""Fixed vectors: from a table, from a model's input embeddings, from a model in training."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.errors import DataError, InputError
from tests.support.model_families import FolderOf

TABLE = "the 1 0 0\ncat 0 1 0\nDog 0 0.8 0.6\ncat 9 9 9\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text(TABLE, "utf-8")
    return path


def vectors(path: Path, text: str) -> Any:
    found = em.Lookup(table=str(path))([em.Words()(text)])[0].vectors
    return np.asarray(found, dtype=np.float64).round(3).tolist()


def test_a_word_gets_its_row_as_written_or_in_lower_case(table: Path) -> None:
    assert vectors(table, "The cat Dog") == [[1, 0, 0], [0, 1, 0], [0, 0.8, 0.6]]


def test_a_word_that_the_table_lacks_is_similar_to_nothing(table: Path) -> None:
    assert vectors(table, "dog") == [[0, 0, 0]]  # the table knows only "Dog"
    (score,) = em.score(
        ["zebra"], ["zebra"], f"align(vectors=lookup(table={str(table)!r}))"
    ).segments
    assert score.value == 0
    assert score.flags == {"unknown_only", "no_match"}


@pytest.mark.parametrize("name", ["plain.txt", "packed.txt.gz"])
def test_a_table_may_be_gzipped_and_may_begin_with_its_size(tmp_path: Path, name: str) -> None:
    text, path = "3 3\n" + TABLE, tmp_path / name
    opened = gzip.open if name.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.write(text)
    assert vectors(path, "cat") == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("3 3\n", "is empty"),
        ("a 1 2\nb 1\n", "has 1 numbers for 'b', not 2"),
        ("a 1 2\nb x y\n", "cannot read the vector table"),
        (b"\xff\xfe\x00", "cannot read the vector table"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, content: str | bytes, words: str) -> None:
    path = tmp_path / "table.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=words):
        vectors(path, "a")


def test_a_gzipped_table_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.txt.gz"
    path.write_bytes(gzip.compress(TABLE.encode() * 100)[:-20])
    with pytest.raises(DataError, match="cannot read the vector table"):
        vectors(path, "a")


def test_a_table_that_is_nowhere_is_refused_in_one_line() -> None:
    with pytest.raises(DataError, match="there is no vector table /nowhere"):
        em.score(["a"], ["a"], "align(vectors=lookup(table='/nowhere'))")
    with pytest.raises(DataError, match="no vector table with the content sha256:0"):
        em.score(["a"], ["a"], "align(vectors=lookup(table='sha256:0'))")


@pytest.mark.parametrize("settings", [{}, {"table": "a", "model": "b"}])
def test_a_lookup_is_in_a_table_or_in_a_model(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="lookup takes either table='FILE' or model='NAME'"):
        em.Lookup(**settings)


def test_a_table_is_named_by_content_and_found_by_it(table: Path) -> None:
    scores = em.score(["the cat"], ["the Dog"], f"align(vectors=lookup(table={str(table)!r}))")
    assert str(table) not in scores.signature
    assert "table='sha256:" in scores.signature
    assert em.score(["the cat"], ["the Dog"], scores.signature.split(" · ")[0]) == scores
    table.write_text("the 1 0\n")
    with pytest.raises(DataError, match="no vector table with the content"):
        em.score(["a"], ["a"], scores.signature.split(" · ")[0])


def test_a_table_that_changes_is_read_again(table: Path) -> None:
    assert vectors(table, "cat") == [[0, 1, 0]]
    table.write_text("cat 5 5 5 5\n", "utf-8")
    assert vectors(table, "cat") == [[5, 5, 5, 5]]


def test_input_embeddings_do_not_see_what_stands_around_them(folder_of: FolderOf) -> None:
    encoder = em.Lookup(model=str(folder_of("t5")))
    alone, later = (encoder([em.Pieces()(text)])[0].vectors for text in ("cat", "the cat"))
    assert later[-len(alone) :].tolist() == alone.tolist()


def test_input_embeddings_are_named_by_content(folder_of: FolderOf) -> None:
    folder = str(folder_of("t5"))
    scores = em.score(["the cat"], ["the dog"], f"align(vectors=lookup(model={folder!r}))")
    assert folder not in scores.signature
    assert "model='sha256:" in scores.signature
    assert em.score(["the cat"], ["the dog"], scores.signature.split(" · ")[0]) == scores


def test_input_embeddings_have_no_limit_of_length(folder_of: FolderOf) -> None:
    encoder = em.Lookup(model=str(folder_of("bert")))
    (found,) = encoder([em.Pieces()("d " * 500)])
    assert len(found.vectors) == 500
    assert not found.flags


def test_a_model_in_training_is_looked_up_as_it_is_now(folder_of: FolderOf) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = folder_of("t5")
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    live = em.AlignMetric(
        vectors=em.LiveLookup(model, tokenizer, mass=em.Norm()), alignment=em.Emd()
    )
    still = em.AlignMetric(vectors=em.Lookup(model=str(folder), mass=em.Norm()), alignment=em.Emd())
    texts = ["the cat sat", "rain"], ["the dog sat down", "rain"]
    before = em.score(*texts, live)
    assert before.segments == em.score(*texts, still).segments
    with torch.no_grad():
        model.get_input_embeddings().weight += torch.randn(16)
    assert em.score(*texts, live).segments[0] != before.segments[0]
    assert em.score(*texts, live).segments[1].value == pytest.approx(1.0, abs=1e-6)


def test_a_model_in_training_has_no_spec_and_says_so(folder_of: FolderOf) -> None:
    from transformers import AutoModel, AutoTokenizer

    folder = folder_of("t5")
    live = em.LiveLookup(AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder))
    metric = em.AlignMetric(vectors=live)
    with pytest.raises(InputError, match="LiveLookup has no spec"):
        em.spec(metric)
    scores = em.score(["the cat"], ["the cat"], [metric])
    assert [name.split(" · ")[0] for name in scores] == ["align(vectors=<LiveLookup>)"]
