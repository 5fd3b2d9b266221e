"""evenmatch tune: fine-tune a generator on cross-entropy mixed with a reward."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer

from evenmatch.cli.options import Json, ShowProgress
from evenmatch.cli.output import say_either, tell
from evenmatch.cli.training import time_is_up
from evenmatch.uses.train.tune import Tuned
from evenmatch.uses.train.tune import tune as carry_out
from evenmatch.uses.train.tune_course import History

_SECONDS_BETWEEN_LINES = 5.0


def tune(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG.toml",
            help="train, valid and out (a folder), and whatever is not to be as usual: model, "
            "reward, own_embeddings, rl_weight, epochs, batch, rate, seed, [shape], …",
        ),
    ],
    minutes: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="N",
            help="Pause after so many minutes; the same command goes on from there.",
            show_default="until it ends",
        ),
    ] = 0.0,
    progress: ShowProgress = None,
    json: Json = False,
) -> None:
    """Fine-tune an encoder-decoder with a reward; a stopped run goes on where it was."""
    tuned = carry_out(config, watch=_watch(progress), enough=time_is_up(minutes))
    say_either(_told(tuned), tuned.document, json=json)
    if tuned.history.ended:
        tell(f"wrote {tuned.model}; name it as a model to go on from it")
    else:
        tell("paused; the same command goes on from here")


def _told(tuned: Tuned) -> str:
    """The looks as lines, the best of them marked."""
    best = tuned.history.best[0]
    lines = [
        f"step {row['step']}  BLEU {100 * row['bleu']:.2f}  cross-entropy "
        f"{row['cross_entropy']:.2f}  reward {row['reward']:.3f}  "
        f"baseline {row['baseline']:.3f}{'  best' if row['step'] == best else ''}"
        for row in tuned.document["looks"]
    ]
    return "\n".join(lines) or "no look yet"


def _watch(wanted: bool | None) -> Callable[[History], None]:
    """Tell each step: on a terminal in one line that changes, in a log now and then."""
    terminal = sys.stderr.isatty()
    if wanted is False or (wanted is None and not terminal):
        return lambda history: None
    last = time.monotonic()

    def line(history: History) -> None:
        nonlocal last
        if terminal:
            sys.stderr.write(f"\r\x1b[K{_line(history)}" + ("\n" if history.ended else ""))
            sys.stderr.flush()
        elif history.ended or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            tell(_line(history))
            last = time.monotonic()

    return line


def _line(history: History) -> str:
    told = history.told[-1]
    step, bleu = history.best
    looked = f", best BLEU {100 * bleu:.2f} at step {step}" if history.looks else ""
    return (
        f"step {len(history.told)} of {history.steps}: cross-entropy {told.cross_entropy:.2f}, "
        f"reward {told.reward:.3f} against {told.baseline:.3f}{looked}"
    )
