"""A torchmetrics `Metric` that computes any evenmatch metric, for use in training loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenmatch.api import score
from evenmatch.errors import needs_extra
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import make_pairs
from evenmatch.scoring.metric import as_metric
from evenmatch.scoring.streaming import RunningMean
from evenmatch.types import Pair

with needs_extra("this needs torchmetrics; install it with: pip install 'evenmatch[torchmetrics]'"):
    import torch
    from torchmetrics import Metric as TorchMetric


class EvenmatchTorchMetric(TorchMetric):
    """Collect candidates (`preds`) and references (`target`), and score them all in `compute`.

    `compute` returns a dictionary of scalars: the mean `value`, `precision` and `recall` if the
    metric has them, and `corpus` if it defines a corpus score. Texts are stored as tensors of
    bytes, so that the state can be moved, saved and gathered over processes like any other. `run`
    settings are those of `evenmatch.score`; other keywords go to torchmetrics.
    """

    is_differentiable = False
    full_state_update = False  # the value of a batch depends on that batch only

    letters: list[torch.Tensor]
    lengths: list[torch.Tensor]
    texts: list[torch.Tensor]

    def __init__(
        self,
        metric: str | Metric = "bertscore",
        *,
        run: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.metric = as_metric(metric)
        self.run = dict(run or {})
        # The bytes of all texts, the number of bytes per text, the number of texts per pair.
        for name in ("letters", "lengths", "texts"):
            self.add_state(name, default=[], dist_reduce_fx="cat")

    @property
    def higher_is_better(self) -> bool:  # type: ignore[override]  # it differs by instance
        """Whether a higher score is a better one."""
        return self.metric.higher_is_better

    def update(
        self, preds: Sequence[str] | str, target: Sequence[str] | Sequence[Sequence[str]] | str
    ) -> None:
        """Add candidates and their references: a string or a list of strings per candidate."""
        candidates = [preds] if isinstance(preds, str) else preds
        references = [target] if isinstance(target, str) else target
        pairs = make_pairs(candidates, references)
        encoded = [
            [text.encode("utf-8", "surrogatepass") for text in (pair.candidate, *pair.references)]
            for pair in pairs
        ]
        flat = [text for texts in encoded for text in texts]
        self.letters.append(self._tensor(list(b"".join(flat)), torch.uint8))
        self.lengths.append(self._tensor([len(text) for text in flat], torch.int64))
        self.texts.append(self._tensor([len(texts) for texts in encoded], torch.int64))

    def compute(self) -> dict[str, torch.Tensor]:
        """Score all pairs added so far; return scalars."""
        pairs = self.pairs()
        found = score(
            [pair.candidate for pair in pairs],
            [pair.references for pair in pairs],
            self.metric,
            **self.run,
        )
        mean = RunningMean().add(found).mean
        numbers = {part: getattr(mean, part) for part in ("value", "precision", "recall")}
        numbers["corpus"] = found.corpus
        return {
            name: torch.tensor(number, device=self.device)
            for name, number in numbers.items()
            if number is not None
        }

    def pairs(self) -> list[Pair]:
        """The pairs added so far, in order."""
        letters = bytes(_to_ints(self.letters))
        texts, start = [], 0
        for length in _to_ints(self.lengths):
            texts.append(letters[start : start + length].decode("utf-8", "surrogatepass"))
            start += length
        rows = iter(texts)
        return [
            Pair(next(rows), tuple(next(rows) for _ in range(count - 1)))
            for count in _to_ints(self.texts)
        ]

    def _tensor(self, values: list[int], kind: torch.dtype) -> torch.Tensor:
        return torch.tensor(values, dtype=kind, device=self.device)


def _to_ints(state: Sequence[torch.Tensor] | torch.Tensor) -> list[int]:
    """The numbers of a state: a list of tensors, or one tensor after gathering over processes."""
    tensors = [state] if isinstance(state, torch.Tensor) else state
    return [int(number) for tensor in tensors for number in tensor.tolist()]
