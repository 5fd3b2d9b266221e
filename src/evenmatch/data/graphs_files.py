"""read_graphs and write_graphs: graphs with their texts as JSONL or in PENMAN files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from evenmatch.data.catalogue import data_sets, find
from evenmatch.data.graphs import Amr, Graph, GraphText, Line, Triples
from evenmatch.data.graphs_amr import linear_amr
from evenmatch.data.rows import appearing
from evenmatch.data.tabular import is_json, records
from evenmatch.data.texts import read_lines, shown
from evenmatch.errors import DataError, InputError

_PENMAN = (".amr", ".penman", ".txt")
_TEXTS = ("references", "refs", "reference", "snt")
_ID, _SENTENCE = "# ::id ", "# ::snt "


def read_graphs(data: str | PathLike[str]) -> list[GraphText]:
    """Graphs and texts from a file, or from a file of a public set: 'webnlg-v2/train.jsonl.gz'.

    A JSONL, TSV or Parquet record has `amr` (PENMAN), `triples` (lists of three) or `source` (a
    line of text), and `references`, `refs`, `reference` or `snt`. A file named .amr, .penman or
    .txt has graphs in PENMAN notation between blank lines, each under comments `# ::id` and
    `# ::snt`. What is no graph is refused with its line.
    """
    path = _place(str(data))
    found = list(_blocks(path) if _is_penman(path) else map(_graph_text, *_columns(path)))
    if not found:
        raise InputError(f"there is no graph in {shown(path)}")
    return found


def write_graphs(graphs: Iterable[GraphText], path: str | PathLike[str]) -> None:
    """Write graphs so that `read_graphs` gives them again: JSONL, or a PENMAN file of AMR.

    A PENMAN file has room for one text per graph.
    """
    name = str(path)
    if not (_is_penman(name) or is_json(name)):
        raise InputError(f"cannot write graphs to {name}; name it .jsonl, .amr, .penman or .txt")
    write = _block if _is_penman(name) else _json_line
    text = "".join(map(write, graphs))
    with appearing(name) as place:
        raw = text.encode()
        Path(place).write_bytes(gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw)


def _is_penman(path: str) -> bool:
    return path.lower().removesuffix(".gz").endswith(_PENMAN)


def _place(data: str) -> str:
    """The file meant; the first part of its path may be the name of a public set."""
    name, _, rest = data.partition("/")
    if rest and not Path(data).exists() and name in {each.name for each in data_sets()}:
        return str(find(name) / rest)
    if data != "-" and not Path(data).is_file():
        raise DataError(f"there is no file {data}; give a file of graphs")
    return data


def _columns(path: str) -> tuple[Sequence[Mapping[str, Any]], Sequence[str]]:
    placed = list(records(path))
    return [record for _, record in placed], [where for where, _ in placed]


def _graph_text(record: Mapping[str, Any], where: str) -> GraphText:
    given = next((record[name] for name in _TEXTS if name in record), None)
    texts = [given] if isinstance(given, str) else given
    if not (isinstance(texts, list) and texts and all(isinstance(t, str) for t in texts)):
        raise InputError(
            f"{where} needs texts: 'references', a list of strings, or 'snt', one; got {given!r}"
        )
    return GraphText(_graph(record, where), tuple(texts), str(record.get("id", "")))


def _graph(record: Mapping[str, Any], where: str) -> Graph:
    match record:
        case {"amr": str() as penman}:
            linear_amr(penman, where=f"{where}: graph")
            return Amr(penman)
        case {"triples": [_, *_] as triples}:
            return Triples(tuple(_triple(triple, where) for triple in triples))
        case {"source": str() as line}:
            return Line(line)
    raise InputError(
        f"{where} has no graph: expected 'amr' (text), 'triples' (a list) or 'source' (text); "
        f"its fields: {', '.join(map(repr, record)) or 'none'}"
    )


def _triple(given: Any, where: str) -> tuple[str, str, str]:
    match given:
        case [str() as subject, str() as predicate, str() as target]:
            return subject, predicate, target
    raise InputError(f"{where} has a triple {given!r}; expected subject, predicate and object")


def _blocks(path: str) -> Iterator[GraphText]:
    """The graphs of a PENMAN file; blocks of comments alone, such as its head, are none."""
    lines: list[str] = []
    for number, line in enumerate([*read_lines(path), ""], 1):
        if line.strip():
            lines.append(line)
        elif lines:
            if not all(each.lstrip().startswith("#") for each in lines):
                yield _from_block(lines, shown(path), number - len(lines))
            lines = []


def _from_block(lines: Sequence[str], path: str, first: int) -> GraphText:
    comments = [line for line in lines if line.lstrip().startswith("#")]
    names = [line.removeprefix(_ID).split(" ::")[0] for line in comments if line.startswith(_ID)]
    texts = [line.removeprefix(_SENTENCE) for line in comments if line.startswith(_SENTENCE)]
    if not texts:
        raise InputError(f"the graph at {path} line {first} has no text; expected '# ::snt TEXT'")
    linear_amr("\n".join(lines), where=path, first=first)
    graph = "\n".join(line for line in lines if line not in comments)
    return GraphText(Amr(graph), tuple(texts[:1]), names[0].strip() if names else "")


def _block(each: GraphText) -> str:
    if not isinstance(each.graph, Amr) or len(each.references) != 1:
        raise InputError(
            f"{each.id or 'a graph'} cannot go into a PENMAN file, which has AMR with one text "
            "each; write .jsonl"
        )
    name = f"{_ID}{each.id}\n" if each.id else ""
    sentence = " ".join(each.references[0].split())
    return f"{name}{_SENTENCE}{sentence}\n{each.graph.penman.strip()}\n\n"


def _json_line(each: GraphText) -> str:
    match each.graph:
        case Amr(penman):
            graph: dict[str, Any] = {"amr": penman}
        case Triples(triples):
            graph = {"triples": triples}
        case Line(line):
            graph = {"source": line}
    record = {"id": each.id, **graph, "references": each.references}
    return json.dumps(record, ensure_ascii=False) + "\n"
