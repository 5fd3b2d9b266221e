"""The command line: its commands in one place."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from evenmatch.cli.output import commanded, say
from evenmatch.cli.trouble import one_line_trouble
from evenmatch.version import __version__

HELP_NAMES = {"help_option_names": ["-h", "--help"]}
DEBUG = "--debug"

# Where each command is found: a function, or a group of commands. Only the one that is asked for
# is imported, since all of them together take longer to load than most need to run.
COMMANDS = {
    "score": "score:score",
    "align": "align:align",
    "compare": "compare:compare",
    "meta": "meta:meta",
    "audit": "audit:audit",
    "debias": "debias:debias",
    "keyphrases": "keyphrases:keyphrases",
    "baseline": "baseline:baseline",
    "choose-layer": "choose_layer:choose_layer",
    "fit": "fit:fit",
    "distil": "distil:distil",
    "calibrate": "calibrate:calibrate",
    "report": "report:report",
    "serve": "serve:serve",
    "tune": "tune:tune",
    "list": "names:list_names",
    "explain": "explain:explain",
    "study": "study:study",
    "catseq": "catseq:catseq",
    "models": "models:models",
    "cache": "cache:cache",
    "data": "data:data",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command: exit 0 done, 1 our error in one line, 2 wrong usage."""
    given, debug = _without_debug(sys.argv[1:] if arguments is None else arguments)
    wanted = [given[0]] if given and given[0] in COMMANDS else list(COMMANDS)
    with one_line_trouble(debug=debug), commanded(given):
        _app(wanted)(given, prog_name="evenmatch")


def _app(wanted: Sequence[str]) -> typer.Typer:
    """The command line with these commands."""
    app = typer.Typer(
        name="evenmatch",
        help="Score generated text by how its parts align with a reference.",
        context_settings=HELP_NAMES,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for name in wanted:
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(f"evenmatch.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, context_settings=HELP_NAMES)
        else:
            app.command(name)(found)
    return app


def _say_version(wanted: bool) -> None:
    if wanted:
        say(f"evenmatch {__version__}")
        raise typer.Exit


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


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments without --debug, and whether it was there; after -- everything is text."""
    options = list(arguments)
    end = options.index("--") if "--" in options else len(options)
    kept = [a for a in options[:end] if a != DEBUG]
    return kept + options[end:], len(kept) < end
