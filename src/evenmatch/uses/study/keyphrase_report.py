"""The keyphrase experiment as a folder to look at: tables, distributions, curves, claims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenmatch.stats.arrays import Floats
from evenmatch.uses.report.plot_lines import curves
from evenmatch.uses.study.claims import sentence
from evenmatch.uses.study.keyphrase_arms import MLE, Design
from evenmatch.uses.study.keyphrase_claims import checked
from evenmatch.uses.study.keyphrase_corpus import Corpus
from evenmatch.uses.study.keyphrase_runs import Result, Runs, by_arm
from evenmatch.uses.study.keyphrase_table import (
    Scored,
    differences,
    scored,
    table_one,
    table_two,
)
from evenmatch.uses.study.page import Report
from evenmatch.uses.study.runs import missing

_BANDS = 5  # between nothing and everything, which have bands of their own
_SHOWN = (MLE, "RL(F1)", "RL(FG)", "2RL(FG)")


def keyphrase_report(runs: Runs, found: Sequence[Scored] | None = None) -> Report:
    """What the results that there are say; runs that are missing are said to be.

    `found` are their scores, where they were made before.
    """
    results = runs.results()
    if found is None:
        found = scored(results, runs.corpus) if results else []
    lacking = [node.name for node in runs.design.nodes() if runs.kept(node) is None]
    tables = {"present phrases": table_one(found), "differences": differences(found)}
    tables |= {f"words of phrases, {d}": table_two(found, d) for d in runs.corpus.tests if found}
    return Report(
        "Keyphrases: likelihood, and reinforcement in one stage or two",
        [*missing(lacking, len(results)), *map(sentence, checked(found))],
        tables if found else {},
        figures(found, results) if found else {},
        _notes(runs.corpus, runs.design, results),
    )


def figures(found: Sequence[Scored], results: Sequence[Result]) -> dict[str, str]:
    """The paper's figure 3, and how training went."""
    made = {}
    for data in dict.fromkeys(each.data for each in found):
        own = [each for each in found if each.data == data and each.arm in _SHOWN]
        name = data.lower()
        made[f"fg-{name}"] = curves(
            f"FG of documents, {data}",
            ("FG", "share of documents"),
            {each.arm: shares(each.fg) for each in own},
        )
        made[f"words-{name}"] = curves(
            f"Token F1 of predicted phrases, by document, {data}",
            ("token F1", "share of documents with phrases"),
            {each.arm: shares(each.token_f1) for each in own},
        )
    for arm, some in by_arm(results):
        lines = {
            f"seed {each.node.seed}": [(float(step), value) for step, value in each.looks]
            for each in some
        }
        what = "log-probability of a word" if arm == MLE else "reward, both groups"
        made[f"looks-{arm}"] = curves(f"{arm}: documents looked at", ("step", what), lines)
    return {name.replace("(", "-").replace(")", ""): figure for name, figure in made.items()}


def shares(values: Floats) -> list[tuple[float, float]]:
    """The share of values that are 0, in each band above it, and 1.

    >>> [share for _, share in shares(np.array([0.0, 0.1, 0.95, 1.0]))]
    [0.25, 0.25, 0.0, 0.0, 0.0, 0.25, 0.25]
    """
    bands = np.ceil(np.asarray(values) * _BANDS - 1e-9)
    bands = np.where(np.asarray(values) >= 1 - 1e-9, _BANDS + 1, bands)
    counts = np.bincount(bands.astype(int), minlength=_BANDS + 2)
    places = [0.0, *((i + 0.5) / _BANDS for i in range(_BANDS)), 1.0]
    every = max(len(values), 1)  # an arm may have written nothing at all
    return [(at, float(count) / every) for at, count in zip(places, counts, strict=True)]


def _notes(corpus: Corpus, design: Design, results: Sequence[Result]) -> list[str]:
    tests = ", ".join(f"{name} {len(each)}" for name, each in corpus.tests.items())
    shape, course, stage = design.settings.shape, design.settings.likelihood, design.stage.course
    return [
        f"{len(corpus.train)} documents to learn from (those with over {design.settings.longest} "
        f"words or {design.settings.most_phrases} phrases are left out), {len(corpus.valid)} to "
        f"look at; tests: {tests}; no text of a test is learnt from",
        f"catSeq with {design.settings.words} words, vectors of {shape.embedding}, readers of "
        f"{shape.hidden}, attention of {shape.attention}; likelihood: {course.epochs} epochs at "
        f"{course.rate:g}; each stage: {stage.epochs} epochs at {stage.rate:g}; the model at its "
        "best look is kept; greedy decoding",
        "present phrases only, by Chan et al.'s rules; in brackets: 95 % by bootstrap over "
        "documents, of the mean over seeds",
        f"{len(results)} runs took {sum(r.seconds for r in results) / 60:.0f} minutes",
    ]
