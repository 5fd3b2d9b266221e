"""Graphs with the texts people wrote for them: what a graph-to-text generator learns from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from evenmatch.data.graphs_amr import linear_amr

# Which part of a triple comes next; small models know these as words of their own.
MARKS = ("<H>", "<R>", "<T>")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Amr:
    """A meaning representation in PENMAN notation."""

    penman: str

    @property
    def line(self) -> str:
        """The graph in one line, as Ribeiro et al. (2021) give it to a model."""
        return linear_amr(self.penman)


@dataclass(frozen=True, slots=True)
class Triples:
    """RDF triples: subject, predicate, object."""

    triples: tuple[tuple[str, str, str], ...]

    @property
    def line(self) -> str:
        """The triples in a row, each part behind its mark, as words.

        >>> Triples((("Aarhus_Airport", "cityServed", '"Aarhus, Denmark"'),)).line
        '<H> Aarhus Airport <R> city Served <T> Aarhus, Denmark'
        """
        parts = (
            f"{mark} {_words(part)}"
            for triple in self.triples
            for mark, part in zip(MARKS, triple, strict=True)
        )
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Line:
    """An input that is a line of text already."""

    line: str


Graph: TypeAlias = Amr | Triples | Line


@dataclass(frozen=True, slots=True)
class GraphText:
    """One graph, and the texts that say the same."""

    graph: Graph
    references: tuple[str, ...]
    id: str = ""


def _words(part: str) -> str:
    """A name as people write it: no underscores, no quotes around it, no humps inside.

    Humps are cut in plain names only: what stands in quotes is text.
    """
    quoted = len(part) > 1 and part.startswith('"') and part.endswith('"')
    plain = part[1:-1] if quoted else part.replace("_", " ")
    if not quoted and " " not in plain:
        plain = _HUMP.sub(" ", plain)
    return " ".join(plain.split())
