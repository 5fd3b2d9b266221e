"""fit_keyphrases: train the cross-encoder that compares keyphrases in the FB score.

FB replaces the lexical phrase similarity of FG by a trained one. The training data are pairs of
predicted and gold phrases with their FG similarity (`make_phrase_pairs`), and of phrases made
degenerate on purpose (`make_degenerate_pairs`); the model encodes both phrases together and
predicts that similarity (`train_phrase_scorer`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from evenmatch.data.cards import MetricCard, write_card
from evenmatch.data.documents import Document, DocumentSet, read_documents
from evenmatch.data.tables import TextTable, format_number
from evenmatch.errors import InputError
from evenmatch.metrics.keyphrases.keyphrase_metric import KeyphraseMetric
from evenmatch.metrics.keyphrases.phrase_lists import select_phrases, split_pair
from evenmatch.metrics.keyphrases.phrase_similarity import PhraseScorer, unit_texts
from evenmatch.metrics.presets import make_metric
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import FOLDER_PLACEHOLDER, score_metrics, write_metric
from evenmatch.stats.levels import correlation
from evenmatch.training.checkpoints import CheckpointFile, check_run_folder, content_digest
from evenmatch.training.loop import FitSettings
from evenmatch.training.metrics.cross_encoder import load_cross_encoder
from evenmatch.types import Array, Pair, Run
from evenmatch.units.keyphrases import get_stemmer
from evenmatch.vectors.hashed import Bare

PHRASE_SCORER_SETTINGS = FitSettings(epochs=1, batch=32, rate=1e-4, head_rate=1e-3)

# The FG similarity of pairs of predicted and gold phrases.
PhrasePairs: TypeAlias = dict[tuple[str, str], float]

# Nine in ten pairs have no word in common. As in the authors' released code, one such pair per
# predicted phrase is used, with half the weight.
_NEGATIVE_WEIGHT = 0.5

_LONGEST = 24  # words of a degenerate phrase, about
_TEXT_PHRASES = 12  # phrases sampled from the text of a document without predictions


def fit_keyphrases(
    data: str | Sequence[DocumentSet],
    out: str | PathLike[str],
    *,
    model: str = "minilm",
    frozen: int = 2,
    most: int = 20_000,
    settings: FitSettings = PHRASE_SCORER_SETTINGS,
    hold_out: float = 0.1,
    **run: Any,
) -> MetricCard:
    """Train a phrase scorer on FG's similarities, save it in `out`, evaluate it on held-out data.

    `data` is anything that `read_documents` takes or returns, best with predictions. At most
    `most` pairs of phrases, sampled at random, are used for training; some have a phrase made
    degenerate, so that the scorer learns what such phrases are worth. The encoder's embeddings and
    first `frozen` blocks are not trained. The share `hold_out` of the documents is held out; on it,
    the scorer is compared with FG on unseen pairs of phrases, and FB with FG on whole documents.
    `run` is as in `score`.
    """
    folder, run_settings = check_run_folder(out), make_run(**run)
    sets = read_documents(data) if isinstance(data, str) else data
    documents = [document for each in sets for document in each.documents]
    train, test = split_documents(documents, hold_out, settings.seed)
    seed = settings.seed
    train_pairs = make_phrase_pairs(train, seed=seed) | make_degenerate_pairs(train, seed=seed)
    sampled = train_pairs
    if len(train_pairs) > most:
        order = np.random.default_rng(seed).permutation(len(train_pairs))[:most]
        phrases = list(train_pairs)
        sampled = {phrases[i]: train_pairs[phrases[i]] for i in order}
    scores = list(sampled.values())
    weights = [1.0 if score > 0 else _NEGATIVE_WEIGHT for score in scores]
    start = time.monotonic()
    recipe = {
        "trainer": "fit-keyphrases",
        "model": find_checkpoint(model).digest,
        "frozen": frozen,
        "settings": asdict(settings),
        "pairs": content_digest({"phrases": list(sampled), "scores": scores, "weights": weights}),
    }
    checkpoint = CheckpointFile(folder, recipe)
    losses = train_phrase_scorer(
        sampled, weights, checkpoint, model, frozen, settings, run_settings.progress
    )
    seconds, tenth = time.monotonic() - start, -(-len(losses) // 10)
    write_metric(folder, f"fb(model={FOLDER_PLACEHOLDER})")
    evaluations = {}
    for kind, pairs in (
        ("pairs of phrases", make_phrase_pairs(test, seed=seed)),
        ("pairs with degenerate phrases", make_degenerate_pairs(test, seed=seed)),
    ):
        unseen = {pair: score for pair, score in pairs.items() if pair not in train_pairs}
        what = f"{len(unseen)} unseen {kind} of {len(test)} held-out documents"
        evaluations[what] = evaluate_scorer(unseen, str(folder))
    if any(each.predictions for each in sets):
        what = "FB and FG on the held-out documents"
        evaluations[what] = _evaluate_documents(test, str(folder))
    facts = {
        "trained on": f"{len(sampled)} pairs of phrases of {len(train)} documents of "
        + ", ".join(each.name for each in sets),
        "trained from": f"{model}, its first {frozen} blocks frozen",
        "settings": f"{settings.epochs} epochs, batches of {settings.batch}, "
        f"rates {settings.rate:g} and {settings.head_rate:g}, seed {settings.seed}",
        "loss": f"{np.mean(losses[:tenth]):.4f} in the first tenth of steps, "
        f"{np.mean(losses[-tenth:]):.4f} in the last tenth",
        "seconds": f"{seconds:.0f}",
    }
    card = MetricCard(
        folder,
        "A scorer of phrases",
        make_metric("fb", model=str(folder)).signature,
        facts,
        evaluations,
        {"facts": facts, "judged": {what: list(table) for what, table in evaluations.items()}},
    )
    write_card(card)
    checkpoint.remove()
    return card


def train_phrase_scorer(
    pairs: PhrasePairs,
    loss_weights: Sequence[float],
    checkpoint: CheckpointFile,
    model: str,
    frozen: int,
    settings: FitSettings,
    progress: Callable[[int, int], None] | None,
) -> list[float]:
    """Train a scorer, save it as a sequence-classification model, and return the losses.

    As in Luo et al. (2021): [CLS] predicted [SEP] gold [SEP], one output, squared error. The
    embeddings and first `frozen` blocks are not trained.
    """
    import torch

    scorer = load_cross_encoder(
        find_checkpoint(model), list(pairs), frozen=frozen, seed=settings.seed
    )
    wanted, weights = (torch.tensor(a).float() for a in ([*pairs.values()], loss_weights))

    def loss(batch: Array) -> Any:
        rows = torch.from_numpy(np.asarray(batch))
        predicted = torch.sigmoid(scorer(batch))
        return (weights[rows] * (predicted - wanted[rows]) ** 2).sum() / weights[rows].sum()

    losses = scorer.fit(settings, loss, checkpoint, progress)
    scorer.save(checkpoint.folder)
    return losses


def make_phrase_pairs(documents: Sequence[Document], *, seed: int = 0) -> PhrasePairs:
    """Return the distinct pairs of predicted and gold phrases of a document with a common word.

    In addition, each predicted phrase is paired with one random gold phrase of its document that
    has no word in common with it. A document without predictions is used with its gold phrases and
    with phrases of its text as predictions.
    """
    draw = np.random.default_rng(seed)
    found: PhrasePairs = {}
    for document in documents:
        given = [*document.predictions.values()]
        for phrases in given or [(*document.keyphrases, *_text_phrases(document, draw))]:
            found |= _compare_with_gold(document, phrases, draw)
    if not found:
        raise InputError("no document has gold phrases to train on")
    return found


def make_degenerate_pairs(documents: Sequence[Document], *, seed: int = 0) -> PhrasePairs:
    """Return the same pairs with `degenerate_phrases` in place of predicted ones."""
    draw = np.random.default_rng(seed)
    found: PhrasePairs = {}
    for document in documents:
        found |= _compare_with_gold(document, degenerate_phrases(document.keyphrases, draw), draw)
    return found


def _compare_with_gold(
    document: Document, phrases: Sequence[str], draw: np.random.Generator
) -> PhrasePairs:
    metric = KeyphraseMetric()
    pair = replace(document, predictions={"": tuple(phrases)}).to_pair("")
    split = split_pair(pair, metric.units, metric.most)
    lists = select_phrases(split, 0, *metric.selection)
    x, y = Bare()([lists.candidate, lists.references[0]])
    predicted, gold = unit_texts(x.units), unit_texts(y.units)
    found: PhrasePairs = {}
    for phrase, similar in zip(predicted, metric.similarity(x, y), strict=True):
        found.update({(phrase, gold[j]): float(similar[j]) for j in np.flatnonzero(similar)})
        if (wrong := np.flatnonzero(similar == 0)).size:
            found[phrase, gold[int(draw.choice(wrong))]] = 0.0
    return found


def degenerate_phrases(phrases: Sequence[str], draw: np.random.Generator) -> list[str]:
    """Return phrases that a generator may write to please a scorer, one for each phrase.

    A word or the whole phrase is repeated, the words are shuffled, words of the other phrases are
    added, or words are cut off at one end. Their FG similarity to the phrase is the training
    target, so that a scorer learns what such phrases are worth.
    """
    others = [word for phrase in phrases for word in phrase.split()]
    made = []
    for words in filter(None, map(str.split, phrases)):
        match draw.integers(5):
            case 0:
                words = [words[draw.integers(len(words))]] * int(draw.integers(2, _LONGEST))
            case 1:
                words = words * int(draw.integers(2, 2 + max(1, _LONGEST // len(words))))
            case 2:
                words = draw.permutation(words).tolist()
            case 3:
                words = words + draw.choice(others, int(draw.integers(2, _LONGEST))).tolist()
            case _:
                cut = int(draw.integers(len(words)))
                words = words[cut:] if draw.random() < 0.5 else words[: len(words) - cut]
        made.append(" ".join(words))
    return made


def _text_phrases(document: Document, draw: np.random.Generator) -> tuple[str, ...]:
    """Sample phrases of one to four words of the text, each with a word of a gold phrase."""
    words, stem = document.text.split(), get_stemmer().stem
    gold = {stem(word) for phrase in document.keyphrases for word in phrase.split()}
    at = [i for i, word in enumerate(words) if stem(word) in gold]
    starts = [
        (max(0, i - int(draw.integers(length))), length)
        for i in (draw.choice(at, _TEXT_PHRASES) if at else ())
        for length in [int(draw.integers(1, 5))]
    ]
    return tuple(" ".join(words[start : start + length]) for start, length in starts)


def split_documents(
    documents: Sequence[Document], share: float, seed: int
) -> tuple[list[Document], list[Document]]:
    """Split documents at random into train and test; `share` of them are test."""
    count = round(share * len(documents))
    if not 0 < count < len(documents):
        raise InputError(
            f"a share of {share} of {len(documents)} documents leaves none to train on or to "
            "test on; give more documents, or a share such as 0.1"
        )
    held_out = set(np.random.default_rng(seed).permutation(len(documents))[:count].tolist())
    return (
        [each for i, each in enumerate(documents) if i not in held_out],
        [each for i, each in enumerate(documents) if i in held_out],
    )


def evaluate_scorer(pairs: PhrasePairs, folder: str) -> TextTable:
    """Compare scorer, untrained encoder and the constant median with FG's phrase similarities."""
    metrics: dict[str, Metric] = {
        "the scorer": PhraseScorer(folder),
        "the scorer without its guard": PhraseScorer(folder, guard=False),
        "f_disc, untrained": make_metric("f_disc"),
    }
    header = ["compared by", "Pearson", "Spearman", "mean error"]
    wanted = np.array([*pairs.values()])
    constant = float(abs(wanted - np.median(wanted)).mean())
    rows = [["always the median", "-", "-", format_number(constant)]]
    for name, metric in metrics.items():
        scored = metric([Pair(p, (q,)) for p, q in pairs]).segments
        values = np.array([score.value for score in scored])
        numbers = [
            float(correlation(values, wanted, "pearson")),
            float(correlation(values, wanted, "spearman")),
            float(abs(values - wanted).mean()),
        ]
        rows.append([name, *map(format_number, numbers)])
    return [header, *rows]


def _evaluate_documents(documents: Sequence[Document], folder: str) -> TextTable:
    """Return FG and FB of every system on these documents, and their correlation."""
    systems = list(dict.fromkeys(name for each in documents for name in each.predictions))
    header = ["prediction", "FG", "FB", "Pearson", "documents"]
    rows = []
    for system in systems:
        pairs = [each.to_pair(system) for each in documents if system in each.predictions]
        metrics = [make_metric("fg", mode="paper"), make_metric("fb", model=folder)]
        scored = score_metrics(metrics, pairs, Run())
        lexical, trained = (np.array([s.value for s in scores.segments]) for scores in scored)
        pearson = float(correlation(lexical, trained, "pearson"))
        numbers = map(format_number, (lexical.mean(), trained.mean(), pearson))
        rows.append([system, *numbers, str(len(pairs))])
    return [header, *rows]
