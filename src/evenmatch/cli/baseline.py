"""evenmatch baseline: what unrelated texts score, to rescale by."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.options import Json, ModelMetric, Running, Seed, count, optional
from evenmatch.cli.output import say_either, tell
from evenmatch.data.everyday import read_everyday
from evenmatch.data.rows import appearing
from evenmatch.data.texts import read_lines
from evenmatch.registry import spec
from evenmatch.uses.meta.baseline import Baseline, measure_baseline


@takes_option_groups()
def baseline(
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT",
            help="A file of texts, one a line, of the kind you will score; - is standard input. "
            "Without it, the references of the sample that comes along.",
            show_default=False,
        ),
    ] = "",
    metric: ModelMetric = "bertscore",
    pairs: Annotated[int, count("How many random pairings to score.")] = 2000,
    seed: Seed = 0,
    out: Annotated[
        str, optional("FILE", "Also write LAYER,P,R,F, which bert_score reads as baseline_path.")
    ] = "",
    json: Json = False,
    *,
    running: Running,
) -> None:
    """Measure the mean score of unrelated texts at every layer, and say how to rescale by it."""
    with running.settings() as settings:
        found = measure_baseline(
            list(read_lines(text)) if text else _sample(),
            metric,
            pairs=pairs,
            seed=seed,
            **settings,
        )
    if out:
        with appearing(out) as place:
            Path(place).write_text(found.csv, "utf-8")
        tell(f"wrote {out}")
    say_either(found, document(found), json=json)


def document(found: Baseline) -> dict[str, Any]:
    """A baseline as JSON has it."""
    return {
        "rows": [asdict(row) for row in found.rows],
        "layer": found.layer,
        "low": found.low,
        "spec": spec(found.rescaled),
        "texts": found.texts,
        "pairs": found.pairs,
        "seed": found.seed,
        "signature": found.signature,
    }


def _sample() -> list[tuple[str, ...]]:
    tell("no TEXT given: taking the small sample that comes along; for use, give your own")
    return [pair.references for pair in next(iter(read_everyday().values()))]
