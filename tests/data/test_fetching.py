"""Downloads from a local server, and their failures."""

from __future__ import annotations

import gzip
import hashlib
import json
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from evenmatch.data.catalogue import catalogue, fetch
from evenmatch.data.catalogue.catalogue import DataSet, Upstream
from evenmatch.errors import DataError, MissingExtraError
from tests.support.file_server import Server, serving

TABLE = (
    ",sent_more,sent_less,stereo_antistereo,bias_type,annotations\n"
    '0,"He is, as said, late.",She is late.,stereo,gender,[]\n'
)
CONVERTED = (
    '{"id":0,"sent_more":"He is, as said, late.","sent_less":"She is late.",'
    '"direction":"stereo","bias_type":"gender"}\n'
)
PATH = "nyu-mll/crows-pairs/abc/data/crows_pairs_anonymized.csv"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


SMALL = DataSet(
    name="small",
    about="one pair",
    licence="CC BY-SA 4.0",
    citation="Nobody (2020)",
    layout="{id, …}",
    upstream=(Upstream("nyu-mll/crows-pairs", "abc", ("data/crows_pairs_anonymized.csv",)),),
    files={"crows_pairs.jsonl.gz": sha256(CONVERTED)},
    converter="crows",
)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server({PATH: TABLE})) as listening:
        yield listening


Offer: TypeAlias = Callable[[DataSet], None]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVENMATCH_DATA", str(tmp_path / "data"))
    # a proxy for the world outside must not come between us and our own machine
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "data"


@pytest.fixture
def offer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Offer:
    def put(wanted: DataSet) -> None:
        monkeypatch.setattr(catalogue, "data_sets", lambda: (wanted,))

    put(SMALL)
    return put


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.usefixtures("offer")
def test_a_set_is_fetched_converted_and_put_in_place(folder: Path, server: Server) -> None:
    assert fetch.fetch_data_set("small", address=server.address) == folder / "small"
    assert left(folder) == ["small", "small/README.md", "small/crows_pairs.jsonl.gz"]
    packed = (folder / "small" / "crows_pairs.jsonl.gz").read_bytes()
    assert gzip.decompress(packed).decode() == CONVERTED
    assert "Licence: CC BY-SA 4.0" in (folder / "small" / "README.md").read_text()
    assert catalogue.find_data_set("small") == folder / "small"


@pytest.mark.usefixtures("offer", "folder")
def test_an_existing_set_is_fetched_only_again(server: Server) -> None:
    for again in (False, False, True):
        fetch.fetch_data_set("small", again=again, address=server.address)
    assert server.asked == [PATH, PATH]


@pytest.mark.usefixtures("offer")
def test_other_files_in_the_folder_are_kept(folder: Path, server: Server) -> None:
    fetch.fetch_data_set("small", address=server.address)
    (folder / "small" / "mine.txt").write_text("mine")
    (folder / "small" / "crows_pairs.jsonl.gz").write_bytes(b"damaged")
    fetch.fetch_data_set("small", again=True, address=server.address)
    assert (folder / "small" / "mine.txt").read_text() == "mine"
    assert (folder / "small" / "crows_pairs.jsonl.gz").read_bytes() != b"damaged"


def test_a_source_with_another_checksum_is_refused(
    folder: Path, server: Server, offer: Offer
) -> None:
    path = SMALL.upstream[0].paths[0]
    offer(replace(SMALL, upstream=(replace(SMALL.upstream[0], sha256={path: sha256("x")}),)))
    with pytest.raises(DataError, match=r"anonymized\.csv differs from the catalogue"):
        fetch.fetch_data_set("small", address=server.address)
    assert left(folder) == []


def test_a_source_with_its_checksum_is_taken(server: Server, offer: Offer) -> None:
    path = SMALL.upstream[0].paths[0]
    offer(replace(SMALL, upstream=(replace(SMALL.upstream[0], sha256={path: sha256(TABLE)}),)))
    assert fetch.fetch_data_set("small", address=server.address).is_dir()


def test_converted_files_with_another_checksum_are_refused(
    folder: Path, server: Server, offer: Offer
) -> None:
    offer(replace(SMALL, files={"crows_pairs.jsonl.gz": sha256("x")}))
    with pytest.raises(DataError, match=r"small/crows_pairs\.jsonl\.gz after conversion differs"):
        fetch.fetch_data_set("small", address=server.address)
    assert left(folder) == []


def test_unchecked_keeps_another_content(server: Server, offer: Offer) -> None:
    offer(replace(SMALL, files={"crows_pairs.jsonl.gz": sha256("x")}))
    found = fetch.fetch_data_set("small", checked=False, address=server.address)
    assert (found / "crows_pairs.jsonl.gz").is_file()


@pytest.mark.usefixtures("offer")
def test_an_interrupted_transfer_leaves_nothing(folder: Path, server: Server) -> None:
    server.broken.add(PATH)
    with pytest.raises(DataError, match=r"cannot fetch http.*the transfer was interrupted; try"):
        fetch.fetch_data_set("small", address=server.address)
    assert left(folder) == []


@pytest.mark.usefixtures("offer")
def test_an_interrupted_second_fetch_keeps_the_first(folder: Path, server: Server) -> None:
    fetch.fetch_data_set("small", address=server.address)
    before = (folder / "small" / "crows_pairs.jsonl.gz").read_bytes()
    server.broken.add(PATH)
    with pytest.raises(DataError, match="interrupted"):
        fetch.fetch_data_set("small", again=True, address=server.address)
    assert (folder / "small" / "crows_pairs.jsonl.gz").read_bytes() == before


@pytest.mark.usefixtures("offer")
def test_no_network_leaves_nothing(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DataError, match=r"cannot fetch .*: no connection; check the network"):
            fetch.fetch_data_set("small", address=nobody)
    assert left(folder) == []


@pytest.mark.usefixtures("offer")
def test_a_lacking_file_leaves_nothing(folder: Path, server: Server) -> None:
    server.texts.clear()
    with pytest.raises(DataError, match=r"cannot fetch .*: the server returned 404 Not Found$"):
        fetch.fetch_data_set("small", address=server.address)
    assert left(folder) == []


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "a,b\n1,2,3\n", ""])
@pytest.mark.usefixtures("offer")
def test_a_source_of_another_shape_leaves_nothing(folder: Path, server: Server, text: str) -> None:
    server.texts[PATH] = text
    with pytest.raises(
        DataError, match=r"^the upstream files have an unexpected format \(.*nothing"
    ):
        fetch.fetch_data_set("small", address=server.address)
    assert left(folder) == []


def test_a_set_without_converter_says_what_to_make_by_hand(folder: Path, offer: Offer) -> None:
    offer(replace(SMALL, converter=""))
    with pytest.raises(
        DataError, match=r"create its files by hand from https://github.com/nyu-mll.*"
    ):
        fetch.fetch_data_set("small")
    assert not folder.exists()


@pytest.mark.usefixtures("offer")
def test_a_place_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVENMATCH_DATA", str(tmp_path / "file" / "data"))
    with pytest.raises(DataError, match=r"cannot write to .*; set EVENMATCH_DATA to a folder of y"):
        fetch.fetch_data_set("small", address=server.address)


@pytest.mark.usefixtures("offer")
def test_fetching_without_pooch_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'evenmatch\[data\]'"):
        fetch.fetch_data_set("small", address=server.address)


@pytest.mark.usefixtures("folder")
def test_every_path_of_the_catalogue_can_be_requested(server: Server) -> None:
    """Names with spaces, dots and plus signs reach the server as they are."""
    wanted = catalogue.data_set("wmt1516-daseg")
    [source] = wanted.upstream
    for path in source.paths:
        name = f"{source.repository}/{source.commit}/{path}"
        server.texts[name] = "0.5\n" if ".human." in path else f"{path}\n"
    found = fetch.fetch_data_set(wanted.name, checked=False, address=server.address)
    with gzip.open(found / "wmt16.fi-en.jsonl.gz", "rt") as file:
        record = json.loads(file.read())
    assert record["z"] == 0.5
    assert record["out"].endswith("mt-system.fi-en")
    assert catalogue.find_data_set(wanted.name) == found
