"""Predicted trees against manual ones, on gold tokens.

Phrase trees derived from dependencies are compared with GUM by bracketing F1: only phrases of two
or more words count, each as often as it occurs in its tree. Dependency trees are compared with
UD English EWT by the heads of words, and by the subtrees of two or more words that they share.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.types import Tree
from evenmatch.units.constituency.converter import convert_dependencies
from evenmatch.units.parsers.spacy import load_pipeline
from evenmatch.units.trees import (
    ROOT_LABELS,
    dependency_tree,
    iter_nodes,
    read_brackets,
    read_conllu,
)


def run() -> dict[str, Any]:
    path = Path(os.environ.get("EVENMATCH_DATA", "")) / "gum-const" / "gum_const.jsonl.gz"
    if not path.is_file():
        return {"skipped": "needs gum-const in EVENMATCH_DATA"}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    gold = [read_brackets(row["tree"])[0] for row in rows]
    derived = derive_trees([sentence.words for sentence in gold])
    pairs = [(tree, sentence.tree) for tree, sentence in zip(derived, gold, strict=True)]
    genres = [row["doc"].split("_")[1] for row in rows]
    table = {}
    for genre in (*sorted(set(genres)), "all"):
        own = [p for p, g in zip(pairs, genres, strict=True) if genre in (g, "all")]
        found = compare_trees(own)
        table[genre] = {
            "sentences": len(own),
            "labelled": round(100 * found.labelled_f1, 2),
            "unlabelled": round(100 * found.unlabelled_f1, 2),
        }
    return {
        "texts": "gum-const",
        "genres": table,
        "dependencies": compare_with_ewt(path.parents[1]),
    }


def compare_with_ewt(data: Path) -> dict[str, Any]:
    """Compare the parser's dependencies with the manual ones of the test set of EWT."""
    path = data / "ud-english-ewt" / "en_ewt-ud-test.conllu.gz"
    if not path.is_file():
        return {"skipped": "needs ud-english-ewt in EVENMATCH_DATA"}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        gold = list(read_conllu(file))
    parsed = parse_words([sentence.words for sentence in gold])
    heads = right = 0
    spans: Counter[str] = Counter()
    for sentence, doc in zip(gold, parsed, strict=True):
        tree = dependency_tree([t.head.i for t in doc], [t.dep_ for t in doc])
        ours, theirs = _heads(tree), _heads(sentence.tree)
        words = [i for i, word in enumerate(sentence.words) if any(c.isalnum() for c in word)]
        heads, right = heads + len(words), right + sum(ours[i] == theirs[i] for i in words)
        found, wanted = _word_sets(tree), _word_sets(sentence.tree)
        spans.update(found=len(found), wanted=len(wanted), both=len(found & wanted))
    return {
        "texts": "ud-english-ewt, test",
        "sentences": len(gold),
        "same head": round(100 * right / heads, 2),
        "gold subtrees found": round(100 * spans["both"] / spans["wanted"], 2),
        "found subtrees in gold": round(100 * spans["both"] / spans["found"], 2),
    }


def _heads(tree: Tree) -> dict[int, int]:
    """The head of each word; the root is its own."""
    inner = {child.head: node.head for node in iter_nodes(tree) for child in node.children}
    return {tree.head: tree.head, **inner}


def _word_sets(tree: Tree) -> set[tuple[int, ...]]:
    return {node.words for node in iter_nodes(tree) if len(node.words) > 1}


def derive_trees(sentences: Iterable[Sequence[str]]) -> Iterator[Tree]:
    """Derive phrase trees from spaCy's parses of sentences that are already split into words."""
    for doc in parse_words(sentences):
        columns = zip(*((t.text, t.tag_, t.head.i, t.dep_) for t in doc), strict=True)
        yield convert_dependencies(*columns)


def parse_words(sentences: Iterable[Sequence[str]]) -> Iterator[Any]:
    """Parse sentences that are already split into words with spaCy."""
    from spacy.tokens import Doc

    nlp = load_pipeline("en_core_web_sm")
    docs = (
        Doc(nlp.vocab, list(words), sent_starts=[n == 0 for n in range(len(words))])
        for words in sentences
    )
    yield from nlp.pipe(docs, batch_size=64)


@dataclass(frozen=True, slots=True)
class BracketingScore:
    """Counts of phrases in predicted and gold trees over the same words."""

    predicted: int = 0
    gold: int = 0
    same_span: int = 0
    same_label: int = 0  # same label and same span

    @property
    def labelled_f1(self) -> float:
        """F1 of phrases with the same span and label."""
        return _f1(self.same_label, self.predicted, self.gold)

    @property
    def unlabelled_f1(self) -> float:
        """F1 of phrases with the same span."""
        return _f1(self.same_span, self.predicted, self.gold)


def compare_trees(pairs: Iterable[tuple[Tree, Tree]]) -> BracketingScore:
    """Count the phrases that predicted and gold trees share, over all (predicted, gold) pairs."""
    predicted = gold = same_span = same_label = 0
    for predicted_tree, gold_tree in pairs:
        ours, theirs = count_brackets(predicted_tree), count_brackets(gold_tree)
        predicted, gold = predicted + ours.total(), gold + theirs.total()
        same_label += (ours & theirs).total()
        same_span += (_drop_labels(ours) & _drop_labels(theirs)).total()
    return BracketingScore(predicted, gold, same_span, same_label)


def count_brackets(tree: Tree) -> Counter[tuple[str, int, int]]:
    """Count (label, first word, last word) of all phrases of two or more words, except ROOT."""
    return Counter(
        (node.label, node.words[0], node.words[-1])
        for node in iter_nodes(tree)
        if len(node.words) > 1 and node.label not in ROOT_LABELS
    )


def _drop_labels(brackets: Counter[tuple[str, int, int]]) -> Counter[tuple[int, int]]:
    return Counter((first, last) for _, first, last in brackets.elements())


def _f1(same: int, predicted: int, gold: int) -> float:
    return 2 * same / (predicted + gold) if predicted + gold else 1.0
