"""Files that lie elsewhere, by an address such as s3://bucket/pairs.jsonl, through fsspec."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import SEEK_END
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from evenmatch.errors import InputError, MissingExtraError

_HERE = "file://"


def is_address(path: str) -> bool:
    """Whether a name is an address, and of another place than this machine's files."""
    return "://" in path and not path.startswith(_HERE)


def local(path: str) -> str:
    """A file of this machine by its path, also where it was given as file://.

    >>> local("file:///data/a%20b.jsonl"), local("s3://data/x.jsonl")
    ('/data/a b.jsonl', 's3://data/x.jsonl')
    """
    return unquote(urlsplit(path).path) if path.startswith(_HERE) else path


@contextmanager
def opened_anywhere(path: str) -> Iterator[IO[bytes]]:
    """The bytes of a file, by its path or its address."""
    if not is_address(path):
        with open(local(path), "rb") as file:
            yield file
        return
    store, place = store_of(path)
    with store.open(place, "rb") as file:
        yield file


def files_under(address: str) -> list[str]:
    """The addresses of all files in a folder, in name order; of a file itself, and alone."""
    store, place = store_of(address)
    if not store.isdir(place):
        return [address]
    return [store.unstrip_protocol(found) for found in sorted(store.find(place))]


def check_rereadable(address: str) -> None:
    """Refuse a file that can be read only from its beginning, as some web servers send it."""
    with opened_anywhere(address) as file:
        try:
            file.seek(max(0, file.seek(0, SEEK_END) - 1))
            file.read(1)
        except ValueError:
            raise InputError(f"{address} can be read only once; save it to a file first") from None


def upload(path: str, address: str) -> None:
    """Copy a local file to an address."""
    store, place = store_of(address)
    store.put_file(path, place)


def store_of(address: str) -> tuple[Any, str]:
    """The file system an address is of, and the place in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError(
            f"{address} needs fsspec; install it with: pip install 'evenmatch[remote]'"
        ) from None
    try:
        store, place = url_to_fs(address)
    except ImportError as error:
        raise MissingExtraError(f"cannot reach {address}: {error}") from None
    except ValueError as error:
        raise InputError(f"cannot reach {address}: {error}; check the address") from None
    return store, str(place)
