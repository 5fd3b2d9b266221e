"""evenmatch data: the public data sets, listed, found and fetched."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.options import Json
from evenmatch.cli.output import line_width, say, say_json, tell
from evenmatch.data import fetching
from evenmatch.data.catalogue import DataSet, data_set, data_sets, find
from evenmatch.data.tables import as_text

data = typer.Typer(help="The public data sets: list, find, fetch.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A name that `evenmatch data list` gives.")]


@data.command("list")
def list_data(json: Json = False) -> None:
    """List the data sets, their licences, and whether they are on this machine."""
    found = data_sets()
    if json:
        say_json({"sets": [_document(each) for each in found]})
        return
    rows = [[each.name, _here(each), each.licence, each.about] for each in found]
    say(as_text([["name", "here", "licence", "what it is"], *rows], width=line_width()))


def _here(each: DataSet) -> str:
    if each.present:
        return "yes"
    return "no" if each.converter else "by hand"


def _document(each: DataSet) -> dict[str, object]:
    return {
        "name": each.name,
        "here": each.present,
        "fetchable": bool(each.converter),
        "about": each.about,
        "licence": each.licence,
        "citation": each.citation,
        "sources": [source.address for source in each.upstream],
        "files": dict(each.files),
    }


@data.command("where")
def where_data(name: Name) -> None:
    """Print the folder a data set lies in."""
    say(str(find(name)))


@data.command("get")
def get_data(
    name: Name,
    again: Annotated[bool, typer.Option("--again", help="Fetch it even if it is here.")] = False,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Keep it even where a checksum differs.")
    ] = False,
    mirror: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Where REPOSITORY/COMMIT/PATH is served instead."),
    ] = fetching.ADDRESS,
) -> None:
    """Fetch a data set, convert and check it, and print the folder it lies in."""
    _introduce(data_set(name))
    say(str(fetching.get(name, again=again, checked=not unchecked, address=mirror.rstrip("/"))))


def _introduce(wanted: DataSet) -> None:
    tell(f"{wanted.name}: {wanted.about}")
    tell(f"licence: {wanted.licence}")
    tell(f"cite: {wanted.citation}")
    for source in wanted.upstream:
        tell(f"from: {source.address}")
    if not all(path in source.sha256 for source in wanted.upstream for path in source.paths):
        tell("checksums of these sources are not known; those of the converted files are")
