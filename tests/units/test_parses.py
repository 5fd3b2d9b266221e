from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evenmatch.errors import DataError
from evenmatch.registry import CallContext
from evenmatch.types import Parse
from evenmatch.units.parsers.cache import (
    parse_cached,
    parse_from_bytes,
    parse_store,
    parse_to_bytes,
)
from evenmatch.units.parsers.files import ParseFile
from tests.support.parses import BY, HAVING, write_brackets, write_conllu


@dataclass(frozen=True)
class Counted:
    """A parser that records the texts it parses."""

    base: ParseFile
    seen: list[str] = field(default_factory=list)

    def __call__(self, texts: Sequence[str]) -> list[Parse]:
        self.seen.extend(texts)
        return self.base(texts)

    def identity(self) -> str:
        return "counted"


def test_a_text_is_parsed_only_once(tmp_path: Path, empty_cache: Path) -> None:
    parser = Counted(ParseFile(write_conllu(tmp_path)))
    first = parse_cached(parser, [HAVING, BY, HAVING])
    assert parse_cached(parser, [BY, HAVING]) == [first[1], first[0]]
    assert parser.seen == [HAVING, BY]
    assert parse_store().usage()[0] == 2
    assert (empty_cache / "parses").is_dir()


@pytest.mark.parametrize("brackets", [False, True])
def test_a_parse_survives_serialization(tmp_path: Path, brackets: bool) -> None:
    tree = "(S (NP (`` ``) (NN x) ('' '')) (VP (VBZ is) (NP (DT a) (NN y))))"
    text = "“x” is a y" if brackets else HAVING
    file = write_brackets(tmp_path, tree) if brackets else write_conllu(tmp_path)
    [parse] = ParseFile(file)([text])
    assert parse_from_bytes(text, parse_to_bytes(parse)) == parse


def test_a_changed_parse_file_gives_its_new_trees(tmp_path: Path, empty_cache: Path) -> None:
    parser = ParseFile(write_conllu(tmp_path, {BY: (2, 0, 4, 2, 2, 7, 5, 2)}))
    before = parse_cached(parser, [BY])
    write_conllu(tmp_path, {BY: (2, 0, 4, 2, 4, 7, 5, 2)})  # of equal size
    after = parse_cached(parser, [BY])
    assert after != before
    write_conllu(tmp_path, {BY: (2, 0, 4, 2, 2, 7, 5, 2)})
    assert parse_cached(parser, [BY]) == before


def test_a_parse_file_named_by_content_is_refused_after_it_changed(
    tmp_path: Path, empty_cache: Path
) -> None:
    pinned, _ = ParseFile(write_conllu(tmp_path, {BY: (2, 0, 4, 2, 2, 7, 5, 2)})).resolve(
        CallContext()
    )
    assert pinned.path.startswith("sha256:")
    assert parse_cached(pinned, [BY])
    write_conllu(tmp_path, {BY: (2, 0, 4, 2, 4, 7, 5, 2)})
    with pytest.raises(DataError, match="no longer has the content sha256:"):
        parse_cached(pinned, [BY])


def test_trees_of_a_file_that_changes_meanwhile_are_not_stored(
    tmp_path: Path, empty_cache: Path
) -> None:
    @dataclass(frozen=True)
    class Changing:
        base: ParseFile

        def __call__(self, texts: Sequence[str]) -> list[Parse]:
            write_conllu(tmp_path, {BY: (2, 0, 4, 2, 4, 7, 5, 2)})
            return self.base(texts)

        def identity(self) -> str:
            return self.base.identity()

    parser = Changing(ParseFile(write_conllu(tmp_path, {BY: (2, 0, 4, 2, 2, 7, 5, 2)})))
    with pytest.raises(DataError, match="changed while texts were parsed; score again"):
        parse_cached(parser, [BY])
    assert parse_store().usage()[0] == 0


def test_an_unusable_store_does_not_prevent_parsing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("EVENMATCH_CACHE", str(blocked))
    parser = Counted(ParseFile(write_conllu(tmp_path)))
    for _ in range(2):
        assert parse_cached(parser, [BY])[0].text == BY
    assert parser.seen == [BY, BY]
