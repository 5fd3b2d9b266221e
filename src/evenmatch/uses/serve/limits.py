"""How much one request may ask for, how many may wait, and how a request is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evenmatch.types import Pair


@dataclass(frozen=True)
class Limits:
    """Bounds that keep the server alive whatever it is sent."""

    most_bytes: int = 4 << 20  # of one request's body
    most_texts: int = 2048  # of one request, references included
    longest_text: int = 20_000  # characters
    longest_aligned: int = 2_000  # characters of a text to align: the answer grows as a product
    most_waiting: int = 8192  # pairs that wait for their turn, over all requests
    timeout: float = 60.0  # seconds until a request is answered, or its body has arrived


class RefusedError(Exception):
    """A request that is not carried out: its status, and what to say."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def checked_pairs(candidates: list[str], references: list[Any], limits: Limits) -> tuple[Pair, ...]:
    """One pair per candidate, or a refusal that says which bound it is beyond."""
    if len(candidates) != len(references):
        raise RefusedError(
            409,
            f"{len(candidates)} candidates but {len(references)} references; give one string or "
            "one list of strings per candidate",
        )
    pairs = tuple(
        Pair(candidate, (given,) if isinstance(given, str) else tuple(given))
        for candidate, given in zip(candidates, references, strict=True)
    )
    count = sum(1 + len(pair.references) for pair in pairs)
    if count > limits.most_texts:
        raise RefusedError(
            413, f"{count} texts in one request; at most {limits.most_texts}, send several requests"
        )
    check_lengths(
        (text for pair in pairs for text in (pair.candidate, *pair.references)), limits.longest_text
    )
    return pairs


def check_lengths(texts: Iterable[str], longest: int) -> None:
    """Refuse a text that is too long."""
    found = max(map(len, texts), default=0)
    if found > longest:
        raise RefusedError(413, f"a text of {found} characters; at most {longest} are taken")
