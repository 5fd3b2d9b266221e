"""Decoding: texts that a policy writes greedily, by sampling or by beam search.

`generate` writes texts with a tuned model. `generate_tokens` decodes what training needs, sampled
and greedy texts in one batch; `search_beams` is the slower search for likelier texts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from os import PathLike
from typing import Any

from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.registry.parts import check_arguments, check_at_least
from evenmatch.training.generator.policy import (
    EncodedInputs,
    Policy,
    autocast,
    eval_mode,
    load_policy,
    read_decoding_settings,
)


@check_arguments
def generate(
    model: str | PathLike[str], sources: Sequence[str], *, batch_size: int = 64, beams: int = 1
) -> list[str]:
    """Write a text for each input with a language model, such as the result of `tune`.

    `sources` are lines of text: for a graph read by `read_graphs`, its `graph.line`. Texts are
    decoded greedily, or by beam search with that many `beams`. The prefix of the inputs, the
    separator, the precision and the greatest lengths are those of the tuning.
    """
    check_at_least(1, batch_size=batch_size, beams=beams)
    settings = read_decoding_settings(find_checkpoint(str(model)).folder)
    policy = load_policy(str(model), settings)
    inputs = [settings.prefix + source for source in sources]
    longest = settings.longest_source, settings.longest_target
    return generate_texts(policy, inputs, longest=longest, batch_size=batch_size, beams=beams)


def generate_tokens(
    policy: Policy,
    inputs: EncodedInputs,
    *,
    longest: int,
    samples: int = 0,
    greedy: bool = True,
    generator: Any | None = None,
) -> tuple[Any, Any]:
    """Decode texts for each input: `samples` drawn with a torch generator, and the greedy one.

    Rows are the first samples of all inputs, the second samples, …, then the greedy texts. Returns
    token ids, and a mask of those up to and including the first closing token. A row leaves the
    batch when it is finished. The random numbers of a row depend on the generator and the row's
    place alone, not on when other rows finish.
    """
    import torch

    end, drawn = policy.tokenizer.eos_token_id, samples * len(inputs.mask)
    inputs = inputs.repeat(samples + greedy)
    rows = len(inputs.mask)
    thresholds = torch.rand((drawn, longest), generator=generator)
    ids = torch.full((rows, longest), end)
    mask = torch.zeros((rows, longest), dtype=torch.bool)
    active = torch.arange(rows)
    last = torch.full((rows, 1), policy.start_token)
    memory: Any = None
    with torch.no_grad():
        for place in range(longest):
            logits, memory = policy.next_logits(inputs, last, memory, use_cache=True)
            inputs = dataclasses.replace(inputs, prefix=())  # it is in the cache now
            logits = logits[:, -1].float()
            tokens = logits.argmax(-1)
            if count := int((active < drawn).sum()):
                tokens[:count] = sample_tokens(logits[:count], thresholds[active[:count], place])
            ids[active, place], mask[active, place] = tokens, True
            kept = (tokens != end).nonzero().squeeze(1)
            if not len(kept):
                break
            if len(kept) < len(active):
                active, tokens, inputs = active[kept], tokens[kept], inputs.select(kept)
                memory.batch_select_indices(kept)
            last = tokens[:, None]
    width = int(mask.sum(1).max())
    return ids[:, :width], mask[:, :width]


def sample_tokens(logits: Any, thresholds: Any) -> Any:
    """Sample one token for each row from the model's distribution, given a number from 0 to 1.

    Uses the cumulative distribution: torch.multinomial draws one number for every token of the
    vocabulary, which took a fifth of the step.
    """
    import torch

    cumulative = logits.softmax(-1).cumsum(-1)
    tokens = torch.searchsorted(cumulative, thresholds[:, None] * cumulative[:, -1:], right=True)
    return tokens.squeeze(1).clamp(max=cumulative.shape[1] - 1)


def search_beams(
    policy: Policy, inputs: EncodedInputs, *, longest: int, beams: int
) -> tuple[Any, Any]:
    """Decode one text for each input by beam search, and return token ids and their mask.

    The score of a text is the sum of its tokens' log-probabilities, divided by their number; the
    closing token counts. Every step extends the `beams` likeliest unfinished texts of an input by
    one token. Of the likeliest `beams` extensions, those that end are finished texts, of which the
    best `beams` are kept. An input is done when it has as many, and the likeliest unfinished text
    does not score above the worst of them at its present length; at `longest` tokens every text
    ends. These are the rules of `transformers`' `generate(num_beams=…)` with its default settings
    (`length_penalty=1`, `early_stopping=False`).
    """
    import torch

    end, count = policy.tokenizer.eos_token_id, len(inputs.mask)
    finished: list[list[tuple[float, list[int]]]] = [[] for _ in range(count)]  # the best first
    active = list(range(count))
    totals, written = torch.zeros((count, 1)), torch.zeros((count, 0), dtype=torch.long)
    last = torch.full((count, 1), policy.start_token)
    memory: Any = None
    with torch.no_grad():
        for length in range(1, longest + 1):
            logits, memory = policy.next_logits(inputs, last, memory, use_cache=True)
            inputs = dataclasses.replace(inputs, prefix=())  # it is in the cache now
            chances = logits[:, -1].float().log_softmax(-1).view(*totals.shape, -1)
            sums, size = (totals[..., None] + chances).flatten(1), chances.shape[-1]
            found = sums.topk(min(2 * beams, sums.shape[1]))
            before = torch.arange(len(active))[:, None] * totals.shape[1]
            rows, tokens = before + found.indices // size, found.indices % size
            extended = torch.cat([written[rows], tokens[..., None]], -1)
            ended = (tokens == end) | (length == longest)
            for i, rank in ended[:, :beams].nonzero().tolist():
                own = finished[active[i]]
                own.append((float(found.values[i, rank]) / length, extended[i, rank].tolist()))
                own.sort(key=lambda each: -each[0])
                del own[beams:]
            if length == longest:
                break
            # The likeliest unfinished extensions; with few words, there may be less than `beams`.
            chosen = ended.to(torch.int8).argsort(dim=1, stable=True)[:, :beams]
            totals = found.values.masked_fill(ended, -torch.inf).gather(1, chosen)
            kept = [
                i
                for i, text in enumerate(active)
                if len(finished[text]) < beams
                or float(totals[i, 0]) / length > finished[text][-1][0]
            ]
            if not kept:
                break
            active, totals = [active[i] for i in kept], totals[kept]
            parents = rows.gather(1, chosen)[kept].flatten()
            written = extended[torch.arange(len(extended))[:, None], chosen][kept].flatten(0, 1)
            last, inputs = written[:, -1:], inputs.select(parents)
            memory.batch_select_indices(parents)
    best = [texts[0][1] for texts in finished]
    width = max(map(len, best))
    ids = torch.tensor([row + [end] * (width - len(row)) for row in best])
    lengths = torch.tensor([len(row) for row in best])
    return ids, torch.arange(width) < lengths[:, None]


def generate_texts(
    policy: Policy,
    sources: Sequence[str],
    *,
    longest: tuple[int, int],
    batch_size: int,
    beams: int = 1,
) -> list[str]:
    """Decode a text for each input, greedily or by beam search.

    Inputs of similar length share a batch; `batch_size` counts beams.
    """
    import torch

    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    size = max(1, batch_size // beams)
    found: dict[int, str] = {}
    with eval_mode(policy.model), torch.no_grad(), autocast(policy):
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            inputs = policy.encode([sources[i] for i in batch], longest[0])
            if beams == 1:
                tokens = generate_tokens(policy, inputs, longest=longest[1])
            else:
                tokens = search_beams(policy, inputs, longest=longest[1], beams=beams)
            found.update(zip(batch, decode_texts(policy, *tokens), strict=True))
    return [found[i] for i in range(len(sources))]


def decode_texts(policy: Policy, ids: Any, mask: Any) -> list[str]:
    """Return the texts of rows of token ids where the mask is True."""
    texts = policy.tokenizer.batch_decode(
        ids.masked_fill(~mask, policy.tokenizer.eos_token_id),
        skip_special_tokens=True,
        clean_up_tokenization_spaces=False,
    )
    return [text.strip() for text in texts]
