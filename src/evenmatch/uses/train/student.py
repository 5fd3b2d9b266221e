"""A shallow encoder trained to see texts as a deeper one does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenmatch.types import Array, Run
from evenmatch.uses.train.examples import Examples
from evenmatch.uses.train.kept import Kept
from evenmatch.uses.train.lesson import Lesson, learn
from evenmatch.uses.train.towers import Towers
from evenmatch.vectors.packing import portions
from evenmatch.vectors.transformer import Transformer

# The vectors themselves count as well, if less: similarities leave their lengths and turn free.
_STATES = 0.1


def keep_teacher(encoder: Transformer, texts: Sequence[str], lengths: Array, run: Run) -> Kept:
    """The states of every text at the layer the teacher reads."""
    layer = encoder.depth()
    kept: Kept | None = None
    index = 0
    for some in portions(texts):
        for states in encoder.body.encode(some, [layer], run):
            vectors = states.layers[layer]
            kept = kept or Kept(lengths.tolist(), vectors.shape[1])
            kept.write(index, vectors)
            index += 1
    assert kept is not None
    return kept


def train_student(
    towers: Towers, teacher: Kept, examples: Examples, lesson: Lesson, run: Run
) -> None:
    """Train the encoder, in place, to compare two texts' pieces as the teacher does.

    The loss is the squared difference of every similarity of a candidate's piece and a
    reference's, so that whatever solver aligns them sees what it would have seen.
    """
    import torch

    height = towers.upper.height

    def loss(batch: Array) -> Any:
        both = examples.candidates[batch], examples.references[batch]
        (x, x_there), (y, y_there) = towers.sides(*both, layers=[height])
        states, there = ((x[height], y[height]), (x_there, y_there))
        wanted = [
            _like(teacher, texts, of, towers.device) for texts, of in zip(both, states, strict=True)
        ]
        cells = there[0][:, :, None] & there[1][:, None, :]
        difference = (_cosines(*states) - _cosines(*wanted)) ** 2
        matches = (difference * cells).sum() / cells.sum()
        apart = [
            (((a - b) ** 2).mean(-1) * real).sum() / real.sum()
            for a, b, real in zip(states, wanted, there, strict=True)
        ]
        return matches + _STATES * torch.stack(apart).mean()

    groups = [{"params": towers.upper.parameters(), "lr": lesson.rate}]
    learn(groups, towers.sizes(examples).tolist(), lesson, loss, run.progress)


def _like(teacher: Kept, texts: Array, states: Any, device: str) -> Any:
    """The teacher's states, padded as the student's are."""
    import torch

    found, _ = teacher.padded(texts)
    padded = torch.zeros(states.shape)
    padded[:, : found.shape[1]] = torch.from_numpy(found)
    return padded.to(device)


def _cosines(x: Any, y: Any) -> Any:
    import torch

    x, y = (torch.nn.functional.normalize(t, dim=-1) for t in (x, y))
    return x @ y.transpose(-1, -2)
