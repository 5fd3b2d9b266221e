"""debias: train an adapter that makes a metric fairer, and judge it before and after."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.cards import Made, write_card
from evenmatch.data.fair_pairs import FairSet, read_fair_pairs
from evenmatch.data.fair_texts import FairPair
from evenmatch.data.sentence_pairs import read_sentence_pairs
from evenmatch.data.tables import Table
from evenmatch.errors import InputError
from evenmatch.registry import spec
from evenmatch.scoring.saved import HERE, write_metric
from evenmatch.scoring.settings import make_run
from evenmatch.scoring.together import as_metric
from evenmatch.types import Metric, Pair, Run
from evenmatch.uses.fair.audit import audit
from evenmatch.uses.fair.blindness import Case, penalties
from evenmatch.uses.fair.differentiable import adapted_metric, differentiable
from evenmatch.uses.fair.lesson import Lesson, Material, material_of
from evenmatch.uses.fair.training import train
from evenmatch.vectors.adapter_files import WEIGHTS, save_adapter

ATTRIBUTE = "gender"
Sentences = str | Sequence[Pair]


def debias(
    metric: str | Metric,
    out: str | PathLike[str],
    sentences: Sequence[Sentences] = (),
    *,
    templates: bool = True,
    lesson: Lesson = Lesson(),
    judge_on: Sequence[str | FairSet] = ("",),
    **run: Any,
) -> Made:
    """Train a gender adapter through a metric, save it in `out`, and audit before and after.

    `sentences` are sets of sentence pairs (see `read_sentence_pairs`); they give counterfactuals
    and keep the metric what it is. `templates` adds our own sentences about occupations. `judge_on`
    are sets to audit on, '' for the pairs that come with evenmatch; none of their texts is trained
    on.
    Training that was interrupted goes on where it was. `run` is as in `score`.
    """
    folder, how = _place(out), make_run(**run)
    plain = as_metric(metric)
    sets = [each if isinstance(each, FairSet) else _gender(each) for each in judge_on]
    pairs = [p for s in sentences for p in (read_sentence_pairs(s) if isinstance(s, str) else s)]
    material = unseen(material_of(pairs, templates=templates), sets)
    through = differentiable(plain, how)
    start = time.monotonic()
    adapter = train(through, material, lesson, folder, how.progress)
    facts = _facts(material, lesson, through.label, time.monotonic() - start)
    save_adapter(adapter, folder, {"attribute": ATTRIBUTE, **facts})
    return _carded(folder, plain, facts, sets, how)


def _facts(material: Material, lesson: Lesson, model: str, seconds: float) -> dict[str, str]:
    return {
        "trained on": f"{len(material.alike)} counterfactuals, {len(material.kept)} sentence pairs",
        "model": model,
        "lesson": ", ".join(f"{k} {v:g}" for k, v in asdict(lesson).items()),
        "time": f"{seconds:.0f} s",
    }


def _carded(
    folder: Path, plain: Metric, facts: dict[str, str], sets: Sequence[FairSet], run: Run
) -> Made:
    """The folder as a metric of its own, judged, with its card."""
    adapted = adapted_metric(plain, str(folder))
    write_metric(folder, spec(adapted).replace(repr(str(folder)), HERE))
    table, rows = judged(plain, adapted, sets, run)
    recipe = adapted.signature
    made = Made(
        folder,
        "A debiasing adapter",
        recipe,
        facts,
        {"Before and after": table},
        {"folder": str(folder), "signature": recipe, **facts, "rows": rows},
    )
    write_card(made)
    return made


def unseen(material: Material, sets: Sequence[FairSet]) -> Material:
    """The material without any text that a metric will be audited with."""
    audited = {
        text
        for each in sets
        for pairs in each.pairs.values()
        for pair in pairs
        for side in pair.both
        for text in (side.candidate, *side.references)
    }
    alike = (c for c in material.alike if not audited & {c.original, c.swapped, c.neutral})
    kept, minded = (
        tuple(pair for pair in pairs if not audited & set(pair))
        for pairs in (material.kept, material.minded)
    )
    return Material(tuple(alike), kept, minded)


def judged(
    plain: Metric, adapted: Metric, sets: Sequence[FairSet], run: Run
) -> tuple[Table, list[dict[str, Any]]]:
    """Bias, and what a wrong gender costs, before and after on each set."""
    how: dict[str, Any] = {
        "device": run.device,
        "threads": run.threads,
        "batch_tokens": run.batch_tokens,
    }
    rows: list[dict[str, Any]] = []
    for each in sets:
        for attribute, pairs in each.pairs.items():
            one = FairSet(each.name, {attribute: pairs})
            before, after = audit([plain, adapted], one, worst=0, **how).biases
            costs = penalties([plain, adapted], gendered(pairs), run)
            for what, values in (
                ("bias", (before.bias, after.bias)),
                ("raw difference", (before.raw, after.raw)),
                ("stereotype", (before.stereotype, after.stereotype)),
                ("cost of a wrong gender", (costs[0], costs[1])),
            ):
                rows.append(
                    {"data": each.name, "what": what, "before": values[0], "after": values[1]}
                )
    cells = [
        [r["data"], r["what"], f"{r['before']:.4f}", f"{r['after']:.4f}", _change(r)] for r in rows
    ]
    return [["data", "what", "before", "after", "change"], *cells], rows


def gendered(pairs: Sequence[FairPair]) -> list[Case]:
    """Each candidate as the reference: itself is right, the other of its pair is wrong."""
    return [
        Case(Pair(right.candidate, (right.candidate,)), Pair(wrong.candidate, (right.candidate,)))
        for pair in pairs
        for right, wrong in (pair.both, pair.both[::-1])
    ]


def _change(row: dict[str, Any]) -> str:
    before, after = row["before"], row["after"]
    return f"{100 * (after - before) / abs(before):+.1f} %" if before else "-"


def _gender(data: str) -> FairSet:
    return read_fair_pairs(data, attributes=[ATTRIBUTE] if data in ("", "metric-fairness") else [])


def _place(out: str | PathLike[str]) -> Path:
    """A folder to write to, in which no adapter is yet; one half trained may be."""
    folder = Path(out).expanduser()
    if folder.is_file() or (folder / WEIGHTS).is_file():
        raise InputError(f"{folder} is there already; name a new folder for the adapter")
    return folder
