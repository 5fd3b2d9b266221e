from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenmatch.data.files import count_lines, is_rereadable, read_lines
from evenmatch.errors import DataError


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"a\n\n", ["a", ""]),
        (b"a\r\nb\r\r\nc", ["a", "b\r", "c"]),
        ("one\u2028still one\u0085and\x0bon\n".encode(), ["one\u2028still one\u0085and\x0bon"]),
        ("\ufeffafter a mark\n\ufeffkept\n".encode(), ["after a mark", "\ufeffkept"]),
        (b" spaces stay \n", [" spaces stay "]),
    ],
)
def test_only_line_feeds_end_a_line_and_none_is_dropped(
    tmp_path: Path, content: bytes, lines: list[str]
) -> None:
    plain, packed = tmp_path / "x.txt", tmp_path / "x.txt.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    for path in (str(plain), str(packed)):
        assert list(read_lines(path)) == lines
        assert count_lines(path) == len(lines)


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=["Cs"]))))
def test_what_is_written_by_line_is_read_by_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "x.txt"
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    assert list(read_lines(str(path))) == lines
    assert count_lines(str(path)) == len(lines)


def test_counting_does_not_depend_on_where_a_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"x" * ((1 << 20) - 1) + b"\n" + b"y\n" * 10)
    assert count_lines(str(path)) == 11


def test_a_byte_that_is_no_text_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"fine\nna\xefve\n")
    lines = read_lines(str(path))
    assert next(lines) == "fine"
    with pytest.raises(DataError, match=r"x\.txt line 2 is not UTF-8 text \(byte 3\); save"):
        next(lines)


def test_standard_input_is_read_once_and_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb")))
    assert list(read_lines("-")) == ["a", "b"]
    assert not sys.stdin.closed
    assert not is_rereadable("-")
