"""Two texts as one sequence, and the number a model gives for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.types import Array, Run
from evenmatch.vectors import tokens
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.packing import equal_length_batches
from evenmatch.vectors.quiet import quiet_transformers
from evenmatch.vectors.side_by_side import side_by_side


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """What a model is given for two texts: ids, which text each belongs to, whether some were cut.

    `inputs` has what the model's tokenizer makes, by the names its model takes.
    """

    inputs: Mapping[str, Array]
    cut: bool

    @property
    def length(self) -> int:
        """How many pieces there are, marks included."""
        return len(self.inputs["input_ids"])


@dataclass(frozen=True)
class Reading:
    """How two texts are put to one model."""

    checkpoint: Checkpoint
    limit: int
    long: str
    trust_remote_code: bool

    def __call__(self, texts: Sequence[tuple[str, str]]) -> list[Read]:
        """Both texts in their order, with the marks the model is used to."""
        loaded = tokens.load_tokenizer(self.checkpoint, self.trust_remote_code)
        most = tokens.limit(self.checkpoint, int(loaded.model_max_length))
        most = min(self.limit, most) if self.limit else most
        clean = [[tokens.without_surrogates(t).strip() for t in pair] for pair in texts]
        with quiet_transformers():
            return [self._one(loaded, first, second, most) for first, second in clean]

    def _one(self, loaded: Any, first: str, second: str, most: int) -> Read:
        given = loaded(first, second, return_attention_mask=False)
        count = len(given["input_ids"])
        if count > most:
            if self.long == "error":
                raise InputError(
                    f"two texts have {count} pieces and {self.checkpoint.spoken} reads {most}; "
                    "shorten them, or say long='truncate'"
                )
            given = loaded(
                first,
                second,
                truncation="longest_first",
                max_length=most,
                return_attention_mask=False,
            )
        return Read({k: np.array(v, dtype=np.int64) for k, v in given.items()}, count > most)


def numbers(model: Any, read: Sequence[Read], run: Run) -> list[float]:
    """The model's number for each, in order; only sequences of one length share a batch."""
    import torch

    found = [0.0] * len(read)

    def one(batch: list[int]) -> None:
        names = read[batch[0]].inputs
        inputs = {
            name: torch.from_numpy(np.stack([read[i].inputs[name] for i in batch])).to(model.device)
            for name in names
        }
        with torch.inference_mode():
            logits = model(**inputs).logits.float().reshape(-1)
        for index, number in zip(batch, logits.tolist(), strict=True):
            found[index] = number

    lengths = [seen.length for seen in read]
    side_by_side(one, list(equal_length_batches(lengths, run.batch_tokens)), run)
    return found
