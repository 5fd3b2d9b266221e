"""Graphs with reference texts: the data of graph-to-text generation.

`read_graphs` and `write_graphs` read and write JSONL and PENMAN files. A graph is an AMR, a list of
RDF triples or an already linearised text; its `line` is the input of a model. `linearise_amr`
checks a graph in PENMAN notation and writes it on one line.
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
from evenmatch.data.scores import replace_file
from evenmatch.errors import DataError, InputError, needs_extra
from evenmatch.registry.parts import check_arguments

# Special tokens before the subject, predicate and object of a triple. Models trained from scratch
# have them in their vocabulary.
TRIPLE_TOKENS = ("<H>", "<R>", "<T>")

_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_PENMAN_SUFFIXES = (".amr", ".penman", ".txt")

_TEXT_FIELDS = ("references", "refs", "reference", "snt")

_ID_PREFIX, _SENTENCE_PREFIX = "# ::id ", "# ::snt "

_ALIGNMENT = re.compile(r"~(?:[A-Za-z]\.?)?\d+(?:,\d+)*$")

_SENSE = re.compile(r"-\d\d$")

_MAX_DEPTH = 200  # of nested brackets

# A string (which may contain brackets), a comment line, a bracket, other text, a lone quote.
_TOKEN_PATTERN = re.compile(r'"(?:\\.|[^"\\\n])*"|^\s*#.*$|[()]|[^\s()"]+|"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Amr:
    """An abstract meaning representation (AMR) in PENMAN notation."""

    penman: str

    @property
    def line(self) -> str:
        """The graph on one line, linearised as in Ribeiro et al. (2021)."""
        return linearise_amr(self.penman)


@dataclass(frozen=True, slots=True)
class Triples:
    """RDF triples: subject, predicate, object."""

    triples: tuple[tuple[str, str, str], ...]

    @property
    def line(self) -> str:
        """The triples on one line, each part after its special token, split into words.

        >>> Triples((("Aarhus_Airport", "cityServed", '"Aarhus, Denmark"'),)).line
        '<H> Aarhus Airport <R> city Served <T> Aarhus, Denmark'
        """
        parts = (
            f"{token} {_split_name(part)}"
            for triple in self.triples
            for token, part in zip(TRIPLE_TOKENS, triple, strict=True)
        )
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class LinearisedGraph:
    """A graph that is already linearised as a line of text."""

    line: str


Graph: TypeAlias = Amr | Triples | LinearisedGraph


@dataclass(frozen=True, slots=True)
class GraphText:
    """A graph with its reference texts."""

    graph: Graph
    references: tuple[str, ...]
    id: str = ""


@check_arguments
def read_graphs(data: str | PathLike[str], *, need_texts: bool = True) -> list[GraphText]:
    """Read graphs and texts from a file, or a file of a public set: 'webnlg-v2/train.jsonl.gz'.

    A JSONL, TSV or Parquet record has `amr` (PENMAN), `triples` (lists of three) or `source` (a
    line of text), and `references`, `refs`, `reference` or `snt`. A file named .amr, .penman or
    .txt has graphs in PENMAN notation separated by blank lines, each after comments `# ::id` and
    `# ::snt`. An invalid graph raises an `InputError` with its line; so does one without a text,
    unless `need_texts` is False.
    """
    path = _resolve_path(str(data))
    if _is_penman(path):
        found = list(_read_penman(path, need_texts))
    else:
        found = [_parse_record(record, where, need_texts) for where, record in read_records(path)]
    if not found:
        raise InputError(f"there are no graphs in {display_path(path)}")
    return found


@check_arguments
def write_graphs(graphs: Iterable[GraphText], path: str | PathLike[str]) -> None:
    """Write graphs to a JSONL file or, for AMR with one text each, to a PENMAN file.

    `read_graphs` reads both.
    """
    name = str(path)
    if not (_is_penman(name) or is_json(name)):
        raise InputError(f"cannot write graphs to {name}; name it .jsonl, .amr, .penman or .txt")
    write = _format_penman_block if _is_penman(name) else _format_json_line
    given = list(graphs)
    if not all(isinstance(each, GraphText) for each in given):
        raise InputError("expected graphs with texts, as `read_graphs` returns them")
    raw = "".join(map(write, given)).encode()
    replace_file(name, gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw)


def linearise_amr(text: str, *, where: str = "the graph", first: int = 1) -> str:
    """Write an AMR graph on one line: brackets, concepts and roles in the order of the notation.

    Variables and slashes are removed; a repeated variable becomes its full concept. Concepts lose
    their sense number, strings their quotes, and all tokens their alignment. `where` and `first`
    (the line number of the graph's first line) are used in messages.

    >>> linearise_amr('(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG0 b))')
    '( want :ARG0 ( boy ) :ARG1 ( go :ARG0 boy ) )'
    """
    tree = _parse_penman(text, where, first)
    concepts = {
        variable: _strip_alignment(target)
        for variable, branches in tree.nodes()
        for role, target in branches
        if role == "/" and target is not None
    }
    return " ".join(_tokens(tree.node, concepts, f"{where} line {first}"))


def _is_penman(path: str) -> bool:
    return path.lower().removesuffix(".gz").endswith(_PENMAN_SUFFIXES)


def _resolve_path(data: str) -> str:
    """Return the path of a file; its first part may be the name of a public set."""
    name, _, rest = data.partition("/")
    if rest and not Path(data).exists() and name in {each.name for each in data_sets()}:
        return str(find_data_set(name) / rest)
    if data != "-" and not Path(data).is_file():
        raise DataError(f"there is no file {data}; give a file of graphs")
    return data


def _parse_record(record: Mapping[str, Any], where: str, need_texts: bool) -> GraphText:
    given = next((record[name] for name in _TEXT_FIELDS if name in record), None)
    texts = [given] if isinstance(given, str) else given
    if not texts and not need_texts:
        texts = []
    elif not (isinstance(texts, list) and texts and all(isinstance(t, str) for t in texts)):
        raise InputError(
            f"{where} needs 'references' (a list of strings) or 'snt' (a string); got {given!r}"
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


def _read_penman(path: str, need_texts: bool) -> Iterator[GraphText]:
    """Read the graphs of a PENMAN file; skip blocks of comments, such as the file header."""
    lines: list[str] = []
    for number, line in enumerate([*read_lines(path), ""], 1):
        if line.strip():
            lines.append(line)
        elif lines:
            if not all(each.lstrip().startswith("#") for each in lines):
                first = number - len(lines)
                yield _parse_penman_block(lines, display_path(path), first, need_texts)
            lines = []


def _parse_penman_block(lines: Sequence[str], path: str, first: int, need_texts: bool) -> GraphText:
    names, texts = (
        [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]
        for prefix in (_ID_PREFIX, _SENTENCE_PREFIX)
    )
    if need_texts and not texts:
        raise InputError(f"the graph at {path} line {first} has no text; expected '# ::snt TEXT'")
    linearise_amr("\n".join(lines), where=path, first=first)
    graph = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    name = names[0].split(" ::")[0].strip() if names else ""
    return GraphText(Amr(graph), tuple(texts[:1]), name)


def _format_penman_block(each: GraphText) -> str:
    if not isinstance(each.graph, Amr) or len(each.references) != 1:
        raise InputError(
            f"{each.id or 'a graph'} cannot be written to a PENMAN file, which holds AMR with one "
            "text each; write .jsonl"
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


def _parse_penman(text: str, where: str, first: int) -> Any:
    """Parse a text with exactly one graph into a tree of nodes."""
    with needs_extra(
        "graphs in PENMAN notation need penman; install it with: pip install 'evenmatch[tune]'"
    ):
        import penman
    _check_brackets(text, where, first)
    try:
        return penman.parse(text)
    except penman.DecodeError as error:
        line = first - 1 + (error.lineno or 1)
        reason = error.message[:1].lower() + error.message[1:]
        raise InputError(f"{where} line {line} is not a PENMAN graph: {reason}") from None


def _check_brackets(text: str, where: str, first: int) -> None:
    """Raise for errors that the parser ignores: surplus brackets and text around the graph."""
    opened: list[int] = []
    closed = False
    line, counted = first, 0
    for match in _TOKEN_PATTERN.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        token = match.group()
        if token.lstrip().startswith("#") and not opened:
            continue
        if token == '"':
            raise InputError(f"{where} line {line} opens a quote that does not end on its line")
        if not opened and (closed or token != "("):
            what = "a surplus closing bracket" if token == ")" else f"{token!r} outside the graph"
            raise InputError(f"{where} line {line} has {what}; give one graph in brackets")
        if token == "(":
            opened.append(line)
            if len(opened) > _MAX_DEPTH:
                raise InputError(f"{where} line {line} is nested more than {_MAX_DEPTH} deep")
        elif token == ")":
            opened.pop()
            closed = not opened
    if opened:
        raise InputError(f"{where} line {opened[-1]} opens a bracket that is never closed")
    if not closed:
        raise InputError(f"{where} line {first} has no graph; give one in brackets")


def _tokens(node: Any, concepts: dict[str, str], where: str) -> Iterator[str]:
    yield "("
    for role, target in node[1]:
        if target is None:
            raise InputError(f"the graph at {where} has {role!r} without a value")
        if role == "/":
            # Only concepts have sense numbers: a value such as -10 would match the pattern too.
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
    """Remove the quotes around a string and unescape those inside.

    >>> _unquote('"the \\\\"big\\\\" one"')
    'the "big" one'
    """
    if len(token) > 1 and token.startswith('"') and token.endswith('"'):
        return token[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return token


def _split_name(part: str) -> str:
    """Split a name into words at underscores and camel case, and remove quotes around it.

    Camel case is split in unquoted names only: a quoted part is text.
    """
    quoted = len(part) > 1 and part.startswith('"') and part.endswith('"')
    plain = part[1:-1] if quoted else part.replace("_", " ")
    if not quoted and " " not in plain:
        plain = _CAMEL_CASE.sub(" ", plain)
    return " ".join(plain.split())
