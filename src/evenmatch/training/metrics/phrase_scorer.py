"""fit_keyphrases: a scorer of phrases trained on what systems predicted, for the FB score.

The training of a scorer of phrases: an encoder that reads both, one number, squared error.

Pairs of phrases with the score FG gives them: what the scorer of phrases learns from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.data.cards import MetricCard, check_output_folder, write_card
from evenmatch.data.documents import Document, DocumentSet, read_documents
from evenmatch.data.tables import TextTable, format_number
from evenmatch.errors import InputError
from evenmatch.metrics.keyphrases.keyphrase_metric import (
    KeyphraseMetric,
    fb,
    fg,
    score_keyphrase_metrics,
)
from evenmatch.metrics.keyphrases.phrase_lists import select_phrases, split_pair
from evenmatch.metrics.keyphrases.phrase_similarity import PhraseScorer, unit_texts
from evenmatch.metrics.token_level import f_disc
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.saved import FOLDER_PLACEHOLDER, write_metric
from evenmatch.stats.levels import correlation
from evenmatch.training.loop import FitSettings, run_training_loop
from evenmatch.training.metrics.cross_encoder import load_cross_encoder
from evenmatch.types import Array, Pair
from evenmatch.vectors.hashed import Bare

PHRASE_SCORER_SETTINGS = FitSettings(epochs=1, batch=32, rate=1e-4, head_rate=1e-3)


def fit_keyphrases(
    data: str | Sequence[DocumentSet],
    out: str | PathLike[str],
    *,
    model: str = "minilm",
    frozen: int = 2,
    most: int = 20_000,
    lesson: FitSettings = PHRASE_SCORER_SETTINGS,
    hold_out: float = 0.1,
    **run: Any,
) -> MetricCard:
    """Train a scorer of phrases on FG's scores, save it in `out`, and judge it on other documents.

    `data` is what `read_documents` takes or gives, with predictions. At most so many pairs of
    phrases, at random, are learnt from. The encoder's embeddings and first `frozen` blocks stay as
    they are. A share of the documents, `hold_out`, is set apart: for pairs of phrases that were not
    learnt from, and for FB through Algorithm 1 beside FG. `run` is as in `score`.
    """
    folder, how = check_output_folder(out), make_run(**run)
    sets = read_documents(data) if isinstance(data, str) else data
    documents = [document for each in sets for document in each.documents]
    learnt_from, judged_by = split_documents(documents, hold_out, lesson.seed)
    every = make_phrase_pairs(learnt_from, seed=lesson.seed)
    tuples = every.sample(most, seed=lesson.seed)
    start = time.monotonic()
    losses = train_phrase_scorer(
        tuples, folder, model=model, frozen=frozen, lesson=lesson, progress=how.progress
    )
    seconds, tenth = time.monotonic() - start, -(-len(losses) // 10)
    write_metric(folder, f"fb(model={FOLDER_PLACEHOLDER})")
    apart = drop_seen_pairs(make_phrase_pairs(judged_by, seed=lesson.seed), every)
    pairs, scores = _evaluate_pairs(apart, str(folder)), _evaluate_documents(judged_by, str(folder))
    facts = {
        "trained on": f"{len(tuples)} pairs of phrases of {len(learnt_from)} documents of "
        + ", ".join(each.name for each in sets),
        "trained from": f"{model}, its first {frozen} blocks as they were",
        "lesson": f"{lesson.epochs} epochs, batches of {lesson.batch}, rates {lesson.rate:g} and "
        f"{lesson.head_rate:g}, seed {lesson.seed}",
        "loss": f"{np.mean(losses[:tenth]):.4f} at first, {np.mean(losses[-tenth:]):.4f} at last",
        "seconds": f"{seconds:.0f}",
    }
    judged = {
        f"{len(apart)} other pairs of phrases of {len(judged_by)} other documents": pairs,
        "FB through Algorithm 1 beside FG, on those documents": scores,
    }
    document = {"facts": facts, "judged": {what: list(table) for what, table in judged.items()}}
    made = MetricCard(
        folder, "A scorer of phrases", fb(str(folder)).signature, facts, judged, document
    )
    write_card(made)
    return made


def _evaluate_pairs(tuples: PhrasePairs, folder: str) -> TextTable:
    """How near the scorer comes to FG's phrase scores, beside the encoder it started from."""
    metrics: dict[str, Metric] = {"the scorer": PhraseScorer(folder), "f_disc, untrained": f_disc()}
    header = ["compared by", "Pearson", "Spearman", "mean error"]
    constant = float(abs(tuples.scores - np.median(tuples.scores)).mean())
    rows = [["always the median", "-", "-", format_number(constant)]]
    for name, metric in metrics.items():
        scored = metric([Pair(p, (q,)) for p, q in tuples.phrases]).segments
        values = np.array([score.value for score in scored])
        rows.append([name, *map(format_number, _agreement(values, tuples.scores))])
    return [header, *rows]


def _agreement(values: Array, wanted: Array) -> tuple[float, float, float]:
    return (
        float(correlation(values, wanted, "pearson")),
        float(correlation(values, wanted, "spearman")),
        float(abs(values - wanted).mean()),
    )


def _evaluate_documents(documents: Sequence[Document], folder: str) -> TextTable:
    """Both scores of every system on these documents, and how far they agree."""
    systems = list(dict.fromkeys(name for each in documents for name in each.predictions))
    header = ["prediction", "FG", "FB", "Pearson", "documents"]
    rows = []
    for system in systems:
        pairs = [each.to_pair(system) for each in documents if system in each.predictions]
        judged = score_keyphrase_metrics([fg("paper"), fb(folder)], pairs)
        lexical, trained = (np.array([s.value for s in scores.segments]) for scores, _ in judged)
        together = float(correlation(lexical, trained, "pearson"))
        means = map(format_number, (lexical.mean(), trained.mean(), together))
        rows.append([system, *means, str(len(pairs))])
    return [header, *rows]


def train_phrase_scorer(
    tuples: PhrasePairs,
    folder: Path,
    *,
    model: str,
    frozen: int,
    lesson: FitSettings,
    progress: Callable[[int, int], None] | None,
) -> list[float]:
    """Train a scorer, save it as a model for sequence classification, and give the losses.

    Paper 004's: [CLS] predicted [SEP] gold [SEP], one score, learnt by squared error. The
    embeddings and first `frozen` blocks stay as they are.
    """
    import torch

    checkpoint = find_checkpoint(model)
    scorer = load_cross_encoder(checkpoint, tuples.phrases, frozen=frozen, seed=lesson.seed)
    wanted, weights = (torch.tensor(a).float() for a in (tuples.scores, tuples.weights))

    def loss(batch: Array) -> Any:
        at = torch.from_numpy(np.asarray(batch))
        found = torch.sigmoid(scorer(batch))
        return (weights[at] * (found - wanted[at]) ** 2).sum() / weights[at].sum()

    losses = run_training_loop(
        scorer.parameter_groups(lesson), scorer.pair_lengths, lesson, loss, progress
    )
    scorer.save(folder)
    return losses


# Of the pairs without a common word one per predicted phrase is kept, at half the weight: they are
# nine in ten, and the released code does the same.
_NEGATIVE_WEIGHT = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class PhrasePairs:
    """Predicted phrases, gold phrases, how alike FG finds them, and how much each pair counts."""

    phrases: tuple[tuple[str, str], ...]
    scores: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.phrases)

    def select(self, numbers: Sequence[int]) -> PhrasePairs:
        """Some of them."""
        at = np.asarray(numbers, dtype=np.intp)
        return PhrasePairs(tuple(self.phrases[i] for i in at), self.scores[at], self.weights[at])

    def sample(self, most: int, *, seed: int = 0) -> PhrasePairs:
        """At most so many of them, at random."""
        if len(self) <= most:
            return self
        return self.select(np.random.default_rng(seed).permutation(len(self))[:most].tolist())


def make_phrase_pairs(documents: Sequence[Document], *, seed: int = 0) -> PhrasePairs:
    """Every different pair of a predicted and a gold phrase of one document that share a word.

    And for each predicted phrase one gold phrase, at random, that shares none with it.
    """
    draw = np.random.default_rng(seed)
    found: dict[tuple[str, str], float] = {}
    for document in documents:
        for prediction in document.predictions:
            found.update(_score_phrase_pairs(document, prediction, draw))
    if not found:
        raise InputError("there is no predicted phrase beside a gold one to learn from")
    scores = np.array([*found.values()])
    return PhrasePairs(tuple(found), scores, np.where(scores > 0, 1.0, _NEGATIVE_WEIGHT))


def _score_phrase_pairs(
    document: Document, prediction: str, draw: np.random.Generator
) -> Iterator[tuple[tuple[str, str], float]]:
    metric = KeyphraseMetric()
    lists = select_phrases(
        split_pair(document.to_pair(prediction), metric.cleaning), "all", metric.cleaning, 0
    )
    x, y = Bare()([lists.candidate.units, lists.references[0].units])
    similarity = metric.similarity(x, y)
    rows, cols = unit_texts(x.units), unit_texts(y.units)
    for p, alike in zip(rows, similarity, strict=True):
        yield from (((p, cols[j]), float(alike[j])) for j in np.flatnonzero(alike))
        if (wrong := np.flatnonzero(alike == 0)).size:
            yield (p, cols[int(draw.choice(wrong))]), 0.0


def split_documents(
    documents: Sequence[Document], share: float, seed: int
) -> tuple[list[Document], list[Document]]:
    """Documents to learn from, and others to judge by."""
    count = round(share * len(documents))
    if not 0 < count < len(documents):
        raise InputError(
            f"a share of {share} of {len(documents)} documents leaves none to learn from or to "
            "judge by; give more documents, or a share such as 0.1"
        )
    apart = set(np.random.default_rng(seed).permutation(len(documents))[:count].tolist())
    return (
        [each for i, each in enumerate(documents) if i not in apart],
        [each for i, each in enumerate(documents) if i in apart],
    )


def drop_seen_pairs(tuples: PhrasePairs, seen: PhrasePairs) -> PhrasePairs:
    """The pairs of phrases that are not among those seen."""
    known = set(seen.phrases)
    return tuples.select([i for i, pair in enumerate(tuples.phrases) if pair not in known])
