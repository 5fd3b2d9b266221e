"""The viewer on a real server: typed texts are aligned and sent nowhere else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import evenmatch as em
from tests.support.browser import Open
from tests.support.server_process import LSA, running


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running() as (_, found):
        yield found


def test_texts_that_are_typed_are_aligned(address: str, visit: Open) -> None:
    seen = visit(address, home=address)
    seen.get_by_role("textbox", name="Candidate A").fill("a small dog")
    seen.get_by_role("textbox", name="Reference").fill("a dog")
    wanted = em.align("a small dog", "a dog", LSA)
    seen.get_by_text(f"score {wanted.score.value:.4f}").first.wait_for()
    assert seen.locator("path.link").count() == len(wanted.pairs)


def test_an_address_holds_the_texts_and_the_second_candidate(address: str, visit: Open) -> None:
    seen = visit(f"{address}#c=a+cat&b=a+dog&r=a+dog", home=address)
    seen.get_by_text("B scores higher than A").wait_for()
    assert seen.get_by_label("Candidate B").input_value() == "a dog"


def test_a_locked_server_is_opened_by_its_token(visit: Open) -> None:
    with running("--token", "secret") as (_, locked):
        # The browser notes the first answer in its console by itself.
        seen = visit(f"{locked}#c=&r=", home=locked, expected="401")
        seen.get_by_label("Token").fill("secret")
        seen.get_by_text("score 1.0000").first.wait_for()


def test_the_heat_map_has_its_colours_under_the_policy_of_the_server(
    address: str, visit: Open
) -> None:
    seen = visit(f"{address}#c=a+dog&r=a+dog&v=map", home=address)
    cell = seen.locator("td.heat.pair").first
    cell.wait_for()
    assert cell.evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(8, 81, 156)"
    assert seen.locator("table").evaluate("e => getComputedStyle(e).borderCollapse") == "collapse"


def test_a_script_that_gets_into_the_page_does_not_run(address: str, visit: Open) -> None:
    seen = visit(address, home=address, expected="Content Security Policy")
    run = """() => {
      const script = document.createElement("script");
      script.textContent = "window.injected = true";
      document.body.append(script);
      document.body.insertAdjacentHTML("beforeend", "<p style='color: red' id=styled>x</p>");
      const colour = getComputedStyle(document.getElementById("styled")).color;
      return [window.injected === true, colour === "rgb(255, 0, 0)"];
    }"""
    assert seen.evaluate(run) == [False, False]
