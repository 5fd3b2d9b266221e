"""evenmatch catseq: train a generator of keyphrases, and let it predict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.options import count
from evenmatch.cli.output import say, tell
from evenmatch.cli.training import Pieces, time_is_up
from evenmatch.data.documents import Document
from evenmatch.data.documents_reading import read_documents
from evenmatch.data.rows import appearing
from evenmatch.data.tables import as_text, number
from evenmatch.uses.train.catseq import train_catseq
from evenmatch.uses.train.catseq_generator import load_generator
from evenmatch.uses.train.threads import training_threads

catseq = typer.Typer(help="Generate keyphrases: train a model, predict.", no_args_is_help=True)


@catseq.command("train")
@takes_option_groups(minutes=0)
def train(
    plan: Annotated[
        str, typer.Argument(metavar="CONFIG.toml", help="Documents, sizes and stages.")
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FOLDER", help="Where the generators go.")
    ],
    *,
    pieces: Pieces,
) -> None:
    """Train a generator by likelihood and stages of reward; goes on where it was stopped."""
    enough = time_is_up(pieces.minutes)
    with training_threads(pieces.threads):
        found = train_catseq(plan, out, enough=enough)
    rows = [["course", "steps", "before", "best", "at step", "ended"]]
    for each in found:
        step, best = each.history.best
        before = number(each.history.looks[0][1])
        ended = "yes" if each.history.ended else "no, run it again"
        rows.append(
            [each.name, str(len(each.history.told)), before, number(best), str(step), ended]
        )
    say(as_text(rows))


@catseq.command("predict")
def predict(
    model: Annotated[str, typer.Argument(metavar="FOLDER", help="A generator that train wrote.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="Documents, as for keyphrases.")],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE.jsonl", help="Where the predictions go.")
    ],
    name: Annotated[
        str, typer.Option(metavar="NAME", help="What to call the predictions.")
    ] = "catseq",
    beam: Annotated[int, count("Beginnings a search keeps; 1 is greedy.")] = 1,
) -> None:
    """Predict keyphrases, into a file that `evenmatch keyphrases` takes."""
    generator = load_generator(model)
    documents = [each for found in read_documents(data) for each in found.documents]
    predicted = generator(documents, beam=beam)
    lines = (
        _line(document, {name: phrases})
        for document, phrases in zip(documents, predicted, strict=True)
    )
    with appearing(out) as place:
        Path(place).write_text("".join(lines), "utf-8")
    tell(f"wrote {len(documents)} documents to {out}; score them: evenmatch keyphrases {out}")


def _line(document: Document, predictions: dict[str, tuple[str, ...]]) -> str:
    every = {**document.predictions, **predictions}
    record = {"text": document.text, "keyphrases": document.keyphrases, "pred": every}
    return json.dumps(record, ensure_ascii=False) + "\n"
