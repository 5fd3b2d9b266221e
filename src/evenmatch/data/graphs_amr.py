"""Meaning representations in PENMAN notation: checked, and flattened to one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from evenmatch.errors import InputError, MissingExtraError

_ALIGNMENT = re.compile(r"~(?:[A-Za-z]\.?)?\d+(?:,\d+)*$")
_SENSE = re.compile(r"-\d\d$")
# Strings may hold brackets, comments anything; what is left are brackets and other text.
_PIECES = re.compile(r'"(?:\\.|[^"\\\n])*"|^\s*#.*$|[()]|[^\s()"]+|"', re.MULTILINE)


def linear_amr(text: str, *, where: str = "the graph", first: int = 1) -> str:
    """A graph in one line: brackets, concepts and roles in the order of the notation.

    Variables and slashes go; where a node is named again its concept stands, in full. A concept
    loses its sense number, a string its quotes, everything its alignment. `where` and `first`, the
    number of the graph's first line, are for messages.

    >>> linear_amr('(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG0 b))')
    '( want :ARG0 ( boy ) :ARG1 ( go :ARG0 boy ) )'
    """
    node = _tree(text, where, first)
    concepts = dict(_concepts(node))
    return " ".join(_tokens(node, concepts, f"{where} line {first}"))


def _tree(text: str, where: str, first: int) -> Any:
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
    for piece in _PIECES.finditer(text):
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
            yield variable, _unaligned(target)
        elif isinstance(target, tuple):
            yield from _concepts(target)


def _tokens(node: Any, concepts: dict[str, str], where: str) -> Iterator[str]:
    yield "("
    for role, target in node[1]:
        if target is None:
            raise InputError(f"the graph at {where} has {role!r} with nothing behind it")
        if role == "/":
            # A number such as -10 looks like a sense too, but is no concept and stays whole.
            yield _unquoted(_SENSE.sub("", _unaligned(target)))
            continue
        yield _unaligned(role)
        if isinstance(target, tuple):
            yield from _tokens(target, concepts, where)
        else:
            name = _unaligned(target)
            yield concepts.get(name) or _unquoted(name)
    yield ")"


def _unaligned(token: str) -> str:
    return _ALIGNMENT.sub("", token)


def _unquoted(token: str) -> str:
    """A string without the quotes around it, those inside as they are meant.

    >>> _unquoted('"the \\\\"big\\\\" one"')
    'the "big" one'
    """
    if len(token) > 1 and token.startswith('"') and token.endswith('"'):
        return token[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return token
