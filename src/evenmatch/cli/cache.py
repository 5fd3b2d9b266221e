"""evenmatch cache: the vectors kept between runs."""

from __future__ import annotations

from typing import Annotated

import typer

from evenmatch.cli.options import Json
from evenmatch.cli.output import say, say_json, tell
from evenmatch.scoring.settings import as_cache
from evenmatch.storage.store import Store
from evenmatch.vectors.cache import store_of

cache = typer.Typer(help="Vectors kept between runs: look, or make room.", no_args_is_help=True)

Folder = Annotated[
    str, typer.Option(help="The cache's folder; without it EVENMATCH_CACHE or the user's own.")
]


@cache.command("info")
def cache_info(folder: Folder = "", json: Json = False) -> None:
    """Say where the cache lies, how many entries it has and how much room they take."""
    store = _store(folder)
    entries, size = store.usage()
    if json:
        say_json({"folder": str(store.folder), "entries": entries, "bytes": size})
    else:
        say(f"{store.folder}: {entries} entries, {size / 1e6:.1f} MB")


@cache.command("clear")
def clear_cache(folder: Folder = "") -> None:
    """Remove every stored vector."""
    store = _store(folder)
    store.clear()
    tell(f"{store.folder} is empty")


def _store(folder: str) -> Store:
    found = as_cache(folder or True)
    assert found is not None
    return store_of(found)
