"""The viewer at a real server: what is typed is aligned, and goes nowhere else."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import evenmatch as em
from tests.viewer.conftest import Open

LSA = "align(vectors=hashed, alignment=lsa)"
GREEDY = "align(vectors=hashed)"


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """A server of its own; gives its address."""
    command = [sys.executable, "-m", "evenmatch", "serve", "-m", LSA, "-m", GREEDY, "--port", "0"]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found
        try:
            yield found[0]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as found:
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
    with serving("--token", "secret") as locked:
        # The browser notes the first answer in its console by itself.
        seen = visit(f"{locked}#c=&r=", home=locked, expected="401")
        seen.get_by_label("Token").fill("secret")
        seen.get_by_text("score 1.0000").first.wait_for()
