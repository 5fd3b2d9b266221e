"""The command line: its commands in one place."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from evenmatch.cli.align import align
from evenmatch.cli.audit import audit
from evenmatch.cli.baseline import baseline
from evenmatch.cli.cache import cache
from evenmatch.cli.calibrate import calibrate
from evenmatch.cli.choose_layer import choose_layer
from evenmatch.cli.compare import compare
from evenmatch.cli.data import data
from evenmatch.cli.debias import debias
from evenmatch.cli.distil import distil
from evenmatch.cli.explain import explain
from evenmatch.cli.fit import fit
from evenmatch.cli.keyphrases import keyphrases
from evenmatch.cli.meta import meta
from evenmatch.cli.models import models
from evenmatch.cli.names import list_names
from evenmatch.cli.output import say
from evenmatch.cli.score import score
from evenmatch.cli.serve import serve
from evenmatch.cli.study import study
from evenmatch.cli.trouble import one_line_trouble
from evenmatch.cli.tune import tune
from evenmatch.version import __version__

HELP_NAMES = {"help_option_names": ["-h", "--help"]}
DEBUG = "--debug"

app = typer.Typer(
    name="evenmatch",
    help="Score generated text by how its parts align with a reference.",
    context_settings=HELP_NAMES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("score")(score)
app.command("align")(align)
app.command("compare")(compare)
app.command("meta")(meta)
app.command("audit")(audit)
app.command("debias")(debias)
app.command("keyphrases")(keyphrases)
app.command("baseline")(baseline)
app.command("choose-layer")(choose_layer)
app.command("fit")(fit)
app.command("distil")(distil)
app.command("calibrate")(calibrate)
app.command("serve")(serve)
app.command("tune")(tune)
app.command("list")(list_names)
app.command("explain")(explain)
app.add_typer(study, name="study", context_settings=HELP_NAMES)
app.add_typer(models, name="models", context_settings=HELP_NAMES)
app.add_typer(cache, name="cache", context_settings=HELP_NAMES)
app.add_typer(data, name="data", context_settings=HELP_NAMES)


def _say_version(wanted: bool) -> None:
    if wanted:
        say(f"evenmatch {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version."),
    ] = False,
    _debug: Annotated[
        bool, typer.Option(DEBUG, help="Show the traceback of an error; may stand anywhere.")
    ] = False,
) -> None:
    """The options that stand before any command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command: exit 0 done, 1 our error in one line, 2 wrong usage."""
    given, debug = _without_debug(sys.argv[1:] if arguments is None else arguments)
    with one_line_trouble(debug=debug):
        app(given, prog_name="evenmatch")


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments without --debug, and whether it was there; after -- everything is text."""
    options = list(arguments)
    end = options.index("--") if "--" in options else len(options)
    kept = [a for a in options[:end] if a != DEBUG]
    return kept + options[end:], len(kept) < end
