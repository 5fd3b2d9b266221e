"""Semantic similarity of phrases: by embeddings, by any metric, or by a trained model.

`PhraseScorer` is the trained model of the FB score (Luo et al. 2021). It is a metric of two
phrases, so `ByMetric` takes it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from evenmatch.alignment.assignment import Lsa
from evenmatch.errors import DataError
from evenmatch.files import DIGEST_PREFIX, models_dir
from evenmatch.metrics.regression import Regression
from evenmatch.models.checkpoints import Checkpoint, find_checkpoint
from evenmatch.protocols import Encoder, Metric, Similarity
from evenmatch.registry import CallContext, register
from evenmatch.scoring.engine import (
    Chunk,
    ChunkScores,
    EngineMetric,
    ReadyMetric,
    open_encoder,
    open_metric,
)
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.reducers import best_over_references, overlap_score
from evenmatch.similarity.strings import Exact, Phrase
from evenmatch.types import Array, Embedded, Pair, Units
from evenmatch.units.keyphrases import Phrases, restore_separators
from evenmatch.units.text import WholeText
from evenmatch.vectors.transformer import Transformer


@register("similarity", "semantic")
@dataclass(frozen=True)
class Semantic:
    """Cosine of the embeddings of two units, each embedded alone; from 0 to 1.

    Units with the same words, after stemming where `units` stems, have similarity 1, and a negative
    cosine counts as 0, as in KPEval's semantic F1 (Wu et al. 2024).
    """

    vectors: Encoder = Transformer(layer="last", pool="mean")
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Similarity matrix: rows are the units of `x`, columns those of `y`."""
        return self.prepare([(x, y)])(x, y)

    def prepare(self, sides: Sequence[tuple[Embedded, Embedded]]) -> Similarity:
        """Embed every distinct text once; return a similarity that looks the vectors up."""
        texts = dict.fromkeys(p for pair in sides for side in pair for p in unit_texts(side.units))
        encoder = open_encoder(self.vectors, CallContext())[0]
        embedded = encoder.encode([*map(WholeText(), texts)])
        width = max((each.vectors.shape[1] for each in embedded), default=0)
        vectors = np.zeros((len(texts), width))
        for row, each in enumerate(embedded):
            if len(each.vectors):  # a text without words has no unit
                vectors[row] = each.vectors[0]
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(lengths, lengths, 1.0)
        rows = {text: row for row, text in enumerate(texts)}

        def look_up(x: Embedded, y: Embedded) -> Array:
            a, b = (vectors[[rows[p] for p in unit_texts(side.units)]] for side in (x, y))
            return np.maximum(Exact()(x, y), np.clip(a @ b.T, 0.0, 1.0))

        return look_up


@register("similarity", "by_metric")
@dataclass(frozen=True)
class ByMetric:
    """Similarity of two units: the score of one's text against the other's, by any metric.

    `metric` scores the texts as written, not the stems of their words. With `f_disc` this is
    semantic similarity: the tokens of two phrases are embedded and matched one to one.
    """

    metric: Metric = AlignMetric(alignment=Lsa())  # f_disc

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Similarity matrix: rows are the units of `x`, columns those of `y`."""
        return self.prepare([(x, y)])(x, y)

    def prepare(self, sides: Sequence[tuple[Embedded, Embedded]]) -> Similarity:
        """Score every distinct pair of texts once; return a similarity that looks scores up."""
        texts = [(unit_texts(x.units), unit_texts(y.units)) for x, y in sides]
        pairs = dict.fromkeys((p, q) for rows, cols in texts for p in rows for q in cols if p and q)
        scored = self.metric([Pair(p, (q,)) for p, q in pairs]).segments
        known = {key: score.value for key, score in zip(pairs, scored, strict=True)}

        def look_up(x: Embedded, y: Embedded) -> Array:
            rows, cols = unit_texts(x.units), unit_texts(y.units)
            found = [[known.get((p, q), 0.0) for q in cols] for p in rows]  # 0 without words
            return np.array(found).reshape(len(rows), len(cols))

        return look_up

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds of the metric."""
        return self.metric.bounds


def unit_texts(units: Units) -> list[str]:
    """Each unit as written in the text, or its words joined if there are no spans."""
    if not units.spans:
        return list(units.items)
    return [
        restore_separators(units.text[units.spans[group[0]][0] : units.spans[group[-1]][1]])
        if group
        else ""
        for group in units.groups
    ]


DEFAULT_SCORER = "fb"


def default_scorer_folder() -> Path:
    """The folder of the default scorer, whether or not it exists."""
    return models_dir() / DEFAULT_SCORER


@register("metric", "phrase_scorer")
@dataclass(frozen=True)
class PhraseScorer(EngineMetric):
    """Similarity of two phrases from 0 to 1, by a trained cross-encoder.

    `model` is a folder written by `evenmatch fit --keyphrases`; 'fb' is its default output folder.
    With `guard`, phrases with equal stems score 1, and a candidate that is longer than the
    reference or repeats words scores at most `similarity_ceiling`: a generator that is rewarded
    with the scorer gains no more by such phrases than under FG. The score is not symmetric in
    candidate and reference.
    """

    model: str = DEFAULT_SCORER
    guard: bool = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def open(self, context: CallContext) -> ReadyMetric:
        """Open the cross-encoder."""
        checkpoint = context.once(PhraseScorer.checkpoint, self)
        base = open_metric(Regression(checkpoint.name, "candidate"), context)

        def score_chunk(chunk: Chunk) -> ChunkScores:
            logits = base.score_chunk(single := chunk.single_references())[0]
            similarity = {
                (pair.candidate, pair.references[0]): 1 / (1 + math.exp(-logit.value))
                for pair, logit in zip(single.pairs, logits, strict=True)
            }
            if self.guard:
                similarity = {each: _guard(value, *each) for each, value in similarity.items()}
            scores = [
                best_over_references(pair, lambda *texts: overlap_score(similarity[texts]))
                for pair in chunk.pairs
            ]
            return scores, None

        return ReadyMetric(score_chunk)

    def checkpoint(self) -> Checkpoint:
        """Find the scorer's checkpoint."""
        if self.model.startswith(DIGEST_PREFIX):
            return find_checkpoint(self.model)
        folder = (
            default_scorer_folder()
            if self.model == DEFAULT_SCORER
            else Path(self.model).expanduser()
        )
        if not (folder / "config.json").is_file():
            raise DataError(
                f"there is no phrase scorer in {folder}; "
                f"train one with: evenmatch fit DATA --keyphrases -o {folder}"
            )
        return find_checkpoint(str(folder))

    def resolve(self, context: CallContext) -> tuple[PhraseScorer, tuple[str, ...]]:
        """Return the metric with its folder named by content hash."""
        checkpoint = context.once(PhraseScorer.checkpoint, self)
        return PhraseScorer(checkpoint.name, self.guard), (f"model {checkpoint.label}",)


def similarity_ceiling(p: Phrase, q: Phrase) -> float:
    """The highest FG similarity to `q` that a phrase as long and as repetitive as `p` can have.

    A word of `p` can match once, or as often as `q` has it. Phrases that are not longer than `q`
    and repeat no word have no ceiling, since one word can mean the same as several.

    >>> similarity_ceiling(("graph", "graph", "graph"), ("graph", "theory"))
    0.3666666666666667
    """
    available = Counter(q)
    usable = sum(min(count, max(available[word], 1)) for word, count in Counter(p).items())
    if usable == len(p) <= len(q):
        return 1.0
    shared = min(usable, len(q))
    return (shared / max(len(p), len(q)) + 2 * shared / (len(p) + len(q))) / 2


def _guard(value: float, candidate: str, reference: str) -> float:
    """Score equal phrases 1, and limit the score of long and repetitive ones."""
    units = Phrases().resolve_tokens(candidate, reference)
    p, q = (tuple(units.tokenize(text)) for text in (candidate, reference))
    if p == q:
        return 1.0
    return min(value, similarity_ceiling(p, q)) if p and q else value
