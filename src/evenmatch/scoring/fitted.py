"""fitted: a metric trained on ratings, or to imitate another metric; loaded from its folder."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.registry import register, signature
from evenmatch.scoring.ngram_rows import flags
from evenmatch.scoring.pairs import check_pairs
from evenmatch.scoring.threads import one_thread
from evenmatch.scoring.towers import seen
from evenmatch.scoring.towers_head import Head, load_head
from evenmatch.scoring.windows import alone, texts, windows
from evenmatch.types import Array, Pair, Run, Score, Scores
from evenmatch.units.pieces import Pieces
from evenmatch.vectors import cache
from evenmatch.vectors.pretrained import Long
from evenmatch.vectors.transformer import Transformer


@dataclass(frozen=True, slots=True, eq=False)
class _Sight:
    """A text's vectors at each layer the head looks at."""

    layers: Mapping[int, Array]
    flags: frozenset[str]


@register("metric", "fitted")
@dataclass(frozen=True)
class Fitted:
    """Two towers and a head over them, from a folder that `evenmatch fit` or `distil` wrote.

    Each text goes through the encoder alone; a linear head judges differences and products of
    their summaries and greedy precision, recall and F at two layers. Scores are on the scale of
    what it was trained on. Of an empty side nothing matches, of two everything. `adapter` switches
    on one that `debias` trained through this metric.
    """

    model: str
    long: Long = "truncate"
    adapter: str = ""

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores of the pairs, in order; the best reference counts where there are several."""
        return self.carry_out(pairs, Run())

    def carry_out(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """The same, as `run` says."""
        check_pairs(pairs)
        head = self.head()
        found: dict[int, Score] = {}
        sights: dict[str, _Sight] = {}
        for window, again in windows(pairs):
            self._look([pairs[i] for i in window], again, sights, head, run)
            with one_thread():
                found.update((i, _score(pairs[i], sights, head)) for i in window)
            if run.progress:
                run.progress(len(found), len(pairs))
        segments = tuple(found[i] for i in range(len(pairs)))
        return Scores(segments, signature(self, *cache.fact(run.cache)))

    def _look(
        self,
        pairs: Sequence[Pair],
        again: Collection[str],
        sights: dict[str, _Sight],
        head: Head,
        run: Run,
    ) -> None:
        """Put the texts of a window, each encoded once, in the place of those not needed again."""
        wanted = dict.fromkeys(text for pair in pairs for text in texts(pair))
        for text, sight in list(sights.items()):
            if text in wanted or text in again:
                kept = {layer: alone(vectors) for layer, vectors in sight.layers.items()}
                sights[text] = _Sight(kept, sight.flags)
            else:
                del sights[text]
        new = [text for text in wanted if text not in sights]
        encoder, cut = self.encoder(), Pieces()
        for text, states in zip(
            new, cache.encode(encoder.body, new, head.layers, run), strict=True
        ):
            looks = {n: encoder.look(cut(text), states, n) for n in head.layers}
            vectors = {layer: look.vectors for layer, look in looks.items()}
            sights[text] = _Sight(vectors, states.flags)

    def encoder(self) -> Transformer:
        """What both texts go through."""
        return Transformer(self.model, "last", long=self.long, adapter=self.adapter)

    def head(self) -> Head:
        """What judges them."""
        return load_head(self.encoder().body.checkpoint())

    def pinned(self) -> Fitted:
        """The folders as their content hashes."""
        own = self.encoder().pinned()
        return dataclasses.replace(self, model=own.model, adapter=own.adapter)

    def sources(self) -> tuple[str, ...]:
        """The trained model and the adapter by content."""
        return self.encoder().sources()

    @property
    def signature(self) -> str:
        """The recipe, with the folder named by content."""
        return signature(self)

    @property
    def higher_is_better(self) -> bool:
        """As in what it was trained on."""
        return self.head().higher_is_better

    @property
    def bounds(self) -> tuple[float, float]:
        """None are known."""
        return (-math.inf, math.inf)


def _score(pair: Pair, sights: Mapping[str, _Sight], head: Head) -> Score:
    """The best score over the references."""
    candidate = sights[pair.candidate]
    found = []
    for text in pair.references:
        reference = sights[text]
        value = float(np.dot(head.weights, seen(candidate.layers, reference.layers, head.layers)))
        own = flags(Pair(pair.candidate, (text,)))
        found.append(Score(head.bias + value, flags=candidate.flags | reference.flags | own))
    best = max if head.higher_is_better else min
    return best(found, key=lambda score: score.value)
