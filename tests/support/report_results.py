"""Small results in the form that the commands write."""

from __future__ import annotations

from typing import Any

import evenmatch as em
from evenmatch.cli import evaluate, fairness
from evenmatch.data.fairness_sets import FairnessSet, make_fairness_pair
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.scores import score_to_record
from evenmatch.evaluation.compare import compare
from evenmatch.evaluation.keyphrase_scores import score_keyphrases
from evenmatch.fairness.audit import audit
from evenmatch.types import Pair

GREEDY = "align(vectors=hashed)"
LSA = "align(vectors=hashed, alignment=lsa)"
PAIRS = [
    Pair("the cat sat", ("the cat sat",)),
    Pair("the the the cat", ("a dog", "the cat")),
    Pair("<b>it</b> rained", ("the cat slept",)),
    Pair("a dog barked", ("a dog barked loudly",)),
    Pair("", ("nobody came",)),
]


def scored(*metrics: str, segments: bool = True) -> dict[str, Any]:
    found = em.score(
        [p.candidate for p in PAIRS], [list(p.references) for p in PAIRS], list(metrics)
    )
    document: dict[str, Any] = {}
    for name, scores in found.items():
        document[name] = {"signature": scores.signature, "mean": scores.mean}
        if scores.corpus is not None:
            document[name]["corpus"] = scores.corpus
        if segments:
            document[name]["segments"] = [score_to_record(s) for s in scores.segments]
    return {"metrics": document, "command": "evenmatch score 'my pairs.jsonl' --json"}


def compared() -> dict[str, Any]:
    references = [["the cat sat"], ["a dog barked"], ["rain fell"], ["it was old"]]
    systems = {
        "plain": ["the cat", "a dog", "rain", "it was"],
        "poor": ["dog", "cat", "snow", "new"],
    }
    found = compare(systems, references, [LSA, "ter"], resamples=20, trials=20)
    return evaluate.comparison_document(found)


def agreed(sets: list[RatedSet]) -> dict[str, Any]:
    return evaluate.agreement_document(em.correlate([GREEDY, LSA], sets, "segment", resamples=20))


def audited() -> dict[str, Any]:
    pairs = [
        make_fairness_pair("the <cat> sat", "the <cat> sat", "the dog sat", "the <cat> sat"),
        make_fairness_pair("a b", "a b", "a c", "a b"),
    ]
    found = audit([GREEDY, "chrf"], FairnessSet("mine", {"pets": pairs}), trials=10)
    return fairness.audit_document(found)


def keyphrases(path: str) -> dict[str, Any]:
    return score_keyphrases([path], ["fg"], resamples=20, trials=20).document()


def interval(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 0.1, "high": value + 0.1}


LISA = {
    "data": "mine",
    "pairs": 6,
    "claims": ["one-to-one alignment lowers the mean"],
    "rows": [
        {
            "encoder": "minilm layer 4",
            "length": length,
            "algorithm": algorithm,
            "effect": interval(effect),
            "wider": None,
        }
        for length in (0, 32)
        for algorithm, effect in (("greedy", 2.5), ("lsa", 3.25))
    ],
}
WORTH = {
    "qualities": {"sentences": [{"solver": "topk", "ratio": 0.98}]},
    "agreements": [],
    "speeds": [{"solver": "topk", "seconds": 0.00012}],
    "sentences": 6,
}
LESSONS = {
    "curves": [
        {
            "lesson": {"method": "soft", "steps": 20},
            "losses": [1.0, 0.5],
            "held_out": [
                {"step": 0, "loss": 1.0, "right": 0.25},
                {"step": 20, "loss": 0.5, "right": 0.75},
            ],
        }
    ]
}
TUNED = {
    "ended": False,
    "steps": 20,
    "best": {"step": 20, "bleu": 0.25},
    "looks": [
        {
            "step": step, "bleu": bleu, "cross_entropy": 3.5, "reward": 0.5, "baseline": 0.4,
            "length": 20.5, "repetition": 0.02, "chrf": 0.5, "greedy_length": 18.5,
            "greedy_repetition": 0.01,
        }
        for step, bleu in ((10, 0.125), (20, 0.25))
    ],
    "examples": [
        {"step": step, "source": "<H> Cork", "text": f"text {step}", "reference": "Cork."}
        for step in (20, 10)
    ],
}  # fmt: skip
STUDY = {
    "title": "Keyphrases",
    "findings": ["rewarding <FG> raises it"],
    "tables": {"present": [["arm", "F1"], ["MLE", "0.30 (0.29-0.31)"]]},
    "figures": {"fg": "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"},
    "notes": ["greedy decoding"],
}
