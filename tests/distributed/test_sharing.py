"""Uses whose pairs are scored by workers: the same numbers as in one process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.distributed.pool import ShardFailed, ShardTask, WorkerJob
from evenmatch.distributed.processes import Processes
from evenmatch.distributed.session import worker_session
from evenmatch.registry import spec
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.types import Pair, Run
from tests.distributed.conftest import METRICS, Here, records

PAIRS = [Pair(row["candidate"], tuple(row["references"]), "a cat") for row in records(30)]
SPECS = [*METRICS, "bleu", "keyphrases(which='present')", "fg"]


def shared(specs: Sequence[str], pairs: Sequence[Pair], **settings: Any) -> list[em.Scores]:
    with worker_session(**{"on": Here(), "shard_rows": 7, **settings}) as on:
        return score_metrics([as_metric(each) for each in specs], pairs, Run(on=on))


def test_scores_counts_and_corpus_scores_are_those_of_one_process() -> None:
    local = score_metrics([as_metric(each) for each in SPECS], PAIRS, Run())
    for mine, theirs in zip(shared(SPECS, PAIRS), local, strict=True):
        counts, wanted = mine.counts, theirs.counts
        assert mine.segments == theirs.segments
        assert mine.signature == theirs.signature
        assert mine.corpus == pytest.approx(theirs.corpus, abs=1e-12)
        assert (counts is None) == (wanted is None)
        assert counts is None or (counts == wanted).all()


def test_idf_is_counted_over_all_shards() -> None:
    metric = "align(vectors=hashed(weights=idf))"
    mine = shared([metric], PAIRS)[0]
    assert mine == score_metrics([as_metric(metric)], PAIRS, Run())[0]


def test_any_text_travels() -> None:
    odd = [Pair("\u2028 a\n\tb \ud800", ("",)), Pair("", ("\x00", "é"), "")]
    assert shared(["chrf"], odd)[0] == score_metrics([as_metric("chrf")], odd, Run())[0]


def test_a_number_that_is_none_comes_back_as_it_went() -> None:
    from evenmatch.distributed.worker import pack_scores, unpack_scores

    whole = em.Scores((em.Score(float("-inf"), float("nan")), em.Score(0.1)), "s", None)
    (found,) = unpack_scores(pack_scores([whole]))
    assert repr(found) == repr(whole)
    assert found.counts is None


def test_the_same_metric_asked_twice_answers_twice() -> None:
    one, two = shared(["chrf", "chrf"], PAIRS)
    assert one == two


def test_a_corpus_score_that_shards_cannot_give_is_refused() -> None:
    with pytest.raises(em.InputError, match="the corpus score of nist cannot be computed"):
        shared(["nist"], PAIRS)


def test_workers_stay_while_the_metrics_are_the_same() -> None:
    opened = []

    @contextmanager
    def on(job: WorkerJob) -> Any:
        opened.append([name for name, _ in job.metrics])
        with Here()(job) as pool:
            yield pool

    with worker_session(on, shard_rows=20) as elsewhere:
        for metric in ("chrf", "chrf", "ter"):
            em.score(["a"], ["a b"], metric, on=elsewhere)
    assert opened == [[spec(as_metric(name))] for name in ("chrf", "ter")]


def test_parts_that_are_kept_are_not_done_again(tmp_path: Path) -> None:
    seen: list[int] = []
    first = shared(["chrf"], PAIRS, parts=str(tmp_path))
    next(tmp_path.glob("*/part-000002.json")).unlink()
    noted = Here(lambda task: seen.append(task.shard.number))
    assert shared(["chrf"], PAIRS, parts=str(tmp_path), on=noted)[0] == first[0]
    assert seen == [2]


def test_other_pairs_have_parts_of_their_own(tmp_path: Path) -> None:
    shared(["chrf"], PAIRS, parts=str(tmp_path))
    fewer = shared(["chrf"], PAIRS[:20], parts=str(tmp_path))
    assert len(fewer[0].segments) == 20
    assert len(list(tmp_path.iterdir())) == 2


def test_a_pair_that_fails_is_named() -> None:
    def choke(task: ShardTask) -> ShardFailed | None:
        low, high = task.only_rows or (0, task.shard.rows)
        bad = task.shard.number == 1 and low <= 2 < high
        return ShardFailed(task.shard.number, "choked", retryable=False) if bad else None

    with pytest.raises(em.DataError, match=r"1 of 5 shards failed: rows 7 to 13 .* at row 9 "):
        shared(["chrf"], PAIRS, on=Here(choke))


def test_on_takes_only_a_worker_session() -> None:
    with pytest.raises(
        em.InputError, match=r"on takes a session from worker_session\(...\), got Proc"
    ):
        em.score(["a"], ["a"], "chrf", on=Processes(2))


def test_a_shard_of_no_rows_is_refused() -> None:
    with pytest.raises(em.InputError, match="shard_rows must be at least 1, got 0"):
        shared(["chrf"], PAIRS, shard_rows=0)
