"""The graphs of the graph-to-text experiment: to learn from, to look at, and to test on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from evenmatch.data.catalogue import find
from evenmatch.data.graphs import GraphText, Triples
from evenmatch.data.graphs_files import read_graphs, write_graphs

_MOST = 3  # triples in a graph of WebNLG: longer ones take a small model more time than there is
_LOOKED_AT = 200  # of WebNLG's graphs for validation, drawn once and for all
_PRINCE = {"valid": 100, "test": 200}  # of the Little Prince's; the rest is learnt from


@dataclass(frozen=True)
class Corpus:
    """Graphs with texts by what they are for."""

    name: str
    train: tuple[GraphText, ...]
    valid: tuple[GraphText, ...]
    test: tuple[GraphText, ...]

    @cached_property
    def digest(self) -> str:
        """All of it by content."""
        parts = [
            [[each.graph.line, each.references] for each in some]
            for some in (self.train, self.valid, self.test)
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def write(self, folder: Path) -> tuple[str, str]:
        """The files that a run learns from and looks at."""
        folder.mkdir(parents=True, exist_ok=True)
        train, valid = (str(folder / f"{name}.jsonl") for name in ("train", "valid"))
        write_graphs(self.train, train)
        write_graphs(self.valid, valid)
        return train, valid


def webnlg() -> Corpus:
    """WebNLG v2's graphs of one to three triples, with up to a handful of texts each."""
    parts = {
        part: [
            each
            for each in read_graphs(f"webnlg-v2/{part}.jsonl.gz")
            if isinstance(each.graph, Triples) and len(each.graph.triples) <= _MOST
        ]
        for part in ("train", "dev", "test")
    }
    few = _drawn(parts["dev"])[:_LOOKED_AT]
    return Corpus(
        f"WebNLG v2, up to {_MOST} triples", tuple(parts["train"]), tuple(few), tuple(parts["test"])
    )


def little_prince() -> Corpus:
    """The Little Prince in AMR, one text a graph, parted by lot: it comes in one piece."""
    graphs = _drawn(read_graphs(find("amr-little-prince") / "lpp_v3.0.jsonl.gz"))
    valid, test = _PRINCE["valid"], _PRINCE["test"]
    parts = graphs[valid + test :], graphs[:valid], graphs[valid : valid + test]
    return Corpus("The Little Prince, AMR 3", *map(tuple, parts))


CORPORA: Mapping[str, Callable[[], Corpus]] = {"webnlg": webnlg, "amr": little_prince}


def _drawn(graphs: Sequence[GraphText]) -> list[GraphText]:
    """The graphs in an order that says nothing of their place, the same each time."""
    return [graphs[i] for i in np.random.default_rng(0).permutation(len(graphs))]
