"""Beam search, against that of transformers and against all texts of a small vocabulary."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.training.generator.decoding import generate_tokens, search_beams
from evenmatch.training.generator.policy import (
    CausalPolicy,
    EncodedInputs,
    Policy,
    load_policy,
    make_policy,
)
from tests.support.small_models import save_causal
from tests.support.tuning import NAMES, SMALL, save_tiny_llama

torch = pytest.importorskip("torch", reason="torch is not installed")

SOURCES = ["a", "Cork and Dover", "Essen near Faro near Cork", "<H> Bergen <R> near To <T> Cork"]
LONGEST = 10


def policy_of(kind: str, folder: Path) -> Policy:
    """A policy with random weights in float64, so that rounding decides no tie."""
    if kind == "t5":
        found: Policy = make_policy(SMALL, NAMES * 9, seed=1)
        with torch.no_grad():
            found.model.shared.weight.mul_(1.5)
    else:
        model = save_tiny_llama(folder) if kind == "llama" else str(save_causal(folder))
        found = load_policy(model)
    found.model.double().eval()
    return found


def make_endings_likelier(policy: Policy, by: float) -> None:
    """Raise the logit of the closing token, so that texts end at different lengths."""
    end, head = policy.tokenizer.eos_token_id, policy.model.get_output_embeddings()

    def raised(module: Any, given: Any, logits: Any) -> Any:
        logits[..., end] += by
        return logits

    head.register_forward_hook(raised)


def transformers_rows(policy: Policy, source: str, beams: int) -> list[int]:
    """The token ids that transformers' beam search finds, up to the closing token."""
    end = policy.tokenizer.eos_token_id
    ids = policy.tokenizer([source + ("\n" if isinstance(policy, CausalPolicy) else "")])
    prompt = torch.tensor(ids["input_ids"])
    with torch.no_grad():
        found = policy.model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            num_beams=beams,
            max_new_tokens=LONGEST,
            do_sample=False,
            eos_token_id=end,
            pad_token_id=end,
        )
    skipped = prompt.shape[1] if isinstance(policy, CausalPolicy) else 1
    row: list[int] = found[0, skipped:].tolist()
    return row[: row.index(end) + 1] if end in row else row


def found_rows(policy: Policy, sources: list[str], beams: int) -> list[list[int]]:
    with torch.no_grad():
        inputs = policy.encode(sources, 64)
        ids, mask = search_beams(policy, inputs, longest=LONGEST, beams=beams)
    return [row[keep].tolist() for row, keep in zip(ids, mask, strict=True)]


@pytest.mark.parametrize(
    ("kind", "ending", "beams"),
    [
        ("llama", 2.5, 5),
        ("llama", 3.5, 5),
        ("llama", 3.0, 2),
        ("gpt2", 1.0, 5),
        ("gpt2", 1.5, 5),
        ("t5", 3.0, 5),
        ("t5", 4.0, 5),
    ],
)
def test_beam_search_finds_the_texts_of_transformers(
    kind: str, ending: float, beams: int, tmp_path: Path
) -> None:
    policy = policy_of(kind, tmp_path)
    make_endings_likelier(policy, ending)
    expected = [transformers_rows(policy, source, beams) for source in SOURCES]
    assert found_rows(policy, SOURCES, beams) == expected
    assert [found_rows(policy, [source], beams)[0] for source in SOURCES] == expected
    with torch.no_grad():
        ids, mask = generate_tokens(policy, policy.encode(SOURCES, 64), longest=LONGEST)
    greedy = [row[keep].tolist() for row, keep in zip(ids, mask, strict=True)]
    assert greedy != expected
    assert len(set(map(len, greedy + expected))) > 1


class Chain:
    """A policy of four tokens whose next one depends on the last one alone; 0 ends a text."""

    start_token = 1
    tokenizer = SimpleNamespace(eos_token_id=0)

    def __init__(self, seed: int) -> None:
        self.table = torch.randn((4, 4), generator=torch.Generator().manual_seed(seed))

    def next_logits(self, inputs: Any, tokens: Any, memory: Any, *, use_cache: bool) -> Any:
        return self.table[tokens], SimpleNamespace(batch_select_indices=lambda rows: None)


@pytest.mark.parametrize("seed", range(5))
def test_with_beams_for_all_texts_the_best_mean_log_probability_is_found(seed: int) -> None:
    chain: Any = Chain(seed)
    chances = chain.table.log_softmax(-1).tolist()

    def score(text: tuple[int, ...]) -> float:
        steps = zip((1, *text), text, strict=False)
        return float(sum(chances[before][token] for before, token in steps)) / len(text)

    texts = [(0,), *(text for n in (1, 2, 3) for text in endings(n)), *unended(4)]
    inputs = EncodedInputs(None, (), torch.ones((1, 1)))
    ids, mask = search_beams(chain, inputs, longest=4, beams=len(texts))
    found = tuple(ids[0][mask[0]].tolist())
    assert found in texts
    assert score(found) == pytest.approx(max(map(score, texts)))


def endings(count: int) -> list[tuple[int, ...]]:
    """All texts of so many tokens and the closing one."""
    return [(*text, 0) for text in itertools.product((1, 2, 3), repeat=count)]


def unended(count: int) -> list[tuple[int, ...]]:
    """All texts of so many tokens without a closing one."""
    return list(itertools.product((1, 2, 3), repeat=count))


def test_texts_are_written_with_beams_alike_in_any_batch(tmp_path: Path) -> None:
    model = save_tiny_llama(tmp_path)
    texts = em.generate(model, SOURCES, beams=3)
    assert texts == em.generate(model, SOURCES, beams=3, batch_size=1)
    assert texts != em.generate(model, SOURCES)
    assert em.generate(model, SOURCES, beams=1) == em.generate(model, SOURCES)
    with pytest.raises(InputError, match="beams must be at least 1, got 0"):
        em.generate(model, SOURCES, beams=0)
