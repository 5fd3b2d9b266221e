from __future__ import annotations

import json
from pathlib import Path

from evenmatch.units.parsers.cache import parse_cached
from evenmatch.units.parsers.files import ParseFile
from tests.cli.conftest import Command
from tests.support.parses import BY, write_conllu


def test_parses_are_counted_and_cleared_with_the_vectors(
    command: Command, empty_cache: Path, tmp_path: Path
) -> None:
    parse_cached(ParseFile(write_conllu(tmp_path)), [BY])
    before = json.loads(command("cache", "info", "--json").out)
    assert (before["entries"], before["parses"]["entries"]) == (0, 1)
    assert before["parses"]["folder"] == str(empty_cache / "parses")
    assert len(command("cache", "info").out.splitlines()) == 3
    assert command("cache", "clear").code == 0
    assert json.loads(command("cache", "info", "--json").out)["parses"]["entries"] == 0


def test_a_folder_that_is_named_holds_vectors_only(command: Command, tmp_path: Path) -> None:
    assert "parses" not in json.loads(
        command("cache", "info", "--json", "--folder", str(tmp_path)).out
    )
