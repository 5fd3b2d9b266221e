"""Commands that manage files: data (public data sets), models (embedded encoders), cache."""

from __future__ import annotations

from typing import Any

import typer

from evenmatch.cli import options as opt
from evenmatch.cli.console import print_message, print_output, print_text_or_json, terminal_width
from evenmatch.data.catalogue.catalogue import DataSet, data_set, data_sets, find_data_set
from evenmatch.data.catalogue.fetch import BASE_URL, fetch_data_set
from evenmatch.data.tables import table_to_text
from evenmatch.models.checkpoints import fetch_package, iter_packages
from evenmatch.models.embedding_cache import embedding_store
from evenmatch.scoring.inputs import as_cache
from evenmatch.store import Store
from evenmatch.units.parsers.cache import parse_store
from evenmatch.vectors.weighting import idf_store

data = typer.Typer(help="List, locate and download the public data sets.", no_args_is_help=True)


DATA_SET: str = typer.Argument(help="Name of a data set, see: evenmatch data list.")


@data.command("list")
def list_data(json: bool = opt.JSON) -> None:
    """List the data sets with licence and availability."""
    found = data_sets()
    rows = [[each.name, _availability(each), each.licence, each.about] for each in found]
    table = [["name", "local", "licence", "description"], *rows]
    document = {"sets": [_data_set_document(each) for each in found]}
    print_text_or_json(table_to_text(table, width=terminal_width()), document, json=json)


def _availability(each: DataSet) -> str:
    if each.present:
        return "yes"
    return "no" if each.converter else "manual"


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
def where_data(name: str = DATA_SET) -> None:
    """Print the folder of a data set."""
    print_output(str(find_data_set(name)))


@data.command("get")
def get_data(
    name: str = DATA_SET,
    again: bool = opt.flag(False, "--again", "Download even if available locally."),
    unchecked: bool = opt.flag(False, "--unchecked", "Keep the files even if a checksum differs."),
    mirror: str = opt.value(BASE_URL, "URL", "Base URL to download REPOSITORY/COMMIT/PATH from."),
) -> None:
    """Download a data set.

    Converts it, verifies its checksums, and prints its folder.
    """
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
        print_message("no checksums are known for these sources; the converted files are verified")


models = typer.Typer(help="List and download the embedded models.", no_args_is_help=True)


@models.command("list")
def list_models(json: bool = opt.JSON) -> None:
    """List the models and whether they are installed."""
    found = list(iter_packages())
    rows = [[n, "yes" if here else "no", p.description] for n, p, here in found]
    table = table_to_text([["name", "installed", "description"], *rows])
    known = [{"name": n, "installed": here, "about": p.description} for n, p, here in found]
    print_text_or_json(table, {"models": known}, json=json)


@models.command("get")
def get_model(
    name: str = typer.Argument(help="Name of a model, see: evenmatch models list."),
    again: bool = typer.Option(False, help="Download even if installed."),
) -> None:
    """Download an embedded model.

    Verifies its checksum and prints its folder.
    """
    folder = fetch_package(name, again=again)
    print_message(f"{name} is ready")
    print_output(str(folder))


cache = typer.Typer(
    help="Show or clear the cache of vectors, parses and idf tables.", no_args_is_help=True
)


CACHE_FOLDER: str = typer.Option(
    "", help="Cache folder; default: EVENMATCH_CACHE or the user's cache folder."
)


@cache.command("info")
def cache_info(folder: str = CACHE_FOLDER, json: bool = opt.JSON) -> None:
    """Show cache folders, number of entries and disk space."""
    found = [_usage(store) for store in _stores(folder)]
    lines = [
        f"{own['folder']}: {own['entries']} entries, {own['bytes'] / 1e6:.1f} MB" for own in found
    ]
    document = found[0] | dict(zip(("parses", "idf"), found[1:], strict=False))
    print_text_or_json("\n".join(lines), document, json=json)


@cache.command("clear")
def clear_cache(folder: str = CACHE_FOLDER) -> None:
    """Delete all cached vectors, parses and idf tables."""
    for store in _stores(folder):
        store.clear()
        print_message(f"{store.folder} is empty")


def _usage(store: Store) -> dict[str, Any]:
    entries, size = store.usage()
    return {"folder": str(store.folder), "entries": entries, "bytes": size}


def _stores(folder: str) -> list[Store]:
    """Return the stores of vectors, parses and idf tables; a given folder has vectors only."""
    found = as_cache(folder or True)
    assert found is not None
    vectors = embedding_store(found)
    return [vectors] if folder else [vectors, parse_store(), idf_store()]
