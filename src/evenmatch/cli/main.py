"""Entry point of the command line and the table of its commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from evenmatch.cli.console import (
    print_message,
    print_output,
    record_command,
    report_errors,
    terminal_width,
)
from evenmatch.data.tables import page_width
from evenmatch.version import __version__

CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"]}
DEBUG_OPTION = "--debug"

# Module and attribute of each command: a function, or a Typer application with subcommands. Only
# the requested command is imported, because importing all of them takes longer than most runs.
COMMANDS = {
    "score": "score:score",
    "align": "inspect:align",
    "compare": "evaluate:compare",
    "meta": "evaluate:meta",
    "audit": "fairness:audit",
    "debias": "fairness:debias",
    "keyphrases": "evaluate:keyphrases",
    "baseline": "calibrate:baseline",
    "choose-layer": "calibrate:choose_layer",
    "fit": "train:fit",
    "distil": "train:distil",
    "calibrate": "calibrate:calibrate",
    "report": "publish:report",
    "serve": "publish:serve",
    "tune": "train:tune",
    "generate": "train:generate",
    "list": "inspect:list_names",
    "explain": "inspect:explain",
    "study": "study:study",
    "catseq": "train:catseq",
    "models": "data:models",
    "cache": "data:cache",
    "data": "data:data",
}

# Options of other tools that are settings of a metric here.
_METRIC_COMMANDS = ("score", "align", "compare", "meta", "audit")
_METRIC_OPTIONS = {
    "--lang": "model='xlm-roberta-base'",
    "--model": "model='roberta-large'",
    "--model_type": "model='roberta-large'",
    "--layer": "layer=9",
    "--num_layers": "layer=9",
    "--idf": "idf=True",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; exit with 0 on success, 1 on an error (one line), 2 on wrong usage."""
    given, debug = _extract_debug(sys.argv[1:] if arguments is None else arguments)
    wanted = [given[0]] if given and given[0] in COMMANDS else list(COMMANDS)
    _refuse_metric_options(given)
    with report_errors(debug=debug), record_command(given), page_width(terminal_width()):
        build_app(wanted)(given, prog_name="evenmatch")


def build_app(wanted: Sequence[str]) -> typer.Typer:
    """Return the application with these commands."""
    app = typer.Typer(
        name="evenmatch",
        help="Score generated text by aligning its parts with a reference.",
        context_settings=CONTEXT_SETTINGS,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_global_options)
    for name in wanted:
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(f"evenmatch.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, context_settings=CONTEXT_SETTINGS)
        else:
            app.command(name)(found)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print_output(f"evenmatch {__version__}")
        raise typer.Exit


def _global_options(
    _version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Show the version and exit.",
    ),
    _debug: bool = typer.Option(
        False, DEBUG_OPTION, help="Show the full traceback of an error; may be given anywhere."
    ),
) -> None:
    """Options that are given before the command."""


def _refuse_metric_options(given: Sequence[str]) -> None:
    """Exit with 2 if a setting of a metric is given as an option, and say where it belongs."""
    if given and given[0] in _METRIC_COMMANDS:
        for option in given[: given.index("--") if "--" in given else None]:
            if setting := _METRIC_OPTIONS.get(option.partition("=")[0]):
                print_message(f'there is no option {option}; write -m "bertscore({setting})"')
                sys.exit(2)


def _extract_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Remove --debug, and return whether it was given; arguments after -- are texts."""
    options = list(arguments)
    end = options.index("--") if "--" in options else len(options)
    kept = [a for a in options[:end] if a != DEBUG_OPTION]
    return kept + options[end:], len(kept) < end
