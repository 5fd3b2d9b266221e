from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

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
