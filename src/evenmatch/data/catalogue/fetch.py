"""Download data sets: fetch the upstream files, convert them, verify checksums, move into place."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from evenmatch.data.catalogue.catalogue import DataSet, data_dir, data_set
from evenmatch.data.catalogue.convert import CONVERTERS, write_converted
from evenmatch.errors import DataError, needs_extra

BASE_URL = "https://raw.githubusercontent.com"

_TIMEOUT = 60  # seconds without a response

_CHUNK = 1 << 16


def fetch_data_set(
    name: str, *, again: bool = False, checked: bool = True, address: str = BASE_URL
) -> Path:
    """Download a set if it is missing, or `again`, and return its folder.

    The files are moved into place only when all are complete. With `checked=False`, files are kept
    even if their checksums differ from the catalogue's. `address` is the base URL of a server that
    has the files under ADDRESS/REPOSITORY/COMMIT/PATH.
    """
    wanted = data_set(name)
    if wanted.present and not again:
        return wanted.folder
    if not wanted.converter:
        raise DataError(
            f"evenmatch cannot convert {name}; create its files by hand from "
            f"{_source_urls(wanted, ', ')} in {wanted.folder}: {wanted.layout}"
        )
    with _temporary_folder(wanted) as place:
        originals, converted = Path(place) / "upstream", Path(place) / "converted"
        for source in wanted.upstream:
            for path in source.paths:
                url = f"{address}/{quote(f'{source.repository}/{source.commit}/{path}')}"
                known = source.sha256.get(path) if checked else None
                _download(url, originals / source.repository / path, known)
        checksums = write_converted(CONVERTERS[wanted.converter](originals), converted)
        if checked:
            _check_checksums(wanted, checksums)
        (converted / "README.md").write_text(_readme(wanted), "utf-8")
        _move_into_place(converted, wanted.folder)
    return wanted.folder


def _temporary_folder(wanted: DataSet) -> TemporaryDirectory[str]:
    # In the folder of the target, so that moving the result is an atomic rename on one disk.
    try:
        data_dir().mkdir(parents=True, exist_ok=True)
        return TemporaryDirectory(
            prefix=f".{wanted.name}.", dir=data_dir(), ignore_cleanup_errors=True
        )
    except OSError as error:
        raise DataError(
            f"cannot write to {data_dir()} ({error.strerror}); "
            "set EVENMATCH_DATA to a folder of your own"
        ) from None


def _download(url: str, target: Path, sha256: str | None) -> None:
    with needs_extra(
        "fetching data sets needs pooch; install it with: pip install 'evenmatch[data]'"
    ):
        import pooch
        import requests
    level = pooch.get_logger().level
    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(
            url,
            known_hash=f"sha256:{sha256}" if sha256 else None,
            fname=target.name,
            path=target.parent,
            downloader=pooch.HTTPDownloader(timeout=_TIMEOUT, chunk_size=_CHUNK),
        )
    except requests.RequestException as error:
        raise DataError(f"cannot fetch {url}: {_failure_reason(error)}") from None
    except ValueError:
        raise DataError(
            f"the checksum of {url} differs from the catalogue's; the file was discarded "
            "(--unchecked keeps it)"
        ) from None
    finally:
        pooch.get_logger().setLevel(level)


def _failure_reason(error: Any) -> str:
    if error.response is not None:
        return f"the server returned {error.response.status_code} {error.response.reason}"
    import requests

    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the transfer was interrupted; try again"
    if isinstance(error, requests.Timeout):
        return f"no response for {_TIMEOUT} seconds; try again"
    return "no connection; check the network, or give another address with --mirror"


def _check_checksums(wanted: DataSet, checksums: dict[str, str]) -> None:
    for name in sorted({*wanted.files, *checksums}):
        if checksums.get(name) != wanted.files.get(name):
            raise DataError(
                f"the checksum of {wanted.name}/{name} after conversion differs from the "
                "catalogue's; the set was discarded (--unchecked keeps it)"
            )


def _move_into_place(converted: Path, target: Path) -> None:
    if not target.exists():
        os.replace(converted, target)
        return
    for path in converted.iterdir():  # other files in the folder are kept
        os.replace(path, target / path.name)


def _readme(wanted: DataSet) -> str:
    made_from = f"Made from: {_source_urls(wanted, ' ')}"
    parts = [f"# {wanted.name}", wanted.about, f"Licence: {wanted.licence}"]
    parts += [f"Cite: {wanted.citation}", made_from, f"Layout: {wanted.layout}", wanted.notes]
    return "\n\n".join(filter(None, parts)) + "\n"


def _source_urls(wanted: DataSet, between: str) -> str:
    return between.join(source.url for source in wanted.upstream)
