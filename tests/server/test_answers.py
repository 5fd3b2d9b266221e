from __future__ import annotations

import pytest

import evenmatch as em
from evenmatch.data.scores import score_to_record
from evenmatch.server.allow_list import build_allow_list
from evenmatch.types import Run
from evenmatch.vectors.weighting import idf_store
from tests.server.conftest import CHRF, GREEDY, LSA, Serve

CANDIDATES = ["the the cat", "a dog", "", "naïve 猫 😀"]
REFERENCES = [["the cat sat", "the cat"], ["a dog"], ["something", "x"], ["猫"]]


@pytest.mark.parametrize("name", [LSA, GREEDY, CHRF])
@pytest.mark.parametrize("several", [True, False])
def test_scores_equal_the_library(serve: Serve, name: str, several: bool) -> None:
    references = REFERENCES if several else [r[0] for r in REFERENCES]
    body = {"candidates": CANDIDATES, "references": references, "metric": name}
    found = serve().post("/score", json=body).json()["metrics"][name]
    wanted = em.score(CANDIDATES, references, name)
    assert found["segments"] == [score_to_record(s) for s in wanted.segments]
    assert (found["mean"], found["corpus"]) == (wanted.mean, wanted.corpus)
    assert found["signature"] == wanted.signature


def test_several_metrics_come_under_their_names(serve: Serve) -> None:
    body = {"candidates": ["a b"], "references": ["a"], "metric": [CHRF, LSA]}
    found = serve().post("/score", json=body).json()["metrics"]
    assert list(found) == [CHRF, LSA]


def test_the_first_metric_is_meant_where_none_is_named(serve: Serve) -> None:
    found = serve().post("/score", json={"candidates": ["a b"], "references": ["a"]}).json()
    assert list(found["metrics"]) == [LSA]


def test_rewards_equal_the_library_and_name_odd_rows(serve: Serve) -> None:
    client = serve()
    body = {"candidates": CANDIDATES, "references": REFERENCES, "metric": GREEDY}
    found = client.post("/reward", json=body).json()
    pairs = [em.Pair(c, tuple(r)) for c, r in zip(CANDIDATES, REFERENCES, strict=True)]
    assert found["rewards"] == em.reward(GREEDY)(pairs)
    assert found["odd"] == [2]
    assert "evenmatch_odd_rewards_total 1.0" in client.get("/prometheus").text


def test_openrlhf_is_answered_in_its_own_form(serve: Serve) -> None:
    body = {
        "query": ["Say it: a dog", "Say it: "],
        "prompts": ["Say it: ", "Say it: "],
        "labels": ["a dog", "a cat"],
    }
    found = serve().post("/get_reward", params={"metric": LSA}, json=body).json()
    assert found["rewards"] == found["scores"] == [pytest.approx(1.0), 0.0]
    assert found["extra_logs"] == {"odd": [0.0, 1.0]}


def test_an_alignment_equals_the_library(serve: Serve) -> None:
    texts = {"candidate": "the the cat", "reference": "the cat sat"}
    found = serve().post("/align", json=texts | {"metric": LSA}).json()
    wanted = em.align(**texts, metric=LSA)
    assert found["candidate_units"] == wanted.candidate_units
    assert found["pairs"] == [list(pair) for pair in wanted.pairs]
    assert found["score"] == score_to_record(wanted.score)
    assert found["signature"] == wanted.signature
    assert sum(found["gained"]) / 3 == pytest.approx(wanted.score.precision, abs=1e-4)
    assert sum(found["covered"]) / 3 == pytest.approx(wanted.score.recall, abs=1e-4)


@pytest.mark.parametrize("candidate", ["", "a"])
def test_nothing_can_be_aligned_too(serve: Serve, candidate: str) -> None:
    found = serve().post("/align", json={"candidate": candidate, "reference": ""})
    assert (found.status_code, found.json()["reference_units"]) == (200, [])


def test_the_list_says_what_is_offered(serve: Serve) -> None:
    cards = serve().get("/metrics").json()["metrics"]
    assert [(c["name"], c["aligns"]) for c in cards] == [(LSA, True), (GREEDY, True), (CHRF, False)]
    assert all(card["about"] for card in cards)


def test_the_description_names_what_is_offered(serve: Serve) -> None:
    schemas = serve().get("/openapi.json").json()["components"]["schemas"]
    assert schemas["RewardRequest"]["properties"]["metric"]["enum"] == [LSA, GREEDY, CHRF]
    assert schemas["AlignRequest"]["properties"]["metric"]["enum"] == [LSA, GREEDY]


def test_health_needs_no_token(serve: Serve) -> None:
    answer = serve(token="secret").get("/health")
    assert answer.json() == {"status": "ok", "version": em.__version__}


def test_metrics_are_in_the_format_of_prometheus(serve: Serve) -> None:
    client = serve()
    client.post("/score", json={"candidates": ["a", "b"], "references": ["a", "b"]})
    client.get("/nowhere/at/all")
    lines = client.get("/prometheus").text.splitlines()
    assert 'evenmatch_requests_total{path="/score",status="200"} 1.0' in lines
    assert 'evenmatch_requests_total{path="other",status="404"} 1.0' in lines
    assert "evenmatch_pairs_total 2.0" in lines
    assert 'evenmatch_request_seconds_bucket{le="+Inf",path="/score"} 1.0' in lines


def test_an_idf_table_is_counted_from_its_own_request(serve: Serve) -> None:
    counted = "align(vectors=hashed(weights=idf))"
    allow_list = build_allow_list([counted], Run())
    before = idf_store().usage()
    body = {"candidates": CANDIDATES, "references": [f"{text} once" for text in REFERENCES]}
    found = serve(allow_list=allow_list).post("/score", json=body).json()["metrics"][counted]
    assert idf_store().usage() == before  # requests write no tables to disk
    assert found["mean"] == em.score(CANDIDATES, body["references"], counted).mean


def test_a_metric_that_cannot_run_is_an_error_at_the_start() -> None:
    with pytest.raises(em.EvenmatchError, match="nowhere"):
        build_allow_list(["bertscore(model='nowhere')"], Run())
