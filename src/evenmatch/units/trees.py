"""Trees and the texts that write them: Penn brackets and CoNLL-U, read without any package."""

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


ESCAPES = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One parsed sentence: words and tags by position, and the tree over them."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    tree: Tree


def iter_nodes(tree: Tree) -> Iterator[Tree]:
    """Every node, a parent before its children, without recursion: trees may be deep."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def is_leaf(node: Tree) -> bool:
    """Whether a node of a phrase tree is one word with its tag."""
    return not node.children


def make_phrase(label: str, children: Sequence[Tree]) -> Tree:
    """A phrase over its parts; its head word is found by the head rules."""
    words = tuple(sorted(w for child in children for w in child.words))
    return Tree(label, children[head_child(label, children)].head, words, tuple(children))


def dependency_tree(heads: Sequence[int], labels: Sequence[str]) -> Tree:
    """The tree of a sentence given each word's head; a root is its own head.

    Children are made before their heads, so depth costs no stack.
    """
    children: list[list[Tree]] = [[] for _ in heads]
    for i in deepest_first(heads):
        own = children[i]
        words = tuple(sorted([i, *(w for child in own for w in child.words)]))
        tree = Tree(labels[i], i, words, tuple(sorted(own, key=lambda child: child.head)))
        if heads[i] == i:
            return tree
        children[heads[i]].append(tree)
    raise DataError("a sentence has no root; one word must be its own head")


def deepest_first(heads: Sequence[int]) -> list[int]:
    """Word positions, every word before its head, and the root last."""
    below: list[list[int]] = [[] for _ in heads]
    order = [i for i, head in enumerate(heads) if head == i]
    for i, head in enumerate(heads):
        if head != i:
            below[head].append(i)
    for i in order:
        order.extend(below[i])
    return order[::-1]


def shift_words(tree: Tree, by: int) -> Tree:
    """The tree with all word positions moved, as for a later sentence of a text."""
    if not by:
        return tree
    made: dict[int, Tree] = {}
    for node in reversed(list(iter_nodes(tree))):
        children = tuple(made[id(child)] for child in node.children)
        words = tuple(w + by for w in node.words)
        made[id(node)] = Tree(node.label, node.head + by, words, children)
    return made[id(tree)]


def read_brackets(text: str) -> list[Sentence]:
    """The trees of a text in Penn brackets; a ROOT around a tree is dropped.

    >>> read_brackets("(ROOT (S (NP (PRP I)) (VP (VBD saw))))")[0].tree.label
    'S'
    """
    found: list[Sentence] = []
    waiting: list[_OpenBracket] = []
    words: list[str] = []
    tags: list[str] = []
    tokens = _TOKENS.findall(text)
    for at, token in enumerate(tokens):
        if token == "(":
            label = tokens[at + 1] if at + 1 < len(tokens) else ""
            waiting.append(_OpenBracket("" if label in "()" else label))
        elif not waiting:
            raise DataError(f"a tree in brackets begins with '(', found {token[:30]!r}")
        elif token == ")":
            node = waiting.pop().close()
            if waiting:
                waiting[-1].children += node
            elif node:
                found.append(Sentence(tuple(words), tuple(tags), _strip_root(node[0])))
                words, tags = [], []
        elif tokens[at - 1] != "(" and waiting[-1].label != _TRACE:
            waiting[-1].word = len(words)
            words.append(ESCAPES.get(token, token))
            tags.append(waiting[-1].label)
    if waiting:
        raise DataError("a tree in brackets is not closed; every '(' needs its ')'")
    return found


@dataclass(slots=True)
class _OpenBracket:
    """A bracket still open: its label, and the word or the children it has so far."""

    label: str
    children: list[Tree] = field(default_factory=list)
    word: int = -1

    def close(self) -> list[Tree]:
        """The node, or nothing for a trace, which stands for no word."""
        if self.word >= 0:
            return [Tree(self.label, self.word, (self.word,))]
        return [make_phrase(_strip_functions(self.label), self.children)] if self.children else []


def _strip_root(tree: Tree) -> Tree:
    """The tree without a ROOT around it that says nothing."""
    while tree.label in ROOT_LABELS and len(tree.children) == 1:
        tree = tree.children[0]
    return tree


def _strip_functions(label: str) -> str:
    """A phrase label without its functions: NP-SBJ=2 is an NP."""
    return re.split(r"[-=|]", label)[0] or label


def read_conllu(lines: Iterable[str]) -> Iterator[Sentence]:
    """The sentences of CoNLL-U lines; ranges and empty nodes are passed over."""
    rows: list[list[str]] = []
    for number, line in enumerate([*lines, ""], 1):
        cells = line.rstrip("\n").split("\t")
        if line.startswith("#"):
            continue
        if len(cells) >= 8:
            if cells[0].isdigit():
                rows.append(cells)
        elif line.strip():
            raise DataError(f"line {number} has {len(cells)} columns; CoNLL-U has 10, by tabs")
        elif rows:
            yield _make_dependency_sentence(rows, number)
            rows = []


def _make_dependency_sentence(rows: Sequence[Sequence[str]], number: int) -> Sentence:
    try:
        heads = [int(row[6]) - 1 for row in rows]
    except ValueError:
        raise DataError(f"the sentence before line {number} has a head that is no number") from None
    if any(not -1 <= head < len(rows) for head in heads):
        raise DataError(f"the sentence before line {number} has a head beyond its words")
    roots = [i for i, head in enumerate(heads) if head == -1]
    heads = [i if head == -1 else head for i, head in enumerate(heads)]
    for i in roots[1:]:
        heads[i] = roots[0]
    if len(deepest_first(heads)) != len(heads) or not roots:
        raise DataError(f"the sentence before line {number} is no tree: its heads run in a circle")
    tags = tuple(row[4] if row[4] != "_" else row[3] for row in rows)
    return Sentence(tuple(r[1] for r in rows), tags, dependency_tree(heads, [r[7] for r in rows]))
