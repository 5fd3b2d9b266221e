"""A cache of parses on disk: each parser parses a text only once.

A key is a hash of the parser's identity and the text.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from evenmatch.errors import DataError
from evenmatch.files import cache_dir
from evenmatch.protocols import Parser
from evenmatch.store import Store, entry_key
from evenmatch.types import Parse, Tree
from evenmatch.units.trees import iter_nodes

MAX_STORE_BYTES = 1 << 30
_FORMAT = "parse 2"  # part of every key, so that a new format gets new entries


def parse_cached(parser: Parser, texts: Sequence[str]) -> list[Parse]:
    """Parse each text, or read its parse from the store.

    If the store cannot be used, all texts are parsed.
    """
    identity, store = parser.identity(), parse_store()
    distinct = list(dict.fromkeys(texts))
    keys = {text: entry_key(_FORMAT, identity, text) for text in distinct}
    found = _read_cached(store, keys)
    missing = [text for text in distinct if text not in found]
    fresh = dict(zip(missing, parser(missing), strict=True)) if missing else {}
    if missing and parser.identity() != identity:
        raise DataError("the parser or its file changed while texts were parsed; score again")
    try:
        used = [key for text, key in keys.items() if text in found]
        store.write({keys[text]: parse_to_bytes(parse) for text, parse in fresh.items()}, used)
    except DataError as error:
        logging.getLogger("evenmatch").debug("parses are not cached: %s", error)
    found |= fresh
    return [found[text] for text in texts]


def parse_store() -> Store:
    """Return the store of parses, in the cache folder."""
    return Store(cache_dir() / "parses", MAX_STORE_BYTES)


def parse_to_bytes(parse: Parse) -> bytes:
    """Serialize a parse without its text: nodes in order, with their numbers of children."""
    trees = []
    for tree in parse.trees:
        nodes = list(iter_nodes(tree))
        trees.append(
            [[n.label for n in nodes], [n.head for n in nodes], [len(n.children) for n in nodes]]
        )
    # Words that differ from the text at their span are stored.
    different = {
        i: word
        for i, (word, (a, b)) in enumerate(zip(parse.words, parse.spans, strict=True))
        if parse.text[a:b] != word
    }
    flat = [edge for span in parse.spans for edge in span]
    return json.dumps([flat, parse.tags, parse.is_constituency, different, trees]).encode()


def parse_from_bytes(text: str, data: bytes) -> Parse:
    """Read a parse written by `parse_to_bytes`."""
    flat, tags, is_constituency, different, trees = json.loads(data)
    spans = tuple(zip(flat[::2], flat[1::2], strict=True))
    words = [text[a:b] for a, b in spans]
    for i, word in different.items():
        words[int(i)] = word
    built = tuple(_build_tree(*columns, is_constituency=is_constituency) for columns in trees)
    return Parse(text, tuple(words), spans, tuple(tags), built, is_constituency)


def _read_cached(store: Store, keys: dict[str, bytes]) -> dict[str, Parse]:
    found: dict[str, Parse] = {}
    try:
        with store.read_entries(list(keys.values())) as entries:
            for text, data in zip(keys, entries, strict=True):
                if data is not None:
                    found[text] = parse_from_bytes(text, bytes(data))
    except DataError as error:
        logging.getLogger("evenmatch").debug("cached parses are not read: %s", error)
    return found


def _build_tree(
    labels: list[str], heads: list[int], counts: list[int], *, is_constituency: bool
) -> Tree:
    # Nodes come in reverse order, so the children of a node are on top of the stack.
    stack: list[Tree] = []
    for label, head, count in zip(labels[::-1], heads[::-1], counts[::-1], strict=True):
        if not count:
            stack.append(Tree(label, head, (head,)))
            continue
        children = stack[: -count - 1 : -1]
        del stack[-count:]
        words = [w for child in children for w in child.words]
        own = [] if is_constituency else [head]
        stack.append(Tree(label, head, tuple(sorted([*own, *words])), tuple(children)))
    return stack[0]
