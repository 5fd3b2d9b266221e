"""Bracketing F1: agreement of phrase trees with the trees of a treebank.

Only phrases of two or more words count, each as often as it occurs in its tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from evenmatch.types import Tree
from evenmatch.units.trees import ROOT_LABELS, iter_nodes


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
