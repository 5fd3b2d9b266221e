"""Requests that would take too much memory or time."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evenmatch.distributed.ray_cluster import CONNECT_SECONDS
from evenmatch.registry import CallContext
from evenmatch.scoring.engine import EngineMetric, ReadyMetric, score_each_pair
from evenmatch.server.allow_list import build_allow_list
from evenmatch.server.connections import BACKLOG
from evenmatch.server.security import Limits
from evenmatch.types import Pair, Run, Score
from tests.server.conftest import Serve
from tests.server.test_refusals import GOOD, refused

WORDS = "a b " * 350


@pytest.mark.parametrize("path", ["/score", "/reward"])
def test_a_pair_of_too_many_cells_is_refused(serve: Serve, path: str) -> None:
    client = serve(max_cells=100_000)
    answer = client.post(path, json={"candidates": [WORDS], "references": [WORDS]})
    assert refused(answer, 413, "a pair has 490000 cells (units × units); the limit is 100000")
    assert client.post(path, json=GOOD).status_code == 200


def test_too_many_cells_at_a_time_are_refused(serve: Serve) -> None:
    client = serve(max_cells=490_000)
    one = client.post("/score", json={"candidates": [WORDS], "references": [WORDS]})
    many = client.post("/score", json={"candidates": [WORDS] * 17, "references": [WORDS] * 17})
    assert one.status_code == 200
    assert refused(many, 413, "8330000 cells (units × units); the limit is 7840000, send several")


def test_an_alignment_of_too_many_cells_is_refused(serve: Serve) -> None:
    text = "a b " * 400
    answer = serve().post("/align", json={"candidate": text, "reference": text})
    assert refused(answer, 413, "a pair has 640000 cells (units × units); the limit is 400000")


@pytest.mark.parametrize("path", ["/score", "/align"])
def test_a_large_response_is_refused(serve: Serve, path: str) -> None:
    body: dict[str, Any] = {"candidate": "a b c", "reference": "a b c"}
    if path == "/score":
        body = {"candidates": ["a"] * 20, "references": ["a"] * 20}
    answer = serve(max_response_bytes=400).post(path, json=body)
    assert refused(answer, 413, "bytes; the limit is 400, send fewer or shorter texts")


def test_ter_has_a_bound_of_its_own(serve: Serve) -> None:
    client = serve(allow_list=build_allow_list(["ter"], Run()))
    words = [f"w{n}" for n in range(1000)]
    far = {"candidates": [" ".join(words)], "references": [" ".join(reversed(words))]}
    start = time.monotonic()
    answer = client.post("/score", json=far)
    assert refused(answer, 413, "a pair has 10000000 cells")
    assert time.monotonic() - start < 1
    near = {"candidates": [" ".join(words[:250])], "references": [" ".join(words[10:260])]}
    assert client.post("/score", json=near).status_code == 200


@dataclass(frozen=True)
class SlowPairs(EngineMetric):
    """A metric that takes its time for each pair."""

    scored: list[str] = field(default_factory=list, compare=False)
    bounds: tuple[float, float] = (0.0, 1.0)

    def open(self, context: CallContext) -> ReadyMetric:
        return score_each_pair(self._score)

    def _score(self, pair: Pair) -> Score:
        time.sleep(0.05)
        self.scored.append(pair.candidate)
        return Score(1.0)


@pytest.mark.parametrize("path", ["/score", "/reward"])
def test_the_work_of_a_request_that_timed_out_is_cancelled(serve: Serve, path: str) -> None:
    metric = SlowPairs()
    client = serve(allow_list={"slow": metric}, timeout=0.3)
    body = {"candidates": ["old"] * 100, "references": ["a"] * 100}
    assert refused(client.post(path, json=body), 504, "no response within 0.3 seconds")
    assert client.post(path, json=GOOD).status_code == 200  # within the same time
    assert metric.scored.count("old") < 12


def test_the_documented_limits_are_the_defaults() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", page, re.MULTILINE))
    limits = Limits()
    assert rows["body"] == f"{limits.max_bytes >> 20} MiB"
    assert rows["response"] == f"{limits.max_response_bytes >> 20} MiB"
    assert rows["unread responses, all together"] == f"{limits.max_unsent_bytes >> 20} MiB"
    assert rows["request line and headers"] == f"{limits.max_head_bytes >> 10} KiB"
    assert rows["connections"] == f"{limits.max_connections}"
    assert rows["pending connections"] == f"{BACKLOG}"
    assert rows["texts in a request"] == f"{limits.max_texts:,}"
    assert rows["characters in a text"] == f"{limits.max_text_length:,}"
    assert rows["characters in a text for `/align`"] == f"{limits.max_aligned_length:,}"
    assert rows["cells (units × units) of a pair"] == f"{limits.max_cells:,}"
    assert rows["cells of a pair for `/align`"] == f"{limits.max_aligned_cells:,}"
    assert rows["queued pairs"] == f"{limits.max_queued_pairs:,}"
    assert rows["time for the head of a request"] == f"{limits.head_timeout:g} s"
    assert rows["time for the response"] == f"{limits.timeout:g} s"
    assert rows["connection to Ray"] == f"{CONNECT_SECONDS:g} s"
