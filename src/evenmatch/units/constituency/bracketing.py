"""How far phrase trees agree with those of a treebank: spans and labels counted, and their F."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from evenmatch.types import Tree
from evenmatch.units.trees import ROOT_LABELS, iter_nodes


@dataclass(frozen=True, slots=True)
class BracketingScore:
    """Phrases of several words in two sets of trees over the same words."""

    predicted: int = 0
    gold: int = 0
    same_span: int = 0
    same_label: int = 0  # and span

    @property
    def labelled_f1(self) -> float:
        """F of phrases that agree in span and label."""
        return _f1(self.same_label, self.predicted, self.gold)

    @property
    def unlabelled_f1(self) -> float:
        """F of phrases that agree in span."""
        return _f1(self.same_span, self.predicted, self.gold)


def compare_trees(pairs: Iterable[tuple[Tree, Tree]]) -> BracketingScore:
    """The agreement of each found tree with the wanted one, over all of them.

    Only phrases of two words or more count, each as often as it stands in its tree.
    """
    found = wanted = same_span = same_label = 0
    for one, other in pairs:
        own, gold = count_brackets(one), count_brackets(other)
        found, wanted = found + own.total(), wanted + gold.total()
        same_label += (own & gold).total()
        same_span += (_drop_labels(own) & _drop_labels(gold)).total()
    return BracketingScore(found, wanted, same_span, same_label)


def count_brackets(tree: Tree) -> Counter[tuple[str, int, int]]:
    """Label, first and last word of every phrase of several words, a ROOT aside."""
    return Counter(
        (node.label, node.words[0], node.words[-1])
        for node in iter_nodes(tree)
        if len(node.words) > 1 and node.label not in ROOT_LABELS
    )


def _drop_labels(counted: Counter[tuple[str, int, int]]) -> Counter[tuple[int, int]]:
    return Counter((first, last) for _, first, last in counted.elements())


def _f1(same: int, found: int, wanted: int) -> float:
    return 2 * same / (found + wanted) if found + wanted else 1.0
