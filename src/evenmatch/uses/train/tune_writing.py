"""Texts that a policy writes: the likeliest, and others drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from evenmatch.uses.train.tune_policy import Policy


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """Ids that were written, and which of them come up to the first closing piece."""

    ids: Any
    alive: Any


def write(
    policy: Policy, states: Any, mask: Any, *, draw: Any | None = None, longest: int
) -> Written:
    """The likeliest piece taken each time; with `draw`, above those, as many texts drawn."""
    import torch

    rows = len(states) if draw is not None else 0
    if rows:
        states, mask = states.repeat(2, 1, 1), mask.repeat(2, 1)
    last = torch.full((len(states), 1), policy.start)
    unfinished = torch.ones_like(last, dtype=torch.bool)
    ids: list[Any] = []
    alive: list[Any] = []
    memory: Any = None
    with torch.no_grad():
        while len(ids) < longest and unfinished.any():
            told = policy.model(
                encoder_outputs=(states,),
                attention_mask=mask,
                decoder_input_ids=last,
                past_key_values=memory,
                use_cache=True,
            )
            logits, memory = told.logits[:, -1], told.past_key_values
            last = logits.argmax(-1, keepdim=True)
            if rows:
                last[:rows] = _drawn(logits[:rows], draw)
            ids.append(last)
            alive.append(unfinished)
            unfinished = unfinished & (last != policy.end)
    return Written(torch.cat(ids, 1), torch.cat(alive, 1))


def _drawn(logits: Any, draw: Any) -> Any:
    """One piece for each row, as likely as the model says.

    By where one number falls in the running sum: torch.multinomial draws one for every piece of the
    vocabulary, and took a fifth of the step.
    """
    import torch

    sums = logits.softmax(-1).cumsum(-1)
    at = torch.rand(len(sums), 1, generator=draw) * sums[:, -1:]
    return torch.searchsorted(sums, at, right=True).clamp(max=sums.shape[1] - 1)


def write_texts(
    policy: Policy, sources: Sequence[str], *, longest: tuple[int, int], at_a_time: int
) -> list[str]:
    """The likeliest text for each input; inputs of like length go together."""
    import torch

    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    found: dict[int, str] = {}
    with evaluating(policy.model), torch.no_grad():
        for start in range(0, len(order), at_a_time):
            some = order[start : start + at_a_time]
            ids, mask = policy.cut([sources[i] for i in some], longest[0])
            got = write(policy, policy.read(ids, mask), mask, longest=longest[1])
            found.update(zip(some, texts_of(policy, got), strict=True))
    return [found[i] for i in range(len(sources))]


def texts_of(policy: Policy, written: Written) -> list[str]:
    """What was written, up to the closing piece, as text."""
    return policy.texts(written.ids.masked_fill(~written.alive, policy.tokenizer.pad_token_id))


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Without dropout, and afterwards as before."""
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)
