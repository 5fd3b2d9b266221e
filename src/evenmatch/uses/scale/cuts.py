"""A stretch of one file: where it lies and what is in it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows of a file, `begin` counted from its first, with the hash of their content.

    `at` is the reader's own: byte and length in a file of lines, group and row in a table.
    """

    begin: int
    rows: int
    at: tuple[int, int]
    content: str


def content_name(data: bytes) -> str:
    """Bytes by their content."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
