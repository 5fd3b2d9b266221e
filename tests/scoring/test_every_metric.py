"""Every named metric scores a pair alike whatever the batch, order, neighbours, threads, cache."""

from __future__ import annotations

import inspect
import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.ratings.reading import read_ratings
from evenmatch.distributed.pool import Runner
from evenmatch.distributed.processes import Processes
from evenmatch.distributed.session import worker_session
from evenmatch.errors import EvenmatchError
from evenmatch.registry import find_entry
from tests.distributed.conftest import Here
from tests.support.nasty_texts import NASTY_PAIRS

TextPairs: TypeAlias = Sequence[tuple[str, str]]
NEAR, NEAR_COMPACT = 1e-6, 1e-5
SLOW = ("likelihood",)  # by a causal model of 135 million parameters, on fewer pairs
PLAIN_PAIRS = (
    ("The committee meets again on Friday.", "The panel will meet on Friday."),
    ("A man plays the guitar, badly!", "A man is playing guitar."),
    ("neural networks; parsing", "neural network; graph theory; parsing"),
    ("Unbelievably, prices fell by 3 percent.", "Prices were unbelievably down three percent."),
    ("It rained all day long in the north.", "In the north it rained all day."),
)


def usable_metrics(*, slow: bool) -> list[str]:
    """The names of all metrics that need no settings and can run here."""
    found = []
    for name in em.names("metric"):
        settings = inspect.signature(find_entry(name).factory).parameters.values()
        if all(s.default is not s.empty for s in settings) and (slow or name not in SLOW):
            try:
                em.score(["a short text"], ["a short text"], name)
            except EvenmatchError:
                continue
            found.append(name)
    return found


def score_all(names: Sequence[str], pairs: TextPairs, **run: Any) -> dict[str, list[float]]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* truncated at the limit")
        warnings.filterwarnings("ignore", message="the references look like")
        found = em.score([c for c, _ in pairs], [r for _, r in pairs], list(names), **run)
    return {name: [s.value for s in scores.segments] for name, scores in found.items()}


def assert_equal(
    found: dict[str, list[float]],
    plain: dict[str, list[float]],
    rows: Sequence[int],
    *,
    compact: bool = False,
) -> None:
    wrong = []
    for name, values in found.items():
        near = NEAR_COMPACT if compact else NEAR
        wanted = np.array([plain[name][row] for row in rows])
        gaps = np.abs(np.array(values) - wanted)
        same = (gaps <= near * np.maximum(1.0, np.abs(wanted))) | (np.array(values) == wanted)
        wrong += [(name, rows[i], values[i], wanted[i]) for i in np.flatnonzero(~same).tolist()]
    assert not wrong, f"{len(wrong)} scores differ: {wrong[:5]}"


def check_invariance(
    names: Sequence[str], pairs: TextPairs, alone: int, folder: Path, runner: Runner
) -> None:
    """Score the pairs in every way; `alone` of them are also scored one by one."""
    plain, every = score_all(names, pairs), list(range(len(pairs)))
    for tokens in (64, 20_000):
        assert_equal(score_all(names, pairs, batch_tokens=tokens), plain, every)
    assert_equal(score_all(names, pairs, threads=2), plain, every)
    shuffled = random.Random(0).sample(every, len(every))
    assert_equal(score_all(names, [pairs[i] for i in shuffled], batch_tokens=300), plain, shuffled)
    half = shuffled[: len(every) // 2]
    assert_equal(score_all(names, [pairs[i] for i in half]), plain, half)
    for i in random.Random(1).sample(every, alone):
        assert_equal(score_all(names, [pairs[i]]), plain, [i])
    exact, compact = em.Cache(str(folder / "exact"), exact=True), str(folder / "compact")
    for _ in ("miss", "hit"):
        assert_equal(score_all(names, pairs, cache=exact), plain, every)
    missed = score_all(names, pairs, cache=compact)
    assert_equal(missed, plain, every, compact=True)
    assert_equal(score_all(names, pairs, cache=compact), missed, every)
    # A corpus score that is not a function of counts cannot be computed from shards.
    trial = em.score(["a cat"], ["a dog"], list(names))
    sharded = [n for n in names if trial[n].corpus is None or trial[n].counts is not None]
    with worker_session(runner, shard_rows=len(pairs) // 4) as on:
        assert_equal(score_all(sharded, pairs, on=on), plain, every)


@pytest.mark.model
def test_every_metric_scores_a_pair_by_itself(tmp_path: Path) -> None:
    names = usable_metrics(slow=False)
    assert {"bertscore", "moverscore", "wmt_blend", "bleu", "fg"} <= set(names)
    check_invariance(names, [*PLAIN_PAIRS, *NASTY_PAIRS[::5]], 3, tmp_path, Here())


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.model
@pytest.mark.parametrize(("slow", "real", "nasty"), [(False, 300, 50), (True, 60, 10)])
def test_every_metric_scores_real_and_nasty_pairs_by_themselves(
    data: Path, tmp_path: Path, slow: bool, real: int, nasty: int
) -> None:
    names = [name for name in usable_metrics(slow=slow) if (name in SLOW) is slow]
    pairs = [*real_pairs(real), *NASTY_PAIRS[:: len(NASTY_PAIRS) // nasty]]
    check_invariance(names, pairs, min(20, real // 3), tmp_path, Processes(2))


def real_pairs(count: int) -> list[tuple[str, str]]:
    """Pairs sampled from the rated outputs of WMT17."""
    found = []
    for rated in read_ratings("wmt17-da"):
        for pair in rated.pairs(rated.cells(rated=True)):
            found.append((pair.candidate, pair.references[0]))
    return random.Random(0).sample(found, count)
