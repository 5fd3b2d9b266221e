"""Two towers in training: the upper blocks of an encoder, and a head over what they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.scoring.towers import seen_in_torch
from evenmatch.scoring.towers_head import Head
from evenmatch.types import Array, Run
from evenmatch.uses.train.examples import Examples
from evenmatch.uses.train.kept import Kept
from evenmatch.uses.train.lesson import Lesson, learn
from evenmatch.uses.train.upper import Upper
from evenmatch.vectors.pretrained import Pretrained

_AT_ONCE = 32  # pairs a batch where nothing is learnt
_SAMPLE = 1024  # pairs from which the head's first weights are found


@dataclass(frozen=True, eq=False)
class Towers:
    """An encoder, the texts' states below it, and how many marks stand around a text."""

    upper: Upper
    kept: Kept
    lengths: Array
    opening: int
    closing: int

    def sides(self, *groups: Array, layers: Sequence[int]) -> list[tuple[dict[int, Any], Any]]:
        """Groups of texts in one pass: for each the states by layer, and which are pieces."""
        import torch

        states, there = (torch.from_numpy(a) for a in self.kept.padded(np.concatenate(groups)))
        found = self.upper(states.to(self.device), there.to(self.device), layers)
        inner = self._inner(there).to(self.device)
        ends = np.cumsum([len(group) for group in groups])
        return [
            (
                {n: v[end - len(group) : end] for n, v in found.items()},
                inner[end - len(group) : end],
            )
            for group, end in zip(groups, ends, strict=True)
        ]

    def _inner(self, there: Any) -> Any:
        """Where the pieces stand, without the marks around them."""
        import torch

        place, count = torch.arange(there.shape[1]), there.sum(1, keepdim=True)
        return (place >= self.opening) & (place < count - self.closing)

    def seen(self, examples: Examples, batch: Array, layers: Sequence[int]) -> Any:
        """What a head sees of these examples."""
        x, y = self.sides(examples.candidates[batch], examples.references[batch], layers=layers)
        return seen_in_torch(*x, *y, layers)

    def sizes(self, examples: Examples) -> Array:
        """How many pieces each example has, marks included."""
        sizes: Array = self.lengths[examples.candidates] + self.lengths[examples.references]
        return sizes

    @property
    def device(self) -> str:
        """Where the encoder is."""
        return self.upper.blocks.device


def set_up(upper: Upper, body: Pretrained, texts: Sequence[str], run: Run) -> Towers:
    """The frozen part run over every text once."""
    sequences = body.keys(texts)
    tokens = body.tokens()
    return Towers(
        upper,
        upper.lower(sequences, run),
        np.array([len(s) for s in sequences]),
        len(tokens.opening),
        len(tokens.closing),
    )


def train_towers(
    towers: Towers, examples: Examples, layers: Sequence[int], lesson: Lesson, run: Run
) -> Head:
    """Train the encoder, in place, and a head to predict the targets by squared loss."""
    import torch

    mean, spread = float(examples.targets.mean()), float(examples.targets.std())
    targets = (examples.targets - mean) / spread
    first = _first_head(towers, examples, targets, layers, lesson.seed)
    weights, bias = (
        torch.tensor(v, dtype=torch.float32, device=towers.device, requires_grad=True)
        for v in first
    )
    wanted = torch.tensor(targets, dtype=torch.float32, device=towers.device)

    def loss(batch: Array) -> Any:
        predicted = towers.seen(examples, batch, layers) @ weights + bias
        return ((predicted - wanted[batch]) ** 2).mean()

    groups = [
        {"params": towers.upper.parameters(), "lr": lesson.rate},
        {"params": [weights, bias], "lr": lesson.head_rate},
    ]
    learn(groups, towers.sizes(examples).tolist(), lesson, loss, run.progress)
    final = weights.detach().cpu().double().numpy() * spread
    return Head(tuple(layers), final, mean + spread * float(bias.detach()))


def _first_head(
    towers: Towers, examples: Examples, targets: Array, layers: Sequence[int], seed: int
) -> tuple[Array, float]:
    """Weights for precision, recall and F by ridge regression, none for the rest as yet.

    From there on training starts as an ordinary alignment metric, not from noise.
    """
    import torch

    chosen = np.random.default_rng(seed).permutation(len(examples))[:_SAMPLE]
    chosen = chosen[np.argsort(towers.sizes(examples)[chosen], kind="stable")]
    with torch.inference_mode():
        parts = [
            towers.seen(examples, chosen[i : i + _AT_ONCE], layers).cpu().double().numpy()
            for i in range(0, len(chosen), _AT_ONCE)
        ]
    seen = np.concatenate(parts)
    matches = seen[:, -3 * len(layers) :]
    centred, wanted = matches - matches.mean(0), targets[chosen]
    gram = centred.T @ centred + 0.1 * np.eye(matches.shape[1])
    weights = np.zeros(seen.shape[1])
    weights[-3 * len(layers) :] = np.linalg.solve(gram, centred.T @ (wanted - wanted.mean()))
    return weights, float(wanted.mean() - seen.mean(0) @ weights)
