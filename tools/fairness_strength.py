"""Measure how much bias is removed, and how much of the penalty is left, by strength.

    python -m tools.fairness_strength FOLDER [--out results/fairness/strength.json]

Two ways to remove gender are compared with `bertscore`, each at several strengths. The first is an
adapter trained with `--last-block`, its output multiplied by the strength. The second is
linear: the directions in which the hidden states of counterfactual words differ most are subtracted
from the states of all tokens, times the strength. It is written as an adapter of the same form.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.data.fairness_sets import FairnessPair
from evenmatch.fairness.counterfactuals import Counterfactual
from evenmatch.fairness.differentiable import Differentiable, TextPair, make_differentiable
from evenmatch.fairness.training_data import (
    family_counterfactuals,
    held_out,
    training_families,
)
from evenmatch.models.adapters import Adapter, find_adapter, load_adapter
from evenmatch.scoring.metric import as_metric
from evenmatch.types import Pair, Run
from tools.fairness import STORED, all_term_pairs, bias_measures, fairness_sets, penalty_cases

STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
DIRECTIONS = (1, 8)
PER_FAMILY = 60  # counterfactuals to estimate the directions from
BATCH = 200
GENDER_SETS = ("gender", "winobias 1", "winobias 2", "crows gender")
OWN_SETS = ("nouns, seen", "nouns, unseen", "nouns, further", "names", "names, regions")


def scale_adapter(adapter: Adapter, strength: float) -> Adapter:
    """Multiply what an adapter adds to the hidden states."""
    return Adapter(
        {name: w * strength if ".up." in name else w for name, w in adapter.weights.items()}
    )


def linear_adapter(
    directions: Any, centre: Any, scale: Any, block: int, strength: float
) -> Adapter:
    """Subtract the part of the states, beyond the centre, that lies in orthonormal directions.

    A pair of rectified units represents a linear one: relu(x) - relu(-x) = x. `scale` converts
    differences of states to what the layer norm is applied to.
    """
    import torch

    down = torch.cat([directions, -directions])
    up = torch.cat([directions.T, -directions.T], 1) * scale[:, None] * -strength
    shift = torch.zeros(len(scale))
    weights = {
        "down.weight": down,
        "down.bias": -(down @ centre),
        "up.weight": up,
        "up.bias": shift,
    }
    return Adapter({f"{block}.{name}": weight for name, weight in weights.items()})


def counterfactual_differences(encoder: Any, examples: Sequence[Counterfactual]) -> Any:
    """Differences of the states of the words that a counterfactual replaces."""
    import torch

    encoder.encode_once([t for each in examples for t in (each.original, each.swapped)])
    found = []
    for each in examples:
        one, other = (encoder.tokenize(t).token_ids for t in (each.original, each.swapped))
        if len(one) == len(other):
            places = np.flatnonzero(np.asarray(one) != np.asarray(other))
            states = (encoder.norm(encoder.before_norm[t]) for t in (each.original, each.swapped))
            first, second = (each[places] for each in states)
            found.append(first - second)
    return torch.cat(found)


def measure(
    through: Differentiable,
    adapter: Adapter | None,
    sets: Mapping[str, Sequence[FairnessPair]],
    cases: Mapping[str, Sequence[tuple[Pair, Pair]]],
) -> dict[str, dict[str, Any]]:
    """Bias on each set, and the penalties, of `bertscore` with an adapter."""
    groups = {name: [pair.both for pair in pairs] for name, pairs in sets.items()}
    groups |= {f"penalty, {name}": list(each) for name, each in cases.items()}
    rows: list[TextPair] = [
        (pair.candidate, pair.references[0])
        for group in groups.values()
        for both in group
        for pair in both
    ]
    scores = [
        value
        for at in range(0, len(rows), BATCH)
        for value in through.scores(rows[at : at + BATCH], adapter).tolist()
    ]
    both = iter(np.array(scores).reshape(-1, 2))
    found = {}
    for name, group in groups.items():
        values = np.array([next(both) for _ in group])
        found[name] = (
            bias_measures(name, list(sets[name]), values)
            if name in sets
            else {"cost": float((values[:, 0] - values[:, 1]).mean())}
        )
    return found


def measure_terms(through: Differentiable, encoder: Any, adapter: Adapter) -> list[dict[str, Any]]:
    """Bias by term of the unseen nouns, and the number of word pieces of both nouns."""
    [family] = [each for each in held_out()["nouns"] if each["set"] == "nouns, unseen"]
    found = []
    for term in family["terms"]:
        pairs = {"nouns, unseen": list(all_term_pairs({**family, "terms": [term]}))}
        before, after = (measure(through, each, pairs, {}) for each in (None, adapter))
        pieces = [len(encoder.tokenize(word).token_ids) - 2 for word in term[:2]]
        raw = [each["nouns, unseen"]["raw"] for each in (before, after)]
        found.append({"term": "/".join(term[:2]), "pieces": pieces, "raw": raw})
    return found


def main() -> None:
    """Measure all strengths of both ways."""
    import torch

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("adapter", metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=STORED / "strength.json")
    given = parser.parse_args()
    trained = load_adapter(find_adapter(given.adapter))
    torch.set_grad_enabled(False)
    through = make_differentiable(as_metric("bertscore"), Run(threads=1), last_block=True)
    if trained.blocks != [through.first]:
        raise SystemExit(f"{given.adapter} is not for the last block alone")
    encoder: Any = through.prepare.__self__  # type: ignore[attr-defined]  # a bound method
    known = fairness_sets()
    sets = {name: known[name] for name in (*GENDER_SETS, *OWN_SETS)}
    cases = penalty_cases()
    texts = [
        t
        for pairs in sets.values()
        for p in pairs
        for s in p.both
        for t in (s.candidate, *s.references)
    ]
    texts += [
        t
        for each in cases.values()
        for both in each
        for s in both
        for t in (s.candidate, *s.references)
    ]
    through.prepare(texts)
    found: dict[str, Any] = {"plain": measure(through, None, sets, cases)}
    for strength in STRENGTHS[1:]:
        scaled = scale_adapter(trained, strength)
        found[f"trained {strength}"] = measure(through, scaled, sets, cases)
    families = training_families("gender")
    examples = [c for f in families for c in list(family_counterfactuals(f))[::7][:PER_FAMILY]]
    differences = counterfactual_differences(encoder, examples)
    _, _, right = torch.linalg.svd(differences, full_matrices=False)
    below = torch.cat(list(encoder.before_norm.values()))
    centre = encoder.norm(below).mean(0)
    scale = below.std(-1, correction=0).mean() / encoder.norm.weight
    for count in DIRECTIONS:
        for strength in STRENGTHS[1:]:
            linear = linear_adapter(right[:count], centre, scale, through.first, strength)
            found[f"linear {count} {strength}"] = measure(through, linear, sets, cases)
    found["terms"] = measure_terms(through, encoder, trained)
    given.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    for label, row in found.items():
        if label == "terms":
            continue
        changes = [f"{100 * row[n]['raw'] / found['plain'][n]['raw']:.0f}" for n in sets]
        kept = [
            f"{100 * row[n]['cost'] / found['plain'][n]['cost']:.0f}"
            for n in row
            if "cost" in row[n]
        ]
        print(label, *changes, "|", *kept)


if __name__ == "__main__":
    main()
