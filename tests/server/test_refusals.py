from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import evenmatch as em
from evenmatch.server.serve import check_address
from evenmatch.types import Pair, Score, Scores
from tests.server.conftest import CHRF, LSA, Serve

GOOD = {"candidates": ["a"], "references": ["a"]}


def refused(answer: Any, status: int, words: str) -> bool:
    return answer.status_code == status and words in answer.json()["detail"]


@pytest.mark.parametrize(
    "name",
    ["bertscore", "bertscore(model='roberta-large')", "./saved", "/etc", f"{LSA} ", "greedy", "x"],
)
@pytest.mark.parametrize("path", ["/score", "/reward"])
def test_only_what_is_offered_can_be_asked_for(serve: Serve, path: str, name: str) -> None:
    answer = serve().post(path, json=GOOD | {"metric": name})
    assert refused(answer, 422, "is not available; available metrics: align(")


def test_only_metrics_that_align_can_be_looked_at(serve: Serve) -> None:
    answer = serve().post("/align", json={"candidate": "a", "reference": "b", "metric": CHRF})
    assert refused(answer, 422, f"{CHRF!r} is not available")


@pytest.mark.parametrize("path", ["/score", "/reward"])
def test_lists_of_different_lengths_are_refused(serve: Serve, path: str) -> None:
    answer = serve().post(path, json={"candidates": ["a", "b"], "references": ["a"]})
    assert refused(answer, 409, "2 candidates but 1 reference; give one string or one list of")


def test_a_metric_without_a_name_is_refused_wherever_it_is_named(serve: Serve) -> None:
    client = serve()
    texts = {"candidates": ["a"], "references": ["a"]}
    for answer in (
        client.post("/score", json={**texts, "metric": ""}),
        client.post("/score", json={**texts, "metric": [""]}),
        client.post("/reward", json={**texts, "metric": ""}),
        client.post("/align", json={"candidate": "a", "reference": "a", "metric": ""}),
        client.post("/get_reward?metric=", json={"query": ["a"], "labels": ["a"]}),
    ):
        assert refused(answer, 422, "metric")


def test_prompts_of_another_number_are_refused(serve: Serve) -> None:
    body = {"query": ["a"], "prompts": ["a", "b"], "labels": ["a"]}
    assert refused(serve().post("/get_reward", json=body), 409, "1 queries but 2 prompts")


def test_a_large_body_is_refused(serve: Serve) -> None:
    client = serve(max_bytes=1000)
    answer = client.post("/score", json={"candidates": ["a" * 2000], "references": ["a"]})
    assert refused(answer, 413, "the limit is 1000")
    assert client.post("/score", json=GOOD).status_code == 200


def test_a_body_announced_as_huge_is_refused_unread(serve: Serve) -> None:
    headers = {"content-length": "99999999999", "content-type": "application/json"}
    answer = serve().post("/score", content=b"{}", headers=headers)
    assert refused(answer, 413, "the body has 99999999999 bytes")


def test_a_large_body_in_pieces_is_refused(serve: Serve) -> None:
    pieces = (b"x" * 600 for _ in range(5))
    answer = serve(max_bytes=1000).post("/score", content=pieces)
    assert refused(answer, 413, "the body has 3000 bytes")


def test_too_many_texts_are_refused(serve: Serve) -> None:
    answer = serve(max_texts=4).post(
        "/score", json={"candidates": ["a"], "references": [["b"] * 4]}
    )
    assert refused(answer, 413, "the request has 5 texts; the limit is 4")


@pytest.mark.parametrize("path", ["/score", "/reward"])
def test_a_long_text_is_refused(serve: Serve, path: str) -> None:
    answer = serve(max_text_length=5).post(
        path, json={"candidates": ["abcdef"], "references": ["a"]}
    )
    assert refused(answer, 413, "a text has 6 characters; the limit is 5")


def test_a_text_too_long_to_look_at_is_refused(serve: Serve) -> None:
    answer = serve(max_aligned_length=5).post(
        "/align", json={"candidate": "abcdef", "reference": ""}
    )
    assert refused(answer, 413, "a text has 6 characters; the limit is 5")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"candidates": ["a"]}',
        b'{"candidates": ["a"], "references": [1]}',
        b'{"candidates": ["a"], "references": [[]]}',
        b'{"candidates": ["a"], "references": ["a"], "device": "cuda"}',
        b'{"candidates": [NaN], "references": ["a"]}',
        b'{"candidates": ["\\ud800"], "references": ["a"]}',
        b'{"\\ud800": NaN}',
        b"\xff\xfe{}",
        b"[" * 100_000,
    ],
)
def test_a_malformed_body_is_refused_with_a_reason(serve: Serve, body: bytes) -> None:
    client = serve()
    answer = client.post("/score", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["detail"]
    assert client.post("/score", json=GOOD).status_code == 200


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", "Basic secret", "Bearer sécret"])
@pytest.mark.parametrize("path", ["/score", "/align", "/reward", "/get_reward"])
def test_a_wrong_token_is_refused(serve: Serve, path: str, given: str) -> None:
    headers = {b"authorization": given.encode()} if given else {}
    answer = serve(token="secret").post(path, json=GOOD, headers=headers)
    assert refused(answer, 401, "Authorization: Bearer TOKEN")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_the_right_token_is_let_in(serve: Serve) -> None:
    client = serve(token="secret")
    assert client.get("/prometheus").status_code == 401
    answer = client.post("/score", json=GOOD, headers={"authorization": "Bearer secret"})
    assert answer.status_code == 200


def test_an_unknown_path_and_a_wrong_method_are_json_too(serve: Serve) -> None:
    client = serve()
    assert refused(client.get("/nowhere"), 404, "Not Found")
    answer = client.get("/score")
    assert refused(answer, 405, "Method Not Allowed")
    assert answer.headers["allow"] == "POST"


@dataclass(frozen=True)
class Slow:
    """A metric that takes its time, refuses one text and breaks down at another."""

    seconds: float = 0.0
    signature: str = "slow"
    higher_is_better: bool = True
    bounds: tuple[float, float] = (0.0, 1.0)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        time.sleep(self.seconds)
        if any(pair.candidate == "refuse" for pair in pairs):
            raise em.InputError("that text is refused")
        if any(pair.candidate == "break" for pair in pairs):
            raise ZeroDivisionError
        return Scores(tuple(Score(1.0) for _ in pairs), "slow")


def test_a_request_that_takes_too_long_is_given_up(serve: Serve) -> None:
    client = serve(allow_list={"slow": Slow(0.3)}, timeout=0.1)
    assert refused(client.post("/score", json=GOOD), 504, "no response within 0.1 seconds")


def test_a_text_the_metric_refuses_is_the_senders_error(serve: Serve) -> None:
    client = serve(allow_list={"slow": Slow()})
    bad = client.post("/score", json={"candidates": ["refuse"], "references": ["a"]})
    assert refused(bad, 422, "that text is refused")


def test_an_error_nobody_foresaw_ends_the_request_and_not_the_server(serve: Serve) -> None:
    client = serve(allow_list={"slow": Slow()})
    bad = client.post("/score", json={"candidates": ["break"], "references": ["a"]})
    assert refused(bad, 500, "internal server error (ZeroDivisionError)")
    assert client.post("/score", json=GOOD).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "example.org", ""])
def test_a_public_address_needs_a_token(host: str) -> None:
    with pytest.raises(em.InputError, match="can be reached from other machines; set a token"):
        check_address(host, "")
    check_address(host, "secret")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_needs_none(host: str) -> None:
    check_address(host, "")


def test_what_is_refused_is_not_sent_back(serve: Serve) -> None:
    body = json.dumps({"candidates": "private words", "references": []})
    answer = serve().post("/score", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert "private" not in answer.text


@pytest.mark.parametrize(
    ("content", "kind", "detail"),
    [
        ('{"candidates": ["a"], "references": ["a"]}', "", "header content-type: application/json"),
        ('{"candidates": ', "application/json", "the body is not JSON (at character 15)"),
        ('{"candidates": ["a"], "references": [[]]}', "application/json", "references.0: List"),
        ('{"candidates": ["a"], "references": [["a", 3]]}', "application/json", "references.0.1: "),
        ('{"candidates": ["a"]}', "application/json", "references: Field required"),
    ],
)
def test_a_wrong_body_is_told_without_terms_of_the_schema(
    serve: Serve, content: str, kind: str, detail: str
) -> None:
    headers = {"content-type": kind} if kind else {}
    response = serve().post("/score", content=content, headers=headers)
    assert response.status_code == 422
    assert detail in response.json()["detail"]
    assert "[" not in response.json()["detail"]
