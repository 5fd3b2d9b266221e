"""Every encoder passes the published check; each broken one here breaks one promise of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.errors import PromiseError
from evenmatch.types import Embedded, Units
from evenmatch.vectors.encoder_contract import check_encoder
from tests.support.model_families import FAMILIES, Family, FolderOf
from tests.support.parts import Row, rows


@pytest.mark.parametrize("row", rows("vectors"))
def test_every_encoder_passes_the_published_check(row: Row) -> None:
    check_encoder(em.build(row.spec), excused=row.excused)


def test_a_table_of_vectors_passes_the_published_check(tmp_path: Path) -> None:
    (tmp_path / "table.txt").write_text("the 1 0\ncat 0.5 0.5\n猫 0 1\n")
    check_encoder(em.Lookup(table=str(tmp_path / "table.txt")))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_family_passes_the_published_check(family: Family, folder_of: FolderOf) -> None:
    check_encoder(em.Transformer(str(folder_of(family.name)), 2, mass=em.Norm()))


def encoded(batch: Sequence[Units]) -> list[Embedded]:
    return em.Hashed(dim=4)(batch)


def changed(batch: Sequence[Units], **change: Any) -> list[Embedded]:
    return [dataclasses.replace(e, **{k: f(e) for k, f in change.items()}) for e in encoded(batch)]


@dataclass(frozen=True)
class Careless:
    """Leaves out what is empty."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        return encoded([units for units in batch if units.text.strip()])


@dataclass(frozen=True)
class Uneven:
    """Gives one mass too many."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        return changed(batch, mass=lambda e: np.ones(len(e.mass) + 1))


@dataclass(frozen=True)
class Growing:
    """Gives longer texts longer vectors."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        return changed(batch, vectors=lambda e: np.zeros((len(e.mass), 1 + len(e.mass))))


@dataclass(frozen=True)
class Editor:
    """Encodes another text than the one it was given."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        return encoded([dataclasses.replace(u, text=u.text.upper()) for u in batch])


@dataclass(frozen=True)
class Splitting:
    """Splits the text itself and ignores the given units."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        return encoded([em.Words()(u.text + " ") if "." in u.text else u for u in batch])


@dataclass(frozen=True)
class WordsOnly:
    """Cannot split a text itself, and returns nothing for one."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        if any(units.by_model for units in batch):
            return []
        return encoded(batch)


@dataclass(frozen=True)
class Undefined:
    """Divides by the length of its vectors, zero or not."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        return changed(batch, vectors=lambda e: e.vectors * np.nan)


@dataclass(frozen=True)
class Negative:
    """Lets frequent words count for less than nothing."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        return changed(batch, weights=lambda e: -e.weights)


@dataclass(frozen=True)
class Ghostly:
    """Finds a unit in an empty text."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        filled = [u if u.words else Units(u.text, ("?",), ((0, 0),), ((0,),)) for u in batch]
        return encoded(filled)


@dataclass(frozen=True)
class Sociable:
    """Looks at a text's neighbours."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        return changed(batch, mass=lambda e: e.mass * len(batch))


SHELF: dict[str, Embedded] = {}


@dataclass(frozen=True)
class Lending:
    """Hands out what it keeps."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        for units, embedded in zip(batch, encoded(batch), strict=True):
            SHELF.setdefault(repr(units), embedded)
        return [SHELF[repr(units)] for units in batch]


BROKEN = (
    Careless,
    Uneven,
    Growing,
    Editor,
    Splitting,
    WordsOnly,
    Undefined,
    Negative,
    Ghostly,
    Sociable,
    Lending,
)


@pytest.fixture(autouse=True)
def registered(registry: None) -> None:
    for make in BROKEN:
        em.register("vectors", make.__name__.lower())(make)


@pytest.mark.parametrize(
    ("make", "promise", "complaint"),
    [
        (Careless, "shapes", "10 texts gave a list of length 8"),
        (Uneven, "shapes", r"gave arrays of shapes \[\(7, 4\), \(7,\), \(8,\)\]"),
        (Growing, "shapes", r"vectors have different dimensions: \[1, 2"),
        (Editor, "shapes", "'The cat sat on the mat.' came back as 'THE CAT"),
        (Splitting, "shapes", "came back as 'The cat sat on the mat. '"),
        (WordsOnly, "pieces", "10 texts gave a list of length 0"),
        (Undefined, "numbers", "has a value that is not finite"),
        (Negative, "numbers", "a weight in .* is negative"),
        (Ghostly, "shapes", "the units of '' were changed"),
        (Sociable, "alone", "encoded together with others gave another result"),
        (Lending, "unshared", "writing to one result changes the next"),
    ],
)
def test_a_broken_encoder_is_caught_by_name(make: Any, promise: str, complaint: str) -> None:
    with pytest.raises(PromiseError, match=rf"breaks the promise '{promise}'.*{complaint}"):
        check_encoder(make())


def test_an_encoder_that_cannot_split_texts_may_be_excused() -> None:
    check_encoder(WordsOnly(), excused=["pieces"])


def test_a_vector_for_an_empty_text_is_caught() -> None:
    with pytest.raises(PromiseError, match=r"breaks the promise 'empty'.*'' gave 1 vectors"):
        check_encoder(Ghostly(), excused=["shapes", "pieces"])
