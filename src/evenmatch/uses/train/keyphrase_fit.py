"""fit_keyphrases: a scorer of phrases trained on what systems predicted, for the FB score."""

from __future__ import annotations

import time
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from evenmatch.data.cards import Made, check_out, write_card
from evenmatch.data.documents import Document, DocumentSet
from evenmatch.data.documents_reading import read_documents
from evenmatch.data.tables import Table, number
from evenmatch.scoring.keyphrase_named import fb, fg
from evenmatch.scoring.keyphrase_scorer import PhraseScorer
from evenmatch.scoring.keyphrase_shared import judge_keyphrases
from evenmatch.scoring.named import f_disc
from evenmatch.scoring.saved import HERE, write_metric
from evenmatch.scoring.settings import make_run
from evenmatch.stats.correlations import correlation
from evenmatch.types import Array, Metric, Pair
from evenmatch.uses.train.keyphrase_scorer import train_scorer
from evenmatch.uses.train.keyphrase_tuples import Tuples, set_documents_apart, tuples_of, unseen
from evenmatch.uses.train.lesson import Lesson

USUAL = Lesson(epochs=1, batch=32, rate=1e-4, head_rate=1e-3)


def fit_keyphrases(
    data: str | Sequence[DocumentSet],
    out: str | PathLike[str],
    *,
    model: str = "minilm",
    frozen: int = 2,
    most: int = 20_000,
    lesson: Lesson = USUAL,
    hold_out: float = 0.1,
    **run: Any,
) -> Made:
    """Train a scorer of phrases on FG's scores, save it in `out`, and judge it on other documents.

    `data` is what `read_documents` takes or gives, with predictions. At most so many pairs of
    phrases, at random, are learnt from. The encoder's embeddings and first `frozen` blocks stay as
    they are. A share of the documents, `hold_out`, is set apart: for pairs of phrases that were not
    learnt from, and for FB through Algorithm 1 beside FG. `run` is as in `score`.
    """
    folder, how = check_out(out), make_run(**run)
    sets = read_documents(data) if isinstance(data, str) else data
    documents = [document for each in sets for document in each.documents]
    learnt_from, judged_by = set_documents_apart(documents, hold_out, lesson.seed)
    every = tuples_of(learnt_from, seed=lesson.seed)
    tuples = every.some(most, seed=lesson.seed)
    start = time.monotonic()
    losses = train_scorer(
        tuples, folder, model=model, frozen=frozen, lesson=lesson, progress=how.progress
    )
    seconds, tenth = time.monotonic() - start, -(-len(losses) // 10)
    write_metric(folder, f"fb(model={HERE})")
    apart = unseen(tuples_of(judged_by, seed=lesson.seed), every)
    pairs, scores = _judge_pairs(apart, str(folder)), _judge_documents(judged_by, str(folder))
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
    made = Made(folder, "A scorer of phrases", fb(str(folder)).signature, facts, judged, document)
    write_card(made)
    return made


def _judge_pairs(tuples: Tuples, folder: str) -> Table:
    """How near the scorer comes to FG's phrase scores, beside the encoder it started from."""
    metrics: dict[str, Metric] = {"the scorer": PhraseScorer(folder), "f_disc, untrained": f_disc()}
    header = ["compared by", "Pearson", "Spearman", "mean error"]
    constant = float(abs(tuples.scores - np.median(tuples.scores)).mean())
    rows = [["always the median", "-", "-", number(constant)]]
    for name, metric in metrics.items():
        scored = metric([Pair(p, (q,)) for p, q in tuples.phrases]).segments
        values = np.array([score.value for score in scored])
        rows.append([name, *map(number, _agreement(values, tuples.scores))])
    return [header, *rows]


def _agreement(values: Array, wanted: Array) -> tuple[float, float, float]:
    return (
        float(correlation(values, wanted, "pearson")),
        float(correlation(values, wanted, "spearman")),
        float(abs(values - wanted).mean()),
    )


def _judge_documents(documents: Sequence[Document], folder: str) -> Table:
    """Both scores of every system on these documents, and how far they agree."""
    systems = list(dict.fromkeys(name for each in documents for name in each.predictions))
    header = ["prediction", "FG", "FB", "Pearson", "documents"]
    rows = []
    for system in systems:
        pairs = [each.pair(system) for each in documents if system in each.predictions]
        judged = judge_keyphrases([fg("paper"), fb(folder)], pairs)
        lexical, trained = (np.array([s.value for s in scores.segments]) for scores, _ in judged)
        together = float(correlation(lexical, trained, "pearson"))
        means = map(number, (lexical.mean(), trained.mean(), together))
        rows.append([system, *means, str(len(pairs))])
    return [header, *rows]
