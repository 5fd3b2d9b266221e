"""Every way to train through the metric, each a cell, with the curves of its losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from evenmatch.data.tables import Table
from evenmatch.errors import InputError
from evenmatch.registry import spec
from evenmatch.types import Encoder
from evenmatch.uses.report.plot_lines import curves
from evenmatch.uses.study.cells import Cells
from evenmatch.uses.study.lisa_gradient import Curve, Lesson, Look, embed, learn
from evenmatch.uses.study.page import Report
from evenmatch.uses.study.sentences import Sentences


def take_lessons(
    sentences: Sentences,
    encoder: Encoder,
    lessons: Sequence[Lesson],
    folder: str | Path,
    *,
    told: Callable[[str], None] | None = None,
) -> list[Curve]:
    """Take each lesson that `folder` does not hold yet; a quarter of the pairs is held out."""
    if not lessons:
        raise InputError("there are no lessons to take; give at least one method")
    cells = Cells(Path(folder))
    recipe = {"texts": sentences.digest, "encoder": spec(encoder)}
    pairs = None
    found = []
    for lesson in lessons:
        own = {**recipe, "lesson": asdict(lesson)}
        kept = cells.find(lesson.method, own)
        if kept is None:
            pairs = pairs or embed(sentences.candidates, sentences.others, encoder)
            held_out = len(pairs) // 4
            kept = asdict(learn(pairs[held_out:], pairs[:held_out], lesson))
            cells.keep(lesson.method, own, kept)
        looks = tuple(Look(**look) for look in kept["held_out"])
        found.append(Curve(lesson, tuple(kept["losses"]), looks))
        if told:
            told(lessons_findings(found[-1:])[0])
    return found


def lessons_report(found: Sequence[Curve], sentences: Sentences) -> Report:
    """The losses on pairs held out, as a table and as curves."""
    lesson = found[0].lesson
    notes = (
        f"{len(sentences)} pairs of {sentences.name}, a quarter of them held out; batches of "
        f"{lesson.batch}, every other reference of a batch a negative",
        f"a linear map over the frozen encoder, from the identity on: Adam, rate {lesson.rate:g}, "
        f"{lesson.steps} steps, scores × {lesson.sharpness:g} before the softmax, seed "
        f"{lesson.seed}",
        "held_lsa, held_greedy: the plan is held constant; straight_through: hard forwards, soft "
        "backwards; gumbel: with noise",
    )
    held_out = {
        c.lesson.method: [(float(look.step), look.loss) for look in c.held_out] for c in found
    }
    figure = curves("Loss on pairs held out", ("step", "contrastive loss"), held_out)
    table = lessons_table(found)
    title = "Training through an alignment metric"
    return Report(title, lessons_findings(found), {"losses": table}, {"losses": figure}, notes)


def lessons_table(found: Sequence[Curve]) -> Table:
    """A line per method: loss and share told right on pairs held out, before and after."""
    header = ["method", "loss before", "loss after", "right before", "right after"]
    lines = []
    for curve in found:
        first, last = curve.held_out[0], curve.held_out[-1]
        numbers = (first.loss, last.loss, first.right, last.right)
        lines.append([curve.lesson.method, *(f"{value:.4f}" for value in numbers)])
    return [header, *lines]


def lessons_findings(found: Sequence[Curve]) -> list[str]:
    """What each method did to the loss on pairs held out."""
    return [
        f"{c.lesson.method}: the loss on pairs held out goes from {c.held_out[0].loss:.4f} to "
        f"{c.held_out[-1].loss:.4f} ({c.held_out[-1].loss / c.held_out[0].loss - 1:+.1%})"
        for c in found
    ]
