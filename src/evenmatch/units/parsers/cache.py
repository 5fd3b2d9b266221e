"""Parses kept on disk: a text that a parser has seen is never parsed by it again."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from typing import Any

from evenmatch.errors import DataError, MissingExtraError
from evenmatch.files import cache_dir
from evenmatch.protocols import Parser
from evenmatch.store import Store
from evenmatch.types import Parse, Tree
from evenmatch.units.trees import iter_nodes

MAX_STORE_BYTES = 1 << 30


_FORMAT = "parse 1"  # part of every key: another form of entry is another entry


def parse_store() -> Store:
    """Where parses lie: beside the stored vectors."""
    return Store(cache_dir() / "parses", MAX_STORE_BYTES)


def parse_cached(parser: Parser, texts: Sequence[str]) -> list[Parse]:
    """The parser's parse of each text, from the store where it has it.

    A store that cannot be used costs time, not the result.
    """
    identity, store = parser.identity(), parse_store()
    distinct = list(dict.fromkeys(texts))
    keys = {text: _cache_key(identity, text) for text in distinct}
    found = _read_cached(store, keys)
    missing = [text for text in distinct if text not in found]
    fresh = dict(zip(missing, parser(missing), strict=True)) if missing else {}
    try:
        used = [key for text, key in keys.items() if text in found]
        store.write({keys[text]: parse_to_bytes(parse) for text, parse in fresh.items()}, used)
    except (DataError, MissingExtraError) as error:
        logging.getLogger("evenmatch").debug("parses are not kept: %s", error)
    found |= fresh
    return [found[text] for text in texts]


def _read_cached(store: Store, keys: dict[str, bytes]) -> dict[str, Parse]:
    found: dict[str, Parse] = {}
    try:
        with store.read_entries(list(keys.values())) as entries:
            for text, data in zip(keys, entries, strict=True):
                if data is not None:
                    found[text] = parse_from_bytes(text, bytes(data))
    except (DataError, MissingExtraError) as error:
        logging.getLogger("evenmatch").debug("parses are not read: %s", error)
    return found


def _cache_key(identity: str, text: str) -> bytes:
    content = f"{_FORMAT}\0{identity}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=20).digest()


def parse_to_bytes(parse: Parse) -> bytes:
    """A parse as bytes, without its text: nodes in order, each with its number of children."""
    trees = []
    for tree in parse.trees:
        every = list(iter_nodes(tree))
        trees.append(
            [[n.label for n in every], [n.head for n in every], [len(n.children) for n in every]]
        )
    # Words that are not what the text has at their place are written out.
    own = {
        i: word
        for i, (word, (a, b)) in enumerate(zip(parse.words, parse.spans, strict=True))
        if parse.text[a:b] != word
    }
    flat = [edge for span in parse.spans for edge in span]
    return json.dumps([flat, parse.tags, parse.is_constituency, own, trees]).encode()


def parse_from_bytes(text: str, data: bytes) -> Parse:
    """The parse written by `to_bytes`."""
    flat, tags, phrases, own, trees = json.loads(data)
    spans = tuple(zip(flat[::2], flat[1::2], strict=True))
    words = [text[a:b] for a, b in spans]
    for i, word in own.items():
        words[int(i)] = word
    built = tuple(_build_tree(*columns, phrases=phrases) for columns in trees)
    return Parse(text, tuple(words), spans, tuple(tags), built, phrases)


def _build_tree(labels: list[str], heads: list[int], counts: list[int], *, phrases: bool) -> Tree:
    made: list[Any] = []
    for label, head, count in zip(labels[::-1], heads[::-1], counts[::-1], strict=True):
        if not count:
            made.append(Tree(label, head, (head,)))
            continue
        children = made[: -count - 1 : -1]
        del made[-count:]
        words = [w for child in children for w in child.words]
        if not phrases:
            words.append(head)
        words.sort()
        made.append(Tree(label, head, tuple(words), tuple(children)))
    tree: Tree = made[0]
    return tree
