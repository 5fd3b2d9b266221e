"""Graphs with the texts people wrote for them: what a graph-to-text generator learns from.

read_graphs and write_graphs: graphs with their texts as JSONL or in PENMAN files.

Meaning representations in PENMAN notation: checked, and flattened to one line.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.catalogue.catalogue import data_sets, find_data_set
from evenmatch.data.files import display_path, is_json, read_lines, read_records
from evenmatch.data.scores import atomic_write
from evenmatch.errors import DataError, InputError, MissingExtraError

# Which part of a triple comes next; small models know these as words of their own.
TRIPLE_TOKENS = ("<H>", "<R>", "<T>")


_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Amr:
    """A meaning representation in PENMAN notation."""

    penman: str

    @property
    def line(self) -> str:
        """The graph in one line, as Ribeiro et al. (2021) give it to a model."""
        return linearise_amr(self.penman)


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
            f"{mark} {_split_name(part)}"
            for triple in self.triples
            for mark, part in zip(TRIPLE_TOKENS, triple, strict=True)
        )
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class LinearisedGraph:
    """An input that is a line of text already."""

    line: str


Graph: TypeAlias = Amr | Triples | LinearisedGraph


@dataclass(frozen=True, slots=True)
class GraphText:
    """One graph, and the texts that say the same."""

    graph: Graph
    references: tuple[str, ...]
    id: str = ""


def _split_name(part: str) -> str:
    """A name as people write it: no underscores, no quotes around it, no humps inside.

    Humps are cut in plain names only: what stands in quotes is text.
    """
    quoted = len(part) > 1 and part.startswith('"') and part.endswith('"')
    plain = part[1:-1] if quoted else part.replace("_", " ")
    if not quoted and " " not in plain:
        plain = _CAMEL_CASE.sub(" ", plain)
    return " ".join(plain.split())


_PENMAN_SUFFIXES = (".amr", ".penman", ".txt")


_TEXT_FIELDS = ("references", "refs", "reference", "snt")


_ID_PREFIX, _SENTENCE_PREFIX = "# ::id ", "# ::snt "


def read_graphs(data: str | PathLike[str]) -> list[GraphText]:
    """Graphs and texts from a file, or from a file of a public set: 'webnlg-v2/train.jsonl.gz'.

    A JSONL, TSV or Parquet record has `amr` (PENMAN), `triples` (lists of three) or `source` (a
    line of text), and `references`, `refs`, `reference` or `snt`. A file named .amr, .penman or
    .txt has graphs in PENMAN notation between blank lines, each under comments `# ::id` and
    `# ::snt`. What is no graph is refused with its line.
    """
    path = _resolve_path(str(data))
    found = list(
        _read_penman(path) if _is_penman(path) else map(_parse_record, *_read_columns(path))
    )
    if not found:
        raise InputError(f"there is no graph in {display_path(path)}")
    return found


def write_graphs(graphs: Iterable[GraphText], path: str | PathLike[str]) -> None:
    """Write graphs so that `read_graphs` gives them again: JSONL, or a PENMAN file of AMR.

    A PENMAN file has room for one text per graph.
    """
    name = str(path)
    if not (_is_penman(name) or is_json(name)):
        raise InputError(f"cannot write graphs to {name}; name it .jsonl, .amr, .penman or .txt")
    write = _format_penman_block if _is_penman(name) else _format_json_line
    text = "".join(map(write, graphs))
    with atomic_write(name) as place:
        raw = text.encode()
        Path(place).write_bytes(gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw)


def _is_penman(path: str) -> bool:
    return path.lower().removesuffix(".gz").endswith(_PENMAN_SUFFIXES)


def _resolve_path(data: str) -> str:
    """The file meant; the first part of its path may be the name of a public set."""
    name, _, rest = data.partition("/")
    if rest and not Path(data).exists() and name in {each.name for each in data_sets()}:
        return str(find_data_set(name) / rest)
    if data != "-" and not Path(data).is_file():
        raise DataError(f"there is no file {data}; give a file of graphs")
    return data


def _read_columns(path: str) -> tuple[Sequence[Mapping[str, Any]], Sequence[str]]:
    placed = list(read_records(path))
    return [record for _, record in placed], [where for where, _ in placed]


def _parse_record(record: Mapping[str, Any], where: str) -> GraphText:
    given = next((record[name] for name in _TEXT_FIELDS if name in record), None)
    texts = [given] if isinstance(given, str) else given
    if not (isinstance(texts, list) and texts and all(isinstance(t, str) for t in texts)):
        raise InputError(
            f"{where} needs texts: 'references', a list of strings, or 'snt', one; got {given!r}"
        )
    return GraphText(_parse_graph(record, where), tuple(texts), str(record.get("id", "")))


def _parse_graph(record: Mapping[str, Any], where: str) -> Graph:
    match record:
        case {"amr": str() as penman}:
            linearise_amr(penman, where=f"{where}: graph")
            return Amr(penman)
        case {"triples": [_, *_] as triples}:
            return Triples(tuple(_parse_triple(triple, where) for triple in triples))
        case {"source": str() as line}:
            return LinearisedGraph(line)
    raise InputError(
        f"{where} has no graph: expected 'amr' (text), 'triples' (a list) or 'source' (text); "
        f"its fields: {', '.join(map(repr, record)) or 'none'}"
    )


def _parse_triple(given: Any, where: str) -> tuple[str, str, str]:
    match given:
        case [str() as subject, str() as predicate, str() as target]:
            return subject, predicate, target
    raise InputError(f"{where} has a triple {given!r}; expected subject, predicate and object")


def _read_penman(path: str) -> Iterator[GraphText]:
    """The graphs of a PENMAN file; blocks of comments alone, such as its head, are none."""
    lines: list[str] = []
    for number, line in enumerate([*read_lines(path), ""], 1):
        if line.strip():
            lines.append(line)
        elif lines:
            if not all(each.lstrip().startswith("#") for each in lines):
                yield _parse_penman_block(lines, display_path(path), number - len(lines))
            lines = []


def _parse_penman_block(lines: Sequence[str], path: str, first: int) -> GraphText:
    comments = [line for line in lines if line.lstrip().startswith("#")]
    names = [
        line.removeprefix(_ID_PREFIX).split(" ::")[0]
        for line in comments
        if line.startswith(_ID_PREFIX)
    ]
    texts = [
        line.removeprefix(_SENTENCE_PREFIX)
        for line in comments
        if line.startswith(_SENTENCE_PREFIX)
    ]
    if not texts:
        raise InputError(f"the graph at {path} line {first} has no text; expected '# ::snt TEXT'")
    linearise_amr("\n".join(lines), where=path, first=first)
    graph = "\n".join(line for line in lines if line not in comments)
    return GraphText(Amr(graph), tuple(texts[:1]), names[0].strip() if names else "")


def _format_penman_block(each: GraphText) -> str:
    if not isinstance(each.graph, Amr) or len(each.references) != 1:
        raise InputError(
            f"{each.id or 'a graph'} cannot go into a PENMAN file, which has AMR with one text "
            "each; write .jsonl"
        )
    name = f"{_ID_PREFIX}{each.id}\n" if each.id else ""
    sentence = " ".join(each.references[0].split())
    return f"{name}{_SENTENCE_PREFIX}{sentence}\n{each.graph.penman.strip()}\n\n"


def _format_json_line(each: GraphText) -> str:
    match each.graph:
        case Amr(penman):
            graph: dict[str, Any] = {"amr": penman}
        case Triples(triples):
            graph = {"triples": triples}
        case LinearisedGraph(line):
            graph = {"source": line}
    record = {"id": each.id, **graph, "references": each.references}
    return json.dumps(record, ensure_ascii=False) + "\n"


_ALIGNMENT = re.compile(r"~(?:[A-Za-z]\.?)?\d+(?:,\d+)*$")


_SENSE = re.compile(r"-\d\d$")


# Strings may hold brackets, comments anything; what is left are brackets and other text.
_TOKEN_PATTERN = re.compile(r'"(?:\\.|[^"\\\n])*"|^\s*#.*$|[()]|[^\s()"]+|"', re.MULTILINE)


def linearise_amr(text: str, *, where: str = "the graph", first: int = 1) -> str:
    """A graph in one line: brackets, concepts and roles in the order of the notation.

    Variables and slashes go; where a node is named again its concept stands, in full. A concept
    loses its sense number, a string its quotes, everything its alignment. `where` and `first`, the
    number of the graph's first line, are for messages.

    >>> linearise_amr('(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG0 b))')
    '( want :ARG0 ( boy ) :ARG1 ( go :ARG0 boy ) )'
    """
    node = _parse_penman(text, where, first)
    concepts = dict(_concepts(node))
    return " ".join(_tokens(node, concepts, f"{where} line {first}"))


def _parse_penman(text: str, where: str, first: int) -> Any:
    """The nested nodes of the only graph in a text."""
    try:
        import penman
    except ImportError:
        raise MissingExtraError(
            "graphs in PENMAN notation need penman; install it with: pip install 'evenmatch[tune]'"
        ) from None
    _check_brackets(text, where, first)
    try:
        return penman.parse(text).node
    except penman.DecodeError as error:
        line = first - 1 + (error.lineno or 1)
        told = error.message[:1].lower() + error.message[1:]
        raise InputError(f"{where} line {line} is no PENMAN graph: {told}") from None


def _check_brackets(text: str, where: str, first: int) -> None:
    """Refuse what the parser passes over in silence: brackets too many, text around the graph."""
    opened: list[int] = []
    closed = False
    for piece in _TOKEN_PATTERN.finditer(text):
        line = first + text.count("\n", 0, piece.start())
        found = piece.group()
        if found.lstrip().startswith("#") and not opened:
            continue
        if found == '"':
            raise InputError(f"{where} line {line} opens a quote that does not end on its line")
        if not opened and (closed or found != "("):
            what = "a closing bracket too many" if found == ")" else f"{found!r} outside the graph"
            raise InputError(f"{where} line {line} has {what}; give one graph in brackets")
        if found == "(":
            opened.append(line)
        elif found == ")":
            opened.pop()
            closed = not opened
    if opened:
        raise InputError(f"{where} line {opened[-1]} opens a bracket that is never closed")
    if not closed:
        raise InputError(f"{where} line {first} has no graph; give one in brackets")


def _concepts(node: Any) -> Iterator[tuple[str, str]]:
    """Each variable with its concept."""
    variable, branches = node
    for role, target in branches:
        if role == "/" and target is not None:
            yield variable, _strip_alignment(target)
        elif isinstance(target, tuple):
            yield from _concepts(target)


def _tokens(node: Any, concepts: dict[str, str], where: str) -> Iterator[str]:
    yield "("
    for role, target in node[1]:
        if target is None:
            raise InputError(f"the graph at {where} has {role!r} with nothing behind it")
        if role == "/":
            # A number such as -10 looks like a sense too, but is no concept and stays whole.
            yield _unquote(_SENSE.sub("", _strip_alignment(target)))
            continue
        yield _strip_alignment(role)
        if isinstance(target, tuple):
            yield from _tokens(target, concepts, where)
        else:
            name = _strip_alignment(target)
            yield concepts.get(name) or _unquote(name)
    yield ")"


def _strip_alignment(token: str) -> str:
    return _ALIGNMENT.sub("", token)


def _unquote(token: str) -> str:
    """A string without the quotes around it, those inside as they are meant.

    >>> _unquote('"the \\\\"big\\\\" one"')
    'the "big" one'
    """
    if len(token) > 1 and token.startswith('"') and token.endswith('"'):
        return token[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return token
