"""The upper blocks of an encoder, trained on states that the frozen lower ones gave once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.types import Array, Run
from evenmatch.uses.train.kept import Kept
from evenmatch.vectors.blocks import Blocks, fresh_blocks
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.layers import depth
from evenmatch.vectors.packing import equal_length_batches

_NEAR = 1e-3  # two ways through the same blocks differ by rounding only


@dataclass(frozen=True, eq=False)
class Upper:
    """An encoder whose embeddings and first `frozen` blocks stay as they are.

    `height` is how many blocks there are in all; those above `frozen` learn.
    """

    blocks: Blocks
    frozen: int
    height: int

    def lower(self, sequences: Sequence[Array], run: Run) -> Kept:
        """What the frozen part makes of each sequence of ids, kept on disk."""
        import torch

        lengths = [len(s) for s in sequences]
        batches = list(equal_length_batches(lengths, run.batch_tokens))
        kept = Kept(lengths, self.dim)
        with self._taken(self.frozen) as taken, torch.inference_mode():
            for batch in batches:
                ids = torch.from_numpy(np.stack([sequences[i] for i in batch]))
                self.blocks.module(ids.to(self.blocks.device))
                for index, states in zip(batch, taken.pop().float().cpu().numpy(), strict=True):
                    kept.write(index, states)
        return kept

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return int(self.blocks.module.config.hidden_size)

    @contextmanager
    def _taken(self, layer: int) -> Iterator[list[Any]]:
        """A list that gets what goes into the block above `layer`; nothing runs above that."""
        taken: list[Any] = []

        def take(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            taken.append(args[0] if args else named["hidden_states"])

        with ExitStack() as undo:
            hook = self.blocks.stack[layer].register_forward_pre_hook(take, with_kwargs=True)
            undo.callback(hook.remove)
            self._cut(0, layer + 1, undo)
            yield taken

    @contextmanager
    def _given(self, states: Any) -> Iterator[None]:
        """Passes in which the first block that learns is given these states."""

        def give(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
            return (
                ((states, *args[1:]), named) if args else (args, {**named, "hidden_states": states})
            )

        with ExitStack() as undo:
            first = self.blocks.stack[self.frozen]
            undo.callback(first.register_forward_pre_hook(give, with_kwargs=True).remove)
            self._cut(self.frozen, self.height, undo)
            yield

    def _cut(self, start: int, stop: int, undo: ExitStack) -> None:
        owner, name = self.blocks.owner, self.blocks.attribute
        undo.callback(setattr, owner, name, self.blocks.stack)
        setattr(owner, name, self.blocks.stack[start:stop])

    def __call__(self, states: Any, there: Any, layers: Sequence[int]) -> dict[int, Any]:
        """The states at `layers` of padded texts, given those below; `there` marks real pieces."""
        import torch

        ids = torch.zeros(there.shape, dtype=torch.long, device=self.blocks.device)
        noted: dict[int, Any] = {}
        with self._given(states), ExitStack() as undo:
            for layer in layers:
                if layer < self.height:
                    undo.callback(self._note(layer, noted).remove)
            last = self.blocks.module(ids, attention_mask=there.long()).last_hidden_state
        return {**noted, self.height: last}

    def _note(self, layer: int, noted: dict[int, Any]) -> Any:
        norm = self.blocks.final_norm

        def note(_: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            states = args[0] if args else named["hidden_states"]
            noted[layer] = norm(states) if norm is not None else states

        return self.blocks.stack[layer].register_forward_pre_hook(note, with_kwargs=True)

    def parameters(self) -> list[Any]:
        """The weights that learn."""
        return [
            p for block in self.blocks.stack[self.frozen : self.height] for p in block.parameters()
        ]


def load_upper(checkpoint: Checkpoint, frozen: int, device: str, height: int = 0) -> Upper:
    """A copy of an encoder to train above its first `frozen` blocks; `height` cuts it off there."""
    height = height or depth(checkpoint)
    check_frozen(checkpoint, frozen, height)
    blocks = fresh_blocks(checkpoint, trust_remote_code=False, device=device)
    upper = Upper(blocks, frozen, height)
    if blocks.owner is None or not _comes_apart(upper):
        raise InputError(
            f"the blocks of {checkpoint.spoken} cannot be run apart from each other; "
            "train an encoder like BERT, such as 'minilm'"
        )
    for weight in upper.parameters():
        weight.requires_grad_(True)
    return upper


def check_frozen(checkpoint: Checkpoint, frozen: int, height: int) -> None:
    """Refuse to freeze all blocks that are kept, or to keep more than there are."""
    deepest = depth(checkpoint)
    if not 0 <= frozen < height <= deepest:
        raise InputError(
            f"{checkpoint.spoken} has {deepest} blocks; fewer can be frozen than are kept, "
            f"got {frozen} of {height}"
        )


def _comes_apart(upper: Upper) -> bool:
    """Whether the lower blocks and then the upper ones do what all do at once."""
    import torch

    ids = torch.arange(1, 6, device=upper.blocks.device)[None]
    with torch.inference_mode():
        with ExitStack() as undo:
            upper._cut(0, upper.height, undo)
            whole = upper.blocks.module(ids).last_hidden_state
        with upper._taken(upper.frozen) as taken:
            upper.blocks.module(ids)
        parted = upper(taken[0], torch.ones_like(ids, dtype=torch.bool), [upper.height])
    return bool(torch.allclose(whole, parted[upper.height], atol=_NEAR))
