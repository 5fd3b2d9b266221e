"""Whether another choice of phrases lifts the start of the keyphrase study above a ranker.

    evenmatch study keyphrases --arm MLE --seed 1 --out FOLDER
    python -m benchmarks.training.keyphrase_start FOLDER

The start writes phrases greedily. Here those of them that are present are ordered by their
log-probability, or by that plus the log-odds that the ranker in its hints gives to them, and kept
down to a threshold chosen on the validation documents. The result, F1@M of present phrases of
KP20k, is results/benchmarks/keyphrase-start.json. Needs EVENMATCH_DATA.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.data.documents import Document, DocumentSet
from evenmatch.evaluation.keyphrase_scores import score_keyphrases
from evenmatch.studies.keyphrase_generation import load_keyphrase_corpus
from evenmatch.training.keyphrases.candidate_ranker import CandidateRanker, stem_phrases
from evenmatch.training.keyphrases.decoding import (
    KeyphraseGenerator,
    decode_batch,
    load_generator,
)
from evenmatch.training.keyphrases.sequences import (
    END,
    NEXT,
    SPLIT,
    make_catseq_batch,
    make_keyphrase_example,
)

RESULTS = Path(__file__).parents[2] / "results"
RESULT = RESULTS / "benchmarks" / "keyphrase-start.json"
BASELINES = RESULTS / "keyphrases" / "hinted-start" / "predictions" / "baselines.json.gz"
_BATCH = 64
_UNLIKELY = -6.0  # the log-odds of a phrase that is no candidate of the ranker


@dataclass(frozen=True)
class Phrase:
    """A phrase that the start wrote for a document."""

    text: str
    likelihood: float  # the log-probability of its words and of the separator after it
    odds: float  # the ranker's log-odds
    correct: bool  # whether it is a gold phrase


def write_phrases(
    generator: KeyphraseGenerator, documents: Sequence[Document]
) -> list[list[Phrase]]:
    """Return the distinct present phrases that the generator writes greedily for each document."""
    import torch

    model, hints = generator.model, generator.model.hints
    if hints is None:
        raise SystemExit("this start has no hints; use that of: evenmatch study keyphrases")
    ranker = CandidateRanker(hints.counts, hints.scorer)
    split = model.split
    examples = [make_keyphrase_example(d, generator.longest, split) for d in documents]
    found: list[list[Phrase]] = []
    for start in range(0, len(examples), _BATCH):
        batch = make_catseq_batch(examples[start : start + _BATCH], generator.vocabulary)
        with torch.no_grad():
            memory = model.encode(batch)
            decoded = decode_batch(model, batch, memory=memory)
            logs = model.log_likelihood(memory, decoded.tokens).tolist()
        for document, words, own in zip(documents[start:], decoded.words, logs, strict=False):
            odds = {candidate.stems: score for score, candidate in ranker.rank(document)}
            gold = stem_phrases(document.keyphrases)
            stems = " ".join(next(iter(stem_phrases([document.text])), ()))
            phrases: dict[Any, Phrase] = {}
            phrase: list[str] = []
            total = 0.0
            for word, log in zip(words, own, strict=False):
                total += log
                if word not in (NEXT, SPLIT, END):
                    phrase.append(word)
                    continue
                for key in stem_phrases([" ".join(phrase)]):
                    if f" {' '.join(key)} " in f" {stems} ":
                        made = Phrase(
                            " ".join(phrase), total, odds.get(key, _UNLIKELY), key in gold
                        )
                        phrases.setdefault(key, made)
                phrase, total = [], 0.0
            found.append([*phrases.values()])
    return found


def keep(
    phrases: Sequence[Phrase], score: Callable[[Phrase], float], threshold: float
) -> list[Phrase]:
    """Return the phrases that reach the threshold, best first, and at least the best."""
    ordered = sorted(phrases, key=score, reverse=True)
    return [p for i, p in enumerate(ordered) if i == 0 or score(p) >= threshold]


def choose_threshold(
    rows: Sequence[Sequence[Phrase]], gold: Sequence[int], score: Callable[[Phrase], float]
) -> float:
    """Return the threshold with the best F1@M; `gold` counts the gold phrases of each document."""

    def f1(threshold: float) -> float:
        kept = [keep(row, score, threshold) for row in rows]
        hits = np.array([sum(p.correct for p in each) for each in kept])
        precision = (hits / np.maximum(1, [len(each) for each in kept])).mean()
        recall = (hits / np.maximum(1, gold)).mean()
        return float(2 * precision * recall / max(precision + recall, 1e-9))

    every = [score(phrase) for row in rows for phrase in row]
    return float(max(np.quantile(every, np.linspace(0, 0.6, 61)), key=f1))


def main(folder: str) -> None:
    """Measure, store and print the result."""
    corpus = load_keyphrase_corpus()
    generator = load_generator(Path(folder) / "models" / "MLE-seed-1")
    valid, test = list(corpus.valid), list(corpus.tests["KP20k"])
    rows, wanted = (write_phrases(generator, documents) for documents in (valid, test))
    gold = [_count_present(document) for document in valid]
    systems: dict[str, list[tuple[str, ...]]] = {
        "start": [tuple(p.text for p in row) for row in wanted]
    }
    scores: dict[str, Callable[[Phrase], float]] = {
        "start, by log-probability": lambda p: p.likelihood,
        "start, by log-probability and log-odds": lambda p: p.likelihood + p.odds,
    }
    for name, score in scores.items():
        threshold = choose_threshold(rows, gold, score)
        systems[name] = [tuple(p.text for p in keep(row, score, threshold)) for row in wanted]
    stored = json.loads(gzip.decompress(BASELINES.read_bytes()))["found"]
    systems["candidate ranker"] = [tuple(row) for row in stored["candidate ranker"]["KP20k"]]
    documents = tuple(
        Document(d.text, d.keyphrases, {name: given[i] for name, given in systems.items()})
        for i, d in enumerate(test)
    )
    found = score_keyphrases(DocumentSet("KP20k", documents, tuple(systems)), "f1_at_m")
    result = {
        "command": "python -m benchmarks.training.keyphrase_start FOLDER",
        "rows": [
            {"system": r.prediction, **{k: round(v, 4) for k, v in _interval(r.cells["present"])}}
            for r in found.rows
        ],
        "ranker minus": {
            gap.baseline: [round(v, 4) for v in (gap.difference, gap.low, gap.high)]
            for gap in found.gaps
            if gap.system == "candidate ranker" and gap.column == "present"
        },
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(RESULT.read_text("utf-8"))


def _interval(cell: Any) -> list[tuple[str, float]]:
    return [("f1_at_m", cell.value), ("low", cell.low), ("high", cell.high)]


def _count_present(document: Document) -> int:
    text = " ".join(next(iter(stem_phrases([document.text])), ()))
    return sum(f" {' '.join(p)} " in f" {text} " for p in stem_phrases(document.keyphrases))


if __name__ == "__main__":
    main(sys.argv[1])
