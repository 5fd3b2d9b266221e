"""One call opens each metric once, and scoring passes through few modules."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

import evenmatch as em
from evenmatch.registry import CallContext, build
from evenmatch.registry.opening import count_idf
from evenmatch.types import Pair, Run

MOST_MODULES = 22

# Modules are imported beforehand: what runs on import is not part of scoring.
TRACE = """
import collections, json, sys
import evenmatch as em
import evenmatch.api
for name in ("bertscore", "f_disc"):
    em.build(name)
calls = collections.Counter()

def note(frame, event, _):
    code = frame.f_code
    if event == "call" and "/evenmatch/" in code.co_filename and code.co_name != "<module>":
        module = code.co_filename.split("/evenmatch/")[-1]
        calls[module + " " + code.co_name] += 1

sys.setprofile(note)
em.score(["the the cat", "A cat sat."], [["the cat"], ["A cat was sitting.", "There sat a cat."]],
         ["bertscore", "f_disc"])
sys.setprofile(None)
print(json.dumps(calls))
"""


@pytest.mark.model
def test_scoring_passes_through_few_modules_and_finds_the_checkpoint_once() -> None:
    found = subprocess.run(
        [sys.executable, "-c", TRACE], capture_output=True, text=True, check=True
    )
    calls: dict[str, int] = json.loads(found.stdout)
    modules = {name.split(" ")[0] for name in calls}
    assert len(modules) <= MOST_MODULES, sorted(modules)
    assert calls["models/checkpoints.py find_checkpoint"] == 1


def test_equal_parts_are_opened_once() -> None:
    opened: list[object] = []

    @dataclass(frozen=True)
    class Recipe:
        name: str

        def open(self, context: CallContext) -> object:
            opened.append(self)
            return object()

    context = CallContext()
    first = context.open(Recipe("a"))
    assert context.open(Recipe("a")) is first
    assert context.open(Recipe("b")) is not first
    assert CallContext().open(Recipe("a")) is not first
    assert opened == [Recipe("a"), Recipe("b"), Recipe("a")]


def test_idf_is_counted_inside_any_metric() -> None:
    pairs = [Pair("a b", ("a c",)), Pair("a", ("a d",))]
    metric = build("blend(parts=[align(vectors=hashed(weights=idf)), chrf], weights=[1.0, 1.0])")
    counted = count_idf(metric, CallContext(pairs=pairs))
    assert counted.parts[0].vectors.weights.table
    assert counted.parts[1] == metric.parts[1]
    assert count_idf(counted, CallContext()) == counted


def test_metrics_in_a_blend_share_the_texts_of_the_call() -> None:
    seen: list[str] = []

    @em.register("vectors", "noting_texts")
    @dataclass(frozen=True)
    class Noting:
        def __call__(self, batch: Sequence[em.Units]) -> list[em.Embedded]:
            seen.extend(units.text for units in batch)
            return em.Hashed()(batch)

    alone = em.AlignMetric(vectors=Noting(), alignment=em.Lsa())
    blend = build("blend(parts=[align(vectors=noting_texts), chrf], weights=[0.5, 0.5])")
    em.score(["a b", "c"], [["a", "b"], ["c d"]], [alone, blend])
    assert sorted(seen) == sorted({"a b", "c", "a", "b", "c d"})


def test_a_plug_in_without_open_is_called_with_all_pairs() -> None:
    sizes: list[int] = []

    class Count:
        signature, higher_is_better, bounds = "count", True, (0.0, 1.0)

        def __call__(self, pairs: Sequence[Pair]) -> em.Scores:
            sizes.append(len(pairs))
            return em.Scores(tuple(em.Score(0.5) for _ in pairs), "count", corpus=0.25)

    scores = em.score(["a"] * 5000, ["b"] * 5000, Count())
    assert (scores.corpus, sizes) == (0.25, [5000])


def test_counts_come_back_in_input_order() -> None:
    pairs = [Pair("a b c", (f"a b {i % 3}",)) for i in range(7)]
    metric = build("bleu(order=2)")
    together = metric(pairs, Run()).counts
    assert together.tolist() == [metric([pair]).counts[0].tolist() for pair in pairs]
