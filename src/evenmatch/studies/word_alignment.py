"""Word alignments by the solvers, compared with alignments drawn by people.

A word's vector is the mean of its sub-words' hidden states. Any solver aligns the words of a pair;
a cell is a link if it holds at least `share` of the credit of one of its two words and its
similarity is above `threshold`. For each solver the layer, the share and the threshold with the
highest F1 on a development set are used on the test sets (`measure_word_alignment`). The report is
in `word_alignment_report.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.api import solve_batch
from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.files import read_json_records
from evenmatch.errors import DataError, InputError
from evenmatch.registry import CallContext, make_signature
from evenmatch.scoring.inputs import make_run
from evenmatch.similarity.vectors import Cosine
from evenmatch.stats.panel import Floats
from evenmatch.studies.experiment import ResultStore
from evenmatch.training.checkpoints import content_digest
from evenmatch.types import Array, Units
from evenmatch.vectors.transformer import Transformer

SOLVERS = (
    *("greedy", "mutual", "lsa", "partial", "emd", "sinkhorn", "unbalanced"),
    *("row_mask", "recursive", "topk", "auction"),
)
DEV_FILE, TEST_FILES = "mtref-dev", ("mtref-test", "wiki-dev")
NO_THRESHOLD = -1.0
_SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7)
_THRESHOLDS = (NO_THRESHOLD, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)

Link = tuple[int, int]


@dataclass(frozen=True, slots=True)
class WordAlignedPair:
    """Two tokenised sentences and the links between their words, as pairs of indexes."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]

    @property
    def links(self) -> frozenset[Link]:
        """All links, sure and possible."""
        return self.sure | self.possible


@dataclass(frozen=True, slots=True)
class WordAlignedSet:
    """A named set of pairs."""

    name: str
    pairs: tuple[WordAlignedPair, ...]

    @property
    def digest(self) -> str:
        """A hash of all words and links."""
        rows = [(p.source, p.target, sorted(p.sure), sorted(p.possible)) for p in self.pairs]
        return content_digest(rows)


@dataclass(frozen=True, slots=True)
class LinkRule:
    """When a cell of an alignment is a link, and the layer that is read."""

    layer: int
    share: float
    threshold: float

    def links(self, strength: Array, similarity: Array) -> Array:
        """Return a mask of links; `strength` is the larger of a cell's two shares."""
        return (strength >= self.share - 1e-9) & (similarity > self.threshold)


@dataclass(frozen=True, slots=True, eq=False)
class LinkCounts:
    """Counts per sentence: `found` links, those among all human links and among the sure ones.

    `links` and `sure` are the numbers of human links. Scores are of counts summed over sentences,
    after multiplication with weights (weightings, sentences).
    """

    found: Floats
    hits: Floats
    sure_hits: Floats
    links: Floats
    sure: Floats

    def f1(self, weights: Floats) -> Floats:
        """Harmonic mean of precision and recall against all human links."""
        total = weights @ (self.found + self.links)
        return 2 * (weights @ self.hits) / np.maximum(total, 1e-9)

    def precision(self, weights: Floats) -> Floats:
        """Share of the links found that people drew."""
        return weights @ self.hits / np.maximum(weights @ self.found, 1e-9)

    def recall(self, weights: Floats) -> Floats:
        """Share of all human links that are found."""
        return weights @ self.hits / np.maximum(weights @ self.links, 1e-9)

    def aer(self, weights: Floats) -> Floats:
        """Alignment error rate, 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|) (Och & Ney 2003).

        P are all links, S the sure ones; lower is better.
        """
        total = weights @ (self.found + self.sure)
        return 1 - weights @ (self.sure_hits + self.hits) / np.maximum(total, 1e-9)


@dataclass(frozen=True, slots=True, eq=False)
class SolverLinks:
    """A solver: its rules chosen on the development set, and its counts on each test set.

    `plain` is without a threshold on the similarity, `tuned` with one.
    """

    solver: str
    rules: Mapping[str, LinkRule]  # plain and tuned
    dev_f1: Mapping[str, float]
    counts: Mapping[str, Mapping[str, LinkCounts]]  # by test set, then by rule


PLAIN, TUNED = "plain", "tuned"


def read_word_alignments(path: str) -> WordAlignedSet:
    """Read a JSONL file of {source, target, sure, possible}, or a file of MultiMWA by its name.

    `source` and `target` are lists of tokens, `sure` and `possible` lists of [source index, target
    index].
    """
    name = Path(path).name.split(".")[0]
    if path in (DEV_FILE, *TEST_FILES):
        path = str(find_data_set("multimwa") / f"{path}.jsonl.gz")
    pairs = tuple(_read_pair(record, where) for where, record in read_json_records(path))
    if len(pairs) < 2:
        raise DataError(f"{path} has {len(pairs)} pairs; intervals need at least 2")
    return WordAlignedSet(name, pairs)


def _read_pair(record: Mapping[str, Any], where: str) -> WordAlignedPair:
    try:
        source, target = tuple(record["source"]), tuple(record["target"])
        sure, possible = (
            frozenset((int(i), int(j)) for i, j in record.get(key, ()))
            for key in ("sure", "possible")
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{where} is not a word alignment ({error!r}); "
            "expected source, target, sure and possible"
        ) from None
    if not (source and target and all(isinstance(w, str) and w for w in source + target)):
        raise DataError(f"{where}: source and target must be lists of words, not empty")
    for i, j in sure | possible:
        if not (0 <= i < len(source) and 0 <= j < len(target)):
            raise DataError(f"{where}: there are no words for the link [{i}, {j}]; count from 0")
    return WordAlignedPair(source, target, sure, possible)


def word_units(words: Sequence[str]) -> Units:
    """Return given words as units of the text that joins them by spaces."""
    ends = list(itertools.accumulate(len(word) + 1 for word in words))
    spans = tuple((end - 1 - len(w), end - 1) for w, end in zip(words, ends, strict=True))
    return Units(" ".join(words), tuple(words), spans, tuple((i,) for i in range(len(words))))


def word_similarities(
    pairs: Sequence[WordAlignedPair], model: str, layers: Sequence[int], **run: Any
) -> dict[int, list[Array]]:
    """Return the cosines between the words of each pair, by layer; texts are encoded once."""
    context = CallContext(make_run(**run))
    encoder = Transformer(model, pool="mean")
    backbone = context.open(encoder.backbone)
    backbone.add_layers(*layers)
    found: dict[int, list[Array]] = {layer: [] for layer in layers}
    for pair in pairs:
        sides = [word_units(side) for side in (pair.source, pair.target)]
        states = backbone.hidden_states([units.text for units in sides])
        for layer, matrices in found.items():
            x, y = (encoder.embed(u, s, layer) for u, s in zip(sides, states, strict=True))
            matrices.append(np.asarray(Cosine()(x, y), dtype=np.float64))
        context.start_chunk()
    return found


def measure_word_alignment(
    dev: WordAlignedSet,
    tests: Sequence[WordAlignedSet],
    folder: str | Path,
    *,
    model: str = "minilm",
    solvers: Sequence[str] = SOLVERS,
    **run: Any,
) -> list[SolverLinks]:
    """Choose each solver's rules on `dev` and count its links on `tests`; results are stored.

    `run` is as in `score`.
    """
    for name in [dev.name, *(each.name for each in tests)]:
        if [dev.name, *(each.name for each in tests)].count(name) > 1:
            raise InputError(f"two sets are called {name}; rename one of the files")
    store = ResultStore(Path(folder))
    layers = range(1, Transformer(model, "last").layer_index() + 1)
    facts = make_signature(Transformer(model, pool="mean"))
    sets = {each.name: each for each in (dev, *tests)}
    recipes: dict[str, dict[str, Any]] = {
        f"{model} {solver}": {
            "encoder": facts,
            "solver": solver,
            "sets": {name: each.digest for name, each in sets.items()},
            "dev": dev.name,
            "shares": _SHARES,
            "thresholds": _THRESHOLDS,
        }
        for solver in solvers
    }

    def compute(missing: list[str]) -> list[dict[str, Any]]:
        cells = {
            name: word_similarities(each.pairs, model, layers, **run) for name, each in sets.items()
        }
        wanted = [recipes[name]["solver"] for name in missing]
        return [_measure_solver(solver, sets, cells, dev.name) for solver in wanted]

    found = store.load_or_compute(recipes, compute)
    return [_load_solver(solver, found[f"{model} {solver}"]) for solver in solvers]


def solve_words(solver: str, similarities: Sequence[Array]) -> list[Array]:
    """Return for each pair the larger of the two shares of each cell."""
    return [np.maximum(a.rows, a.cols) for a in solve_batch(similarities, solver)]


@dataclass(frozen=True, slots=True, eq=False)
class _FlatCells:
    """The cells of all pairs of a set at one layer, one after another."""

    strength: Array
    similarity: Array
    links: Array  # whether people drew a link, sure or possible
    sure: Array
    pair: Array  # number of the pair

    def count(self, rule: LinkRule) -> LinkCounts:
        found = rule.links(self.strength, self.similarity)
        masks = (found, found & self.links, found & self.sure, self.links, self.sure)
        size = int(self.pair[-1]) + 1
        return LinkCounts(
            *(np.bincount(self.pair, mask, size).astype(np.float64) for mask in masks)
        )


def _flatten(
    solver: str, pairs: Sequence[WordAlignedPair], similarities: Sequence[Array]
) -> _FlatCells:
    shapes = [s.shape for s in similarities]
    masks = []
    for wanted in ([p.links for p in pairs], [p.sure for p in pairs]):
        cells = [np.zeros(shape, dtype=bool) for shape in shapes]
        for mask, links in zip(cells, wanted, strict=True):
            for link in links:
                mask[link] = True
        masks.append(np.concatenate([mask.ravel() for mask in cells]))
    strength, similarity = (
        np.concatenate([each.ravel() for each in several])
        for several in (solve_words(solver, similarities), similarities)
    )
    number = np.repeat(np.arange(len(shapes)), [m * n for m, n in shapes])
    return _FlatCells(strength, similarity, masks[0], masks[1], number)


def _measure_solver(
    solver: str,
    sets: Mapping[str, WordAlignedSet],
    similarities: Mapping[str, Mapping[int, Sequence[Array]]],
    dev: str,
) -> dict[str, Any]:
    scored: dict[LinkRule, float] = {}
    ones = np.ones((1, len(sets[dev].pairs)))
    for layer, matrices in similarities[dev].items():
        cells = _flatten(solver, sets[dev].pairs, matrices)
        whole = np.isin(cells.strength, (0.0, 1.0)).all()
        for share, threshold in itertools.product(_SHARES[-1:] if whole else _SHARES, _THRESHOLDS):
            rule = LinkRule(layer, share, threshold)
            scored[rule] = round(float(cells.count(rule).f1(ones)[0]), 6)
    plain = {rule: f1 for rule, f1 in scored.items() if rule.threshold == NO_THRESHOLD}
    rules = {name: max(f, key=f.__getitem__) for name, f in ((PLAIN, plain), (TUNED, scored))}
    counts = {
        name: {
            key: _count_links(solver, each, similarities[name][rule.layer], rule)
            for key, rule in rules.items()
        }
        for name, each in sets.items()
        if name != dev
    }
    return {
        "rules": {key: asdict(rule) for key, rule in rules.items()},
        "dev_f1": {key: scored[rule] for key, rule in rules.items()},
        "counts": counts,
    }


def _count_links(
    solver: str, given: WordAlignedSet, similarities: Sequence[Array], rule: LinkRule
) -> dict[str, list[int]]:
    counts = _flatten(solver, given.pairs, similarities).count(rule)
    return {name: column.astype(int).tolist() for name, column in asdict(counts).items()}


def _load_solver(solver: str, found: Mapping[str, Any]) -> SolverLinks:
    return SolverLinks(
        solver,
        {key: LinkRule(**rule) for key, rule in found["rules"].items()},
        found["dev_f1"],
        {
            name: {
                key: LinkCounts(**{k: np.array(column, dtype=float) for k, column in each.items()})
                for key, each in rules.items()
            }
            for name, rules in found["counts"].items()
        },
    )
