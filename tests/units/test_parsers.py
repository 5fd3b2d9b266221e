from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.errors import DataError, InputError, MissingExtraError
from evenmatch.units.parsers import benepar
from evenmatch.units.parsers import spacy as spacy_parser
from evenmatch.units.parsers.benepar import Benepar
from evenmatch.units.parsers.cache import parse_cached
from evenmatch.units.parsers.spacy import Spacy
from evenmatch.units.trees import iter_nodes

ENGLISH = pytest.mark.model("en_core_web_sm")


@ENGLISH
def test_spans_match_the_text_and_spaces_are_no_words() -> None:
    text = "  I saw  a girl.\n\nShe left."
    [parse] = Spacy()([text])
    assert parse.words == ("I", "saw", "a", "girl", ".", "She", "left", ".")
    assert tuple(text[a:b] for a, b in parse.spans) == parse.words
    assert [tree.words for tree in parse.trees] == [(0, 1, 2, 3, 4), (5, 6, 7)]


@ENGLISH
@pytest.mark.parametrize("text", ["", " \n ", "\ud800 odd", "\x00", "😀😀", "x" * 5000])
def test_unusual_texts_are_parsed(text: str) -> None:
    [parse] = Spacy()([text])
    assert sorted(n.head for t in parse.trees for n in iter_nodes(t)) == list(
        range(len(parse.words))
    )


@ENGLISH
def test_a_text_longer_than_the_limit_is_refused() -> None:
    with pytest.raises(InputError, match="1000001 characters exceeds the limit of the parser"):
        Spacy()(["x" * 1_000_001])


def test_a_missing_pipeline_is_named() -> None:
    pytest.importorskip("spacy")
    with pytest.raises(DataError, match="cannot load the spaCy pipeline 'xx_no_such'"):
        Spacy("xx_no_such")(["a"])


def test_the_embedded_parser_says_how_to_fetch_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy")
    monkeypatch.setenv("EVENMATCH_MODELS", "nowhere")
    with pytest.raises(DataError, match="fetch it with: evenmatch models get en_core_web_sm"):
        Spacy()(["a"])


def test_a_pipeline_without_a_parser_is_refused(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    spacy.blank("de").to_disk(tmp_path / "blank")
    with pytest.raises(InputError, match=r"\(de\) has no dependency parser"):
        Spacy(str(tmp_path / "blank"))(["Ein Satz."])


def test_without_spacy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'evenmatch\[parse\]'"):
        Spacy(str(tmp_path))(["a"])


@ENGLISH
def test_a_signature_names_the_parser_and_its_version() -> None:
    metric = em.build("align(units=subtrees, vectors=hashed)")
    assert " · parser en_core_web_sm@3.8.0" in metric.signature


@ENGLISH
def test_a_pipeline_by_folder_is_named_by_content(tmp_path: Path) -> None:
    from evenmatch.files import models_dir

    folder = tmp_path / "mine"
    folder.symlink_to(models_dir() / "en_core_web_sm")
    metric = em.build(
        f"align(units=subtrees(parser=spacy(pipeline={str(folder)!r})), vectors=hashed)"
    )
    spec = metric.signature.split(" · ")[0]
    assert "sha256:" in spec
    assert str(tmp_path) not in metric.signature
    assert em.build(spec).units("A cat.").items == metric.units("A cat.").items


@ENGLISH
def test_a_pipeline_with_other_weights_is_another_parser(tmp_path: Path, empty_cache: Path) -> None:
    from evenmatch.files import models_dir

    folder = tmp_path / "mine"
    shutil.copytree(models_dir() / "en_core_web_sm", folder)
    parser, text = Spacy(str(folder)), "The man who saw the dog near the old house left."
    identity, before = parser.identity(), parse_cached(parser, [text])
    model = folder / "parser" / "model"
    content = bytearray(model.read_bytes())
    weights = np.frombuffer(content[len(content) // 4 : len(content) // 2], np.uint8)
    content[len(content) // 4 : len(content) // 2] = bytes(len(weights))  # equal size
    model.write_bytes(content)
    assert parser.identity() != identity
    assert parse_cached(parser, [text]) != before


def test_an_installed_pipeline_with_other_weights_is_another_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "some_pipeline"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "weights").write_bytes(b"1")
    monkeypatch.syspath_prepend(tmp_path)
    pipeline = SimpleNamespace(meta={"version": "3.8.0"})
    monkeypatch.setattr(spacy_parser, "_load_pipeline", lambda *_: pipeline)
    parser = Spacy("some_pipeline")
    before = parser.identity()
    assert before.startswith("spacy some_pipeline@3.8.0 ")
    (package / "weights").write_bytes(b"2")
    assert parser.identity() != before


@ENGLISH
def test_a_changed_embedded_parser_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenmatch.files import models_dir

    shutil.copytree(models_dir() / "en_core_web_sm", tmp_path / "en_core_web_sm")
    with (tmp_path / "en_core_web_sm" / "parser" / "cfg").open("ab") as file:
        file.write(b" ")
    monkeypatch.setenv("EVENMATCH_MODELS", str(tmp_path))
    with pytest.raises(DataError, match="are not the published ones; fetch them again"):
        Spacy()(["a"])


def test_without_benepar_the_error_suggests_phrase_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    benepar._load_parser.cache_clear()
    monkeypatch.setitem(sys.modules, "benepar", None)
    with pytest.raises(MissingExtraError, match="or use phrase_trees"):
        Benepar()(["a"])


def fake_benepar(tree: str) -> Any:
    """A replacement for benepar whose parser always returns the same tree."""

    class Parser:
        def __init__(self, model: str) -> None:
            if model != "known":
                raise LookupError(f"no model {model}")

        def parse(self, sentence: Any) -> str:
            if len(sentence.words) > 5:
                raise ValueError("too long")
            return tree

    return SimpleNamespace(Parser=Parser, InputSentence=SimpleNamespace)


@ENGLISH
def test_benepar_s_trees_become_phrases(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = "(TOP (S (NP (NNS Cats)) (VP (VBP sleep)) (. .)))"
    monkeypatch.setitem(sys.modules, "benepar", fake_benepar(tree))
    benepar._load_parser.cache_clear()
    [parse] = Benepar("known")(["Cats sleep."])
    assert parse.is_constituency
    assert [n.label for n in iter_nodes(parse.trees[0])] == ["S", "NP", "NNS", "VP", "VBP", "."]
    with pytest.raises(InputError, match=r"benepar cannot parse 'one two .* \(too long\)"):
        Benepar("known")(["one two three four five six"])
    with pytest.raises(InputError, match="does not cover the 2 words"):
        Benepar("known")(["Go away"])
    with pytest.raises(DataError, match="cannot load the benepar model 'other'"):
        Benepar("other")(["a"])
    benepar._load_parser.cache_clear()
