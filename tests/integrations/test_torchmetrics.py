from __future__ import annotations

import copy
import pickle
import runpy
import sys
from typing import Any

import pytest
import torch
from torchmetrics import MeanMetric, MetricCollection, MetricTracker

import evenmatch as em
import evenmatch.integrations.torchmetrics as module
from evenmatch.integrations.torchmetrics import EvenmatchTorchMetric

LSA = "align(vectors=hashed, alignment=lsa)"
CANDIDATES = ["the cat sat", "", "naïve 猫 🙂", "rain"]
REFERENCES = [["the cat sat down", "a cat"], ["something"], ["naive 猫"], ["rain", "", "snow"]]


def in_batches(metric: Any) -> Any:
    metric.update(CANDIDATES[:1], REFERENCES[:1])
    metric.update(CANDIDATES[1:], REFERENCES[1:])
    return metric


def wanted(metric: str) -> dict[str, float]:
    scores = em.score(CANDIDATES, REFERENCES, metric)
    found = {"value": scores.mean}
    for part in ("precision", "recall"):
        numbers = [getattr(segment, part) for segment in scores.segments]
        if None not in numbers:
            found[part] = sum(numbers) / 4
    return found if scores.corpus is None else {**found, "corpus": scores.corpus}


@pytest.mark.parametrize("metric", [LSA, "align(vectors=hashed(weights=idf))", "chrf", "rouge1"])
def test_batches_together_score_what_the_whole_scores(metric: str) -> None:
    found = in_batches(EvenmatchTorchMetric(metric)).compute()
    assert {name: number.item() for name, number in found.items()} == pytest.approx(
        wanted(metric), abs=1e-6
    )


def test_texts_come_back_as_they_were() -> None:
    pairs = in_batches(EvenmatchTorchMetric(LSA)).pairs()
    assert [pair.candidate for pair in pairs] == CANDIDATES
    assert [list(pair.references) for pair in pairs] == REFERENCES


def test_forward_gives_the_batch_and_keeps_the_whole() -> None:
    metric = EvenmatchTorchMetric(LSA)
    first = metric(CANDIDATES[:1], REFERENCES[:1])
    metric(CANDIDATES[1:], REFERENCES[1:])
    alone = em.score(CANDIDATES[:1], REFERENCES[:1], LSA).mean
    assert first["value"].item() == pytest.approx(alone)
    assert metric.compute()["value"].item() == pytest.approx(wanted(LSA)["value"])


def test_reset_forgets_everything() -> None:
    metric = in_batches(EvenmatchTorchMetric(LSA))
    metric.reset()
    assert metric.pairs() == []
    metric.update(["a"], ["a"])
    assert metric.compute()["value"].item() == pytest.approx(1)


def test_one_text_will_do_for_a_list_of_one() -> None:
    metric = EvenmatchTorchMetric(LSA)
    metric.update("the cat", "the cat")
    assert metric.compute()["value"].item() == pytest.approx(1)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_goes_on_where_the_first_was(copied: Any) -> None:
    metric = EvenmatchTorchMetric(LSA)
    metric.update(CANDIDATES[:1], REFERENCES[:1])
    again = copied(metric)
    again.update(CANDIDATES[1:], REFERENCES[1:])
    assert again.compute()["value"].item() == pytest.approx(wanted(LSA)["value"])
    assert len(metric.pairs()) == 1


def test_states_can_be_saved_and_loaded() -> None:
    metric = in_batches(EvenmatchTorchMetric(LSA))
    metric.persistent(True)
    other = EvenmatchTorchMetric(LSA)
    other.persistent(True)
    other.load_state_dict(metric.state_dict())
    assert other.pairs() == metric.pairs()


def test_states_of_several_processes_are_joined_in_order() -> None:
    one, two = EvenmatchTorchMetric(LSA), EvenmatchTorchMetric(LSA)
    one.update(CANDIDATES[:3], REFERENCES[:3])
    two.update(CANDIDATES[3:], REFERENCES[3:])
    others = {
        name: (torch.cat(getattr(one, name)), torch.cat(getattr(two, name)))
        for name in ("letters", "lengths", "texts")
    }

    def gathered(mine: torch.Tensor, group: object) -> list[torch.Tensor]:
        return next([own, other] for own, other in others.values() if torch.equal(own, mine))

    with one.sync_context(dist_sync_fn=gathered, distributed_available=lambda: True):
        assert [pair.candidate for pair in one.pairs()] == CANDIDATES
        assert [list(pair.references) for pair in one.pairs()] == REFERENCES


def test_it_works_among_torchmetrics_own() -> None:
    both = MetricCollection({"lsa": EvenmatchTorchMetric(LSA), "ter": EvenmatchTorchMetric("ter")})
    both.update(CANDIDATES, REFERENCES)
    found = both.compute()
    assert found["lsa_value"].item() == pytest.approx(wanted(LSA)["value"])
    assert found["ter_corpus"].item() == pytest.approx(wanted("ter")["corpus"])
    average = MeanMetric()
    average.update(found["lsa_value"])
    assert average.compute().item() == pytest.approx(wanted(LSA)["value"])


def test_it_says_which_way_is_better() -> None:
    assert EvenmatchTorchMetric(LSA).higher_is_better is True
    assert EvenmatchTorchMetric("ter").higher_is_better is False
    assert MetricTracker(EvenmatchTorchMetric("ter")).maximize is False


def test_run_settings_are_passed_on() -> None:
    told: list[tuple[int, int]] = []
    metric = EvenmatchTorchMetric(
        LSA, run={"progress": lambda done, total: told.append((done, total))}
    )
    in_batches(metric).compute()
    assert told == [(4, 4)]


@pytest.mark.filterwarnings(
    "ignore:The ``compute`` method of metric EvenmatchTorchMetric was called before"
)
def test_nothing_added_is_refused() -> None:
    with pytest.raises(em.InputError, match="nothing to score"):
        EvenmatchTorchMetric(LSA).compute()


def test_without_torchmetrics_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    with pytest.raises(em.MissingExtraError, match=r"pip install 'evenmatch\[torchmetrics\]'"):
        runpy.run_path(str(module.__file__))


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(em.UnknownNameError, match="unknown metric 'bertscre'"):
        EvenmatchTorchMetric("bertscre")
    with pytest.raises(em.InputError, match="2 candidates but 1 reference"):
        EvenmatchTorchMetric(LSA).update(["a", "b"], ["a"])
