from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.support.parses import BY, HAVING


@pytest.mark.model("minilm", "en_core_web_sm")
@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("t.svg", b"<?xml"),
        ("t.png", b"\x89PNG"),
        ("t.pdf", b"%PDF"),
        ("t.html", b"<!doctype"),
    ],
)
def test_align_draws_trees_for_a_structure_metric(
    command: Command, name: str, beginning: bytes
) -> None:
    said = command("align", BY, HAVING, "-m", "struct_dep_head", "--plot", name)
    assert said.code == 0
    content = Path(name).read_bytes()
    assert content[: len(beginning)].lower() == beginning.lower()
    assert name in ("t.png", "t.pdf") or b'class="trees"' in content


@pytest.mark.model("minilm", "en_core_web_sm")
def test_an_empty_text_draws_one_tree(command: Command) -> None:
    assert command("align", "", HAVING, "-m", "struct_con_head", "--plot", "t.svg").code == 0


@pytest.mark.model
def test_a_parser_that_is_not_there_is_one_line(command: Command) -> None:
    metric = "struct_dep(parser=spacy(pipeline='xx_no_such'))"
    said = command("align", "a", "b", "-m", metric)
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert "cannot load the spaCy pipeline 'xx_no_such'" in said.err
