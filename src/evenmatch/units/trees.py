"""Parse trees: build and traverse them, and read Penn Treebank brackets and CoNLL-U.

All functions work without recursion, since trees may be very deep.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from evenmatch.errors import DataError
from evenmatch.types import Tree
from evenmatch.units.head_rules import head_child

_TOKENS = re.compile(r"\(|\)|[^\s()]+")
_TRACE = "-NONE-"
ROOT_LABELS = frozenset({"", "ROOT", "TOP"})

ESCAPES = dict(zip("-LRB- -RRB- -LSB- -RSB- -LCB- -RCB- `` ''".split(), '()[]{}""', strict=True))


@dataclass(frozen=True, slots=True)
class Sentence:
    """One parsed sentence: words and tags by position, and their tree."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    tree: Tree


def read_brackets(text: str) -> list[Sentence]:
    """Read trees in Penn Treebank brackets; a ROOT around a tree is dropped.

    >>> read_brackets("(ROOT (S (NP (PRP I)) (VP (VBD saw))))")[0].tree.label
    'S'
    """
    found: list[Sentence] = []
    stack: list[_OpenBracket] = []
    words: list[str] = []
    tags: list[str] = []
    tokens = _TOKENS.findall(text)
    for at, token in enumerate(tokens):
        if token == "(":
            label = tokens[at + 1] if at + 1 < len(tokens) else ""
            stack.append(_OpenBracket("" if label in "()" else label))
        elif not stack:
            raise DataError(f"a bracketed tree must begin with '(', found {token[:30]!r}")
        elif token == ")":
            node = stack.pop().close()
            if stack:
                stack[-1].children += node
            elif node:
                tree = node[0]
                while tree.label in ROOT_LABELS and len(tree.children) == 1:
                    tree = tree.children[0]
                found.append(Sentence(tuple(words), tuple(tags), tree))
                words, tags = [], []
        elif tokens[at - 1] != "(" and stack[-1].label != _TRACE:
            stack[-1].word = len(words)
            words.append(ESCAPES.get(token, token))
            tags.append(stack[-1].label)
    if stack:
        raise DataError("a bracketed tree is not closed; every '(' needs a ')'")
    return found


def read_conllu(lines: Iterable[str]) -> Iterator[Sentence]:
    """Read sentences from CoNLL-U lines; multiword ranges and empty nodes are skipped."""
    rows: list[list[str]] = []
    for number, line in enumerate([*lines, ""], 1):
        cells = line.rstrip("\n").split("\t")
        if line.startswith("#"):
            continue
        if len(cells) >= 8:
            if cells[0].isdigit():
                rows.append(cells)
        elif line.strip():
            raise DataError(
                f"line {number} has {len(cells)} columns; CoNLL-U has 10, separated by tabs"
            )
        elif rows:
            yield _make_dependency_sentence(rows, number)
            rows = []


def iter_nodes(tree: Tree) -> Iterator[Tree]:
    """Yield every node, a parent before its children."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def dependency_tree(heads: Sequence[int], labels: Sequence[str]) -> Tree:
    """Return the dependency tree of a sentence given the head of each word.

    The root is its own head. Children are built before their heads.
    """
    children: list[list[Tree]] = [[] for _ in heads]
    for i in deepest_first(heads):
        words = tuple(sorted([i, *(w for child in children[i] for w in child.words)]))
        tree = Tree(labels[i], i, words, tuple(sorted(children[i], key=lambda child: child.head)))
        if heads[i] == i:
            return tree
        children[heads[i]].append(tree)
    raise DataError("a sentence has no root word")


def deepest_first(heads: Sequence[int]) -> list[int]:
    """Return the word positions with every word before its head and the root last."""
    below: list[list[int]] = [[] for _ in heads]
    order = [i for i, head in enumerate(heads) if head == i]
    for i, head in enumerate(heads):
        if head != i:
            below[head].append(i)
    for i in order:
        order.extend(below[i])
    return order[::-1]


def shift_words(tree: Tree, by: int) -> Tree:
    """Return the tree with all word positions moved by an offset."""
    if not by:
        return tree
    shifted: dict[int, Tree] = {}
    for node in reversed(list(iter_nodes(tree))):
        children = tuple(shifted[id(child)] for child in node.children)
        words = tuple(w + by for w in node.words)
        shifted[id(node)] = Tree(node.label, node.head + by, words, children)
    return shifted[id(tree)]


@dataclass(slots=True)
class _OpenBracket:
    """An open bracket: its label, and its word or its children so far."""

    label: str
    children: list[Tree] = field(default_factory=list)
    word: int = -1

    def close(self) -> list[Tree]:
        """Return the node, or an empty list for a trace, which has no words."""
        if self.word >= 0:
            return [Tree(self.label, self.word, (self.word,))]
        if not self.children:
            return []
        # Function tags are removed: NP-SBJ=2 becomes NP.
        label = re.split(r"[-=|]", self.label)[0] or self.label
        words = tuple(sorted(w for child in self.children for w in child.words))
        head = self.children[head_child(label, self.children)].head
        return [Tree(label, head, words, tuple(self.children))]


def _make_dependency_sentence(rows: Sequence[Sequence[str]], number: int) -> Sentence:
    try:
        heads = [int(row[6]) - 1 for row in rows]
    except ValueError:
        raise DataError(
            f"the sentence before line {number} has a head that is not a number"
        ) from None
    if any(not -1 <= head < len(rows) for head in heads):
        raise DataError(f"the sentence before line {number} has a head outside the sentence")
    roots = [i for i, head in enumerate(heads) if head == -1]
    heads = [i if head == -1 else head for i, head in enumerate(heads)]
    for i in roots[1:]:
        heads[i] = roots[0]
    if len(deepest_first(heads)) != len(heads) or not roots:
        raise DataError(f"the sentence before line {number} is not a tree: its heads form a cycle")
    tags = tuple(row[4] if row[4] != "_" else row[3] for row in rows)
    return Sentence(tuple(r[1] for r in rows), tags, dependency_tree(heads, [r[7] for r in rows]))
