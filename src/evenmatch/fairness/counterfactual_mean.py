"""`CounterfactualMean`: a metric that does not see groups that the reference does not mention.

Beside a reference that says "the nurse", a candidate may say "he" or "she", and both should score
alike. Here both do: the candidate is scored with "he" and with "she", and the mean counts. Beside
"his shift", "her shift" is wrong; where the reference mentions a group, a pair is scored as the
base metric scores it. No training is needed, and any metric will do. Bias is removed where the word
lists know the words, and stays where they do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby

from evenmatch.data.fairness_sets import ATTRIBUTE_ALIASES, ATTRIBUTES, builtin_terms
from evenmatch.errors import InputError
from evenmatch.fairness.counterfactuals import group_versions, tag_texts
from evenmatch.fairness.mentions import make_lexicon
from evenmatch.protocols import Metric, Parser
from evenmatch.registry import CallContext, check_settings, register
from evenmatch.scoring.engine import Chunk, ChunkScores, EngineMetric, ReadyMetric, open_metric
from evenmatch.types import Pair, Score


@register("metric", "counterfactual_mean")
@dataclass(frozen=True)
class CounterfactualMean(EngineMetric):
    """Mean score over social groups, for candidates that mention a group the reference does not.

    `base` is the metric. Where a candidate mentions a group and the reference mentions none, the
    candidate is scored once about each of two groups (`group_versions`), and the mean counts;
    with several `attributes`, all combinations are scored. Every other pair has the score of the
    base metric. Groups are found by word lists. The tags of `parser` tell terms from words that
    look like them; without a parser, closed word classes and endings do.
    """

    base: Metric
    attributes: tuple[str, ...] = ("gender",)
    parser: Parser | None = None

    def __post_init__(self) -> None:
        check_settings(self)
        known = (*ATTRIBUTES, *ATTRIBUTE_ALIASES)
        wrong = [each for each in self.attributes if each not in known]
        if wrong or not self.attributes:
            given = ", ".join(wrong) or "none"
            raise InputError(f"attributes are one or more of {', '.join(known)}; got {given}")

    def open(self, context: CallContext) -> ReadyMetric:
        """Open the base metric."""
        base = open_metric(self.base, context)

        def score_chunk(chunk: Chunk) -> ChunkScores:
            single = chunk.single_references()
            # All pairs as they are, because other metrics of the call may share that work.
            scores = list(base.score_chunk(single)[0])
            versions = self._versions(single.pairs)
            added = [(at, text) for at, texts in enumerate(versions) if texts[1:] for text in texts]
            if added:
                pairs = [replace(single.pairs[at], candidate=text) for at, text in added]
                rows = [single.rows[at] for at, _ in added]
                found = base.score_chunk(single.with_pairs(pairs, rows))[0]
                for at, some in groupby(zip(added, found, strict=True), lambda each: each[0][0]):
                    scores[at] = _mean_score([score for _, score in some])
            return chunk.best_scores(scores, lambda s: s.value, highest=self.higher_is_better), None

        return ReadyMetric(score_chunk, pad_to=base.pad_to, facts=base.facts)

    def _versions(self, pairs: Sequence[Pair]) -> list[list[str]]:
        """Return the versions of each candidate; one if it is scored as it is."""
        found = [[pair.candidate] for pair in pairs]
        for attribute in self.attributes:
            lexicon = make_lexicon(builtin_terms(attribute))
            places = [at for at, own in enumerate(found) if any(map(lexicon.may_occur, own))]
            texts = sorted({t for at in places for t in (*pairs[at].references, *found[at])})
            parses = dict(zip(texts, tag_texts(texts, self.parser), strict=True))
            for at in places:
                if not any(lexicon.find(text, parses[text]) for text in pairs[at].references):
                    found[at] = [
                        version
                        for text in found[at]
                        for version in group_versions(text, attribute, parses[text]) or (text,)
                    ]
        return found

    @property
    def higher_is_better(self) -> bool:
        """As of the base metric."""
        return self.base.higher_is_better

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of the base metric."""
        return self.base.bounds


def _mean_score(scores: Sequence[Score]) -> Score:
    """Return the mean of each number; a flag holds if it holds for any of the scores."""
    value = math.fsum(score.value for score in scores) / len(scores)
    precision, recall = (
        None if None in numbers else math.fsum(filter(None, numbers)) / len(scores)
        for numbers in ([s.precision for s in scores], [s.recall for s in scores])
    )
    flags: frozenset[str] = reduce(frozenset.union, (score.flags for score in scores))
    return Score(value, precision, recall, flags)
