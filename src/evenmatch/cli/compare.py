"""evenmatch compare: systems against each other on one test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.options import Draws, Metrics, Running, Sources
from evenmatch.cli.printing import Printing
from evenmatch.data.texts import STANDARD_INPUT, read_lines, shown
from evenmatch.errors import InputError
from evenmatch.uses.meta.compare import compare as compare_systems
from evenmatch.uses.meta.compare_result import Comparison


@takes_option_groups()
def compare(
    metric: Metrics,
    candidates: Annotated[
        list[str],
        typer.Option(
            "--candidates",
            "-c",
            metavar="FILE",
            help="A system's candidates, one a line; give one file per system, the baseline first. "
            "A system is called as its file is, without the suffix.",
        ),
    ],
    references: Annotated[
        list[str],
        typer.Option(
            "--references",
            "-r",
            metavar="FILE",
            help="References, one a line; may be given several times.",
        ),
    ],
    sources: Sources = "",
    *,
    draws: Draws,
    printing: Printing,
    running: Running,
) -> None:
    """Compare systems: scores, differences, intervals, and two tests of every difference.

    The tests are the paired bootstrap and approximate randomisation; BLEU, chrF and TER are
    compared by their corpus scores, other metrics by their means.
    """
    texts = _read([*candidates, *references, *([sources] if sources else [])])
    with running.settings() as settings:
        found = compare_systems(
            dict(zip(_names(candidates), texts, strict=False)),
            list(map(list, zip(*texts[len(candidates) :][: len(references)], strict=True))),
            list(dict.fromkeys(metric)),
            sources=texts[-1] if sources else None,
            **asdict(draws),
            **settings,
        )
    tables = [found.score_table(), found.gap_table()]
    printing.say(found, document=document(found), records=found.rows, tables=tables)


def document(found: Comparison) -> dict[str, Any]:
    """A comparison as JSON has it."""
    return {
        "rows": found.rows,
        "systems": [asdict(score) for score in found.scores],
        "higher_is_better": dict(found.higher_is_better),
        "signatures": dict(found.signatures),
        "testing": asdict(found.testing),
    }


def _names(candidates: Sequence[str]) -> list[str]:
    """What each system is called: its file's name without the suffixes."""
    if len(candidates) < 2:
        raise typer.BadParameter("give -c at least twice: one file of candidates per system")
    names = [Path(path).name.removesuffix(".gz") for path in candidates]
    stems = [name.rpartition(".")[0] or name for name in names]
    for names_given in (stems, list(candidates)):
        if len(set(names_given)) == len(names_given):
            return names_given
    raise typer.BadParameter("a file of candidates is given twice; give one per system")


def _read(paths: Sequence[str]) -> list[list[str]]:
    """The lines of each file, as many of all of them."""
    if list(paths).count(STANDARD_INPUT) > 1:
        raise InputError("standard input (-) can stand for one file only")
    texts = [list(read_lines(path)) for path in paths]
    for path, lines in zip(paths, texts, strict=True):
        if len(lines) != len(texts[0]):
            raise InputError(
                f"{shown(paths[0])} has {len(texts[0])} lines but {shown(path)} has {len(lines)}; "
                "give one line per segment in every file"
            )
    return texts
