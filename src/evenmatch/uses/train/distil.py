"""distil: a small metric trained to say what a larger one says."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.cards import Made, check_out, write_card
from evenmatch.registry import spec
from evenmatch.scoring.ask import name_of
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.saved import HERE, read_metric, write_metric
from evenmatch.scoring.settings import make_run
from evenmatch.scoring.together import as_metric, score_together
from evenmatch.scoring.towers_head import save_head
from evenmatch.types import Metric, Pair, Run
from evenmatch.uses.train.examples import examples_of
from evenmatch.uses.train.imitation import imitation
from evenmatch.uses.train.lesson import Lesson
from evenmatch.uses.train.pairs import Texts, split
from evenmatch.uses.train.saving import save_encoder
from evenmatch.uses.train.student import keep_teacher, train_student
from evenmatch.uses.train.towers import set_up, train_towers
from evenmatch.uses.train.upper import load_upper
from evenmatch.vectors.pretrained import Pretrained
from evenmatch.vectors.transformer import Transformer

LESSON = Lesson(epochs=2, rate=3e-4)


def distil(
    teacher: str | Metric,
    data: Texts,
    out: str | PathLike[str],
    *,
    test: Sequence[Texts] = (),
    model: str = "minilm",
    blocks: int = 2,
    lesson: Lesson = LESSON,
    **run: Any,
) -> Made:
    """Train a student of `blocks` blocks to imitate `teacher`, save it in `out`, and compare them.

    A teacher that aligns vectors of a transformer gets a student that differs in its encoder only;
    any other gets two towers over the first blocks of `model` that predict its scores. `data`, and
    each of `test`, is pairs, a file of them, or rated data by name, whose ratings are not used.
    Without `test` every tenth pair is set apart for it. `run` is as in `score`.
    """
    folder, how, wanted = check_out(out), make_run(**run), as_metric(teacher)
    pairs, tests = split(data, test)
    start = time.monotonic()
    if isinstance(wanted, AlignMetric) and isinstance(wanted.vectors, Transformer):
        source = wanted.vectors.model
        _train_aligned(folder, wanted, pairs, blocks, lesson, how)
    else:
        source = model
        _train_towers(folder, wanted, pairs, model, blocks, lesson, how)
    seconds = time.monotonic() - start
    student: Metric = read_metric(str(folder))
    judged = imitation(student, wanted, tests, how, seed=lesson.seed)
    facts = {
        "teacher": name_of(teacher),
        "teacher's signature": wanted.signature,
        "trained on": f"{len(pairs)} pairs" + (f" of {data}" if isinstance(data, str) else ""),
        "encoder": f"{Pretrained(source).checkpoint().label}, its first {blocks} blocks",
        "lesson": ", ".join(f"{k} {v:g}" for k, v in asdict(lesson).items()),
        "time": f"{seconds:.0f} s",
    }
    made = Made(
        folder,
        f"A small metric that imitates {name_of(teacher)}",
        student.signature,
        facts,
        {"Agreement with the teacher on other texts": judged.table()},
        {"folder": str(folder), "signature": student.signature, **facts, **judged.document()},
    )
    write_card(made)
    return made


def _train_aligned(
    folder: Path, teacher: AlignMetric, pairs: Sequence[Pair], blocks: int, lesson: Lesson, run: Run
) -> None:
    encoder = teacher.vectors
    assert isinstance(encoder, Transformer)
    body = encoder.body
    upper = load_upper(body.checkpoint(), 0, run.device, blocks)
    examples = examples_of(pairs, range(len(pairs)))  # what they score is not learnt from
    towers = set_up(upper, body, examples.texts, run)
    states = keep_teacher(encoder, examples.texts, towers.lengths, run)
    train_student(towers, states, examples, lesson, run)
    save_encoder(upper, body.checkpoint(), folder)
    vectors = dataclasses.replace(encoder, model=HERE, layer=blocks)
    written = spec(dataclasses.replace(teacher, vectors=vectors))
    write_metric(folder, written.replace(repr(HERE), HERE))


def _train_towers(
    folder: Path,
    teacher: Metric,
    pairs: Sequence[Pair],
    model: str,
    blocks: int,
    lesson: Lesson,
    run: Run,
) -> None:
    body = Pretrained(model)
    single = [Pair(pair.candidate, pair.references[:1]) for pair in pairs]
    scores = [score.value for score in score_together([teacher], single, run)[0].segments]
    examples = examples_of(single, scores)
    upper = load_upper(body.checkpoint(), 0, run.device, blocks)
    towers = set_up(upper, body, examples.texts, run)
    head = train_towers(towers, examples, (blocks,), lesson, run)
    save_encoder(upper, body.checkpoint(), folder)
    save_head(dataclasses.replace(head, higher_is_better=teacher.higher_is_better), folder)
    write_metric(folder, f"fitted(model={HERE})")
