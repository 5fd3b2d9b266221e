"""evenmatch keyphrases: keyphrase scores of prediction files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from evenmatch.cli.groups import takes_option_groups
from evenmatch.cli.options import Draws, Running, metric_option, several
from evenmatch.cli.output import tell
from evenmatch.cli.printing import Printing
from evenmatch.cli.scale import Parts, Scaling
from evenmatch.uses.keyphrases.scores import USUAL, score_keyphrases
from evenmatch.uses.keyphrases.table import KeyphraseTable

_TROUBLE_TOLD = 5


@takes_option_groups()
def keyphrases(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="Documents: JSONL, TSV or Parquet with title, abstract (or text), keyphrases, "
            "and predictions under pred.NAME; a folder of such; or a public data set by name.",
        ),
    ],
    metric: Annotated[
        list[str] | None,
        metric_option(
            "A keyphrase metric's name or spec; may be given several times.", ", ".join(USUAL)
        ),
    ] = None,
    pred: Annotated[
        list[str] | None,
        several(
            "FIELD", "A prediction, under pred or in a field of its own", "all under pred", "--pred"
        ),
    ] = None,
    mean_seeds: Annotated[
        bool,
        typer.Option("--mean-seeds", help="Also the mean of systems that differ in their seed."),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse a file with a line or field that cannot be read."),
    ] = False,
    *,
    draws: Draws,
    printing: Printing,
    parts: Parts = "",
    running: Running,
    scaling: Scaling,
) -> None:
    """Score keyphrases: present, absent and all, with intervals and tests between systems."""
    with scaling.settings(running, parts) as settings:
        found = score_keyphrases(
            data,
            list(dict.fromkeys(metric or USUAL)),
            predictions=pred or (),
            strict=strict,
            mean_seeds=mean_seeds,
            **asdict(draws),
            **settings,
        )
    _tell_trouble(found)
    tables = [found.score_table(), *([found.gap_table()] if found.gaps else [])]
    printing.say(found, document=found.document(), records=_records(found), tables=tables)


def _tell_trouble(found: KeyphraseTable) -> None:
    for line in found.trouble[:_TROUBLE_TOLD]:
        tell(f"warning: {line}")
    if len(found.trouble) > _TROUBLE_TOLD:
        tell(f"warning: and {len(found.trouble) - _TROUBLE_TOLD} more of the kind")


def _records(found: KeyphraseTable) -> list[dict[str, Any]]:
    """The rows as TSV has them: without their intervals."""
    records = [row.record() for row in found.rows]
    return [{k: v for k, v in each.items() if k != "intervals"} for each in records]
