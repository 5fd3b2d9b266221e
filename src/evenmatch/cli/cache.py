"""evenmatch cache: the vectors and parses kept between runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from evenmatch.cli.options import Json
from evenmatch.cli.output import say, say_json, tell
from evenmatch.scoring.settings import as_cache
from evenmatch.storage.store import Store
from evenmatch.units.parses import parse_store
from evenmatch.vectors.cache import store_of

cache = typer.Typer(
    help="Vectors and parses kept between runs: look, or make room.", no_args_is_help=True
)

Folder = Annotated[
    str, typer.Option(help="The cache's folder; without it EVENMATCH_CACHE or the user's own.")
]


@cache.command("info")
def cache_info(folder: Folder = "", json: Json = False) -> None:
    """Say where vectors and parses lie, how many entries there are and how much room they take."""
    vectors, *parses = [_usage(store) for store in _stores(folder)]
    if json:
        say_json(vectors | ({"parses": parses[0]} if parses else {}))
        return
    for own in (vectors, *parses):
        say(f"{own['folder']}: {own['entries']} entries, {own['bytes'] / 1e6:.1f} MB")


@cache.command("clear")
def clear_cache(folder: Folder = "") -> None:
    """Remove every stored vector and parse."""
    for store in _stores(folder):
        store.clear()
        tell(f"{store.folder} is empty")


def _usage(store: Store) -> dict[str, Any]:
    entries, size = store.usage()
    return {"folder": str(store.folder), "entries": entries, "bytes": size}


def _stores(folder: str) -> list[Store]:
    """Vectors, and parses; a folder that is named holds vectors only."""
    found = as_cache(folder or True)
    assert found is not None
    return [store_of(found)] if folder else [store_of(found), parse_store()]
