from __future__ import annotations

import pytest
from tools.pages import PAGES
from tools.pages import lisa as page

ROW = {
    "group": "",
    "negatives": "shuffled",
    "counted": False,
    "encoder": "e",
    "length": 0,
    "algorithm": "lsa",
    "aligned": 0.5,
    "p": 0.01,
    "beyond_greedy": {"value": 0.25, "low": 0.1, "high": 0.4},
}


def test_the_page_is_what_its_results_give() -> None:
    text = (PAGES / "lisa.md").read_text("utf-8")
    assert text == page.fill_page(page.read_results()), "run: python -m tools.pages.lisa"
    assert "{{" not in text


def test_every_result_names_the_command_of_its_study() -> None:
    found = page.read_results()
    assert {name: run.command for name, run in page.STUDIES.items()} == {
        name: each["command"] for name, each in found.items()
    }


def test_a_place_shows_a_number_of_a_row() -> None:
    found = {"study": {"pairs": 7, "command": "do it", "rows": [ROW, {**ROW, "counted": True}]}}
    assert page.fill("study pairs", found) == "7"
    assert page.fill("command study", found) == "```text\ndo it\n```"
    assert page.fill("study aligned algorithm=lsa length=0", found) == "0.500"
    significant = page.fill("study beyond_greedy encoder='e' counted=true", found)
    assert significant == "+0.25 [+0.10, +0.40]*"
    with pytest.raises(StopIteration):
        page.fill("study aligned algorithm=greedy", found)
