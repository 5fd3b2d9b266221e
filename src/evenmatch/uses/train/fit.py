"""fit: a metric trained on people's ratings."""

from __future__ import annotations

import time
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evenmatch.data.cards import Made, check_out, write_card
from evenmatch.data.ratings_reading import Ratings, as_sets, names_of
from evenmatch.errors import UnknownNameError
from evenmatch.scoring.saved import HERE, read_metric, write_metric
from evenmatch.scoring.settings import make_run
from evenmatch.scoring.towers_head import save_head
from evenmatch.types import Metric, Run
from evenmatch.uses.train.cross import train_cross
from evenmatch.uses.train.examples import Examples, examples_of, rated_pairs
from evenmatch.uses.train.judging import judge, set_apart
from evenmatch.uses.train.lesson import Lesson
from evenmatch.uses.train.saving import save_encoder
from evenmatch.uses.train.towers import set_up, train_towers
from evenmatch.uses.train.upper import load_upper
from evenmatch.vectors.layers import depth
from evenmatch.vectors.pretrained import Pretrained

Kind: TypeAlias = Literal["towers", "cross"]


def fit(
    data: Ratings,
    out: str | PathLike[str],
    *,
    test: Ratings | None = None,
    kind: Kind = "towers",
    model: str = "minilm",
    frozen: int = 2,
    lesson: Lesson = Lesson(),
    hold_out: float = 0.1,
    **run: Any,
) -> Made:
    """Train a metric on ratings, save it in the folder `out`, and judge it on others.

    `data` and `test` are what `read_ratings` takes or gives; without `test` a share of the
    segments, `hold_out`, is set apart for the judgement. `towers` read each text on its own,
    `cross` both side by side. The encoder's embeddings and first `frozen` blocks stay as they
    are. `run` is as in `score`.
    """
    folder, how = check_out(out), make_run(**run)
    if kind not in _TRAIN:
        raise UnknownNameError(f"no kind of metric is called {kind!r}; known: {', '.join(_TRAIN)}")
    sets, tests = as_sets(data), as_sets(test or ())
    if test is None:
        sets, tests = set_apart(sets, hold_out, lesson.seed)
    examples = examples_of(*rated_pairs(sets))
    start = time.monotonic()
    _TRAIN[kind](folder, examples, model, frozen, lesson, how)
    seconds = time.monotonic() - start
    metric: Metric = read_metric(str(folder))
    judged = judge(metric, tests, how, seed=lesson.seed)
    facts = {
        "trained on": f"{names_of(sets)} ({len(examples)} rated outputs)",
        "encoder": f"{Pretrained(model).checkpoint().label}, {frozen} blocks frozen",
        "kind": f"{kind}: {_READS[kind]}",
        "lesson": ", ".join(f"{k} {v:g}" for k, v in asdict(lesson).items()),
        "time": f"{seconds:.0f} s",
    }
    made = Made(
        folder,
        "A metric fitted to ratings",
        metric.signature,
        facts,
        {f"Agreement on held-out ratings: {names_of(tests)}": judged.table()},
        {"folder": str(folder), "signature": metric.signature, **facts, **judged.document()},
    )
    write_card(made)
    return made


def _train_towers(
    folder: Path, examples: Examples, model: str, frozen: int, lesson: Lesson, run: Run
) -> None:
    body = Pretrained(model)
    checkpoint = body.checkpoint()
    upper = load_upper(checkpoint, frozen, run.device)
    last = depth(checkpoint)
    # Two thirds up, where encoders know most of words, if anything learns there.
    middle = round(2 * last / 3)
    layers = (middle, last) if frozen < middle < last else (last,)
    towers = set_up(upper, body, examples.texts, run)
    head = train_towers(towers, examples, layers, lesson, run)
    save_encoder(upper, checkpoint, folder)
    save_head(head, folder)
    write_metric(folder, f"fitted(model={HERE})")


def _train_cross(
    folder: Path, examples: Examples, model: str, frozen: int, lesson: Lesson, run: Run
) -> None:
    train_cross(Pretrained(model).checkpoint(), examples, frozen, lesson, run).save(folder)
    write_metric(folder, f"regression(model={HERE})")


_TRAIN = {"towers": _train_towers, "cross": _train_cross}
_READS = {"towers": "each text read alone", "cross": "both texts read side by side"}
