from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.training.generator.loss import TuneBatch, mixed_loss, policy_reward
from evenmatch.training.generator.policy import (
    Policy,
    _sample_tokens,
    generate_texts,
    generate_tokens,
    make_policy,
)
from tests.support.tuning import SMALL

torch = pytest.importorskip("torch", reason="torch is not installed")

TEXTS = ["Aarhus is near Bergen.", "Cork is near Dover and Essen."]
BATCH = TuneBatch(("x", "a longer y"), (TEXTS[0], TEXTS[1]), ((TEXTS[0],), (TEXTS[1], TEXTS[0])))
LONGEST = (32, 12)


class Bigrams:
    """A decoder that looks at one piece alone: its logits are a row of a table."""

    def __init__(self, size: int) -> None:
        draw = torch.Generator().manual_seed(3)
        self.table = torch.randn((size, size), generator=draw, dtype=torch.float64)
        self.table.requires_grad_()
        self.config = SimpleNamespace(decoder_start_token_id=0)
        self.training, self.encoded = True, 0

    def get_encoder(self) -> Any:
        return self.encode

    def encode(self, *, input_ids: Any, attention_mask: Any) -> Any:
        self.encoded += 1
        return SimpleNamespace(last_hidden_state=torch.zeros((*input_ids.shape, 1)))

    def __call__(self, *, decoder_input_ids: Any, **others: Any) -> Any:
        return SimpleNamespace(logits=self.table[decoder_input_ids], past_key_values=None)

    def eval(self) -> None:
        self.training = False

    def train(self, mode: bool) -> None:
        self.training = mode


@pytest.fixture(scope="module")
def policy() -> Policy:
    return make_policy(dataclasses.replace(SMALL, dropout=0.0), TEXTS * 9, seed=1)


def by_hand(table: Any, ids: list[int], weight: float) -> Any:
    """The gradient of weight × log-probability: one-hot less softmax, row by row."""
    gradient = np.zeros_like(table)
    for before, piece in zip([0, *ids[:-1]], ids, strict=True):
        chances = np.exp(table[before]) / np.exp(table[before]).sum()
        gradient[before] -= weight * chances
        gradient[before, piece] += weight
    return gradient


def test_the_gradient_of_the_mixed_loss_is_the_one_computed_by_hand(policy: Policy) -> None:
    model = Bigrams(len(policy.tokenizer))
    toy = Policy(model, policy.tokenizer)
    reward = em.reward("align(vectors=hashed, alignment=lsa)") + em.reward("chrf")
    loss, told = mixed_loss(
        toy, BATCH, rl_weight=0.3, reward=reward, longest=LONGEST,
        generator=torch.Generator().manual_seed(7),
    )  # fmt: skip
    loss.backward()
    states, mask = torch.zeros((2, 3, 1)), torch.ones((2, 3))
    ids, kept = generate_tokens(
        toy, states, mask, generator=torch.Generator().manual_seed(7), longest=LONGEST[1]
    )
    rows = [row[keep].tolist() for row, keep in zip(ids, kept, strict=True)]
    texts = [policy.tokenizer.decode(row, skip_special_tokens=True).strip() for row in rows]
    values = reward([em.Pair(t, r) for t, r in zip(texts, BATCH.references * 2, strict=True)])
    table = model.table.detach().numpy()
    expected = np.zeros_like(table)
    for i in range(2):
        gold = policy.tokenizer(BATCH.targets[i])["input_ids"][: LONGEST[1]]
        expected += by_hand(table, gold, -0.7 / 2)
        expected += by_hand(table, rows[i], 0.3 * (values[2 + i] - values[i]) / 2)
    assert values[:2] != values[2:]  # otherwise the reward would not be tested
    np.testing.assert_allclose(model.table.grad.numpy(), expected, rtol=1e-5, atol=1e-7)
    assert told.reward == pytest.approx(sum(values[:2]) / 2)


def test_inputs_are_encoded_once_for_all_three_uses(policy: Policy) -> None:
    model = Bigrams(len(policy.tokenizer))
    mixed_loss(
        Policy(model, policy.tokenizer), BATCH, rl_weight=0.5, reward=em.reward("chrf"),
        generator=torch.Generator().manual_seed(1), longest=LONGEST,
    )  # fmt: skip
    assert model.encoded == 1


@pytest.mark.parametrize("name", ["f_disc", "f_cont", "bertscore", "chrf"])
def test_the_baseline_is_the_reward_of_the_text_that_is_decoded(policy: Policy, name: str) -> None:
    reward = policy_reward(name, policy, own_embeddings=True)
    _, told = mixed_loss(
        policy, BATCH, rl_weight=0.3, reward=reward, longest=LONGEST,
        generator=torch.Generator().manual_seed(7),
    )  # fmt: skip
    texts = generate_texts(policy, BATCH.sources, longest=LONGEST, batch_size=1)
    values = reward([em.Pair(t, r) for t, r in zip(texts, BATCH.references, strict=True)])
    assert told.baseline == pytest.approx(sum(values) / 2, abs=1e-6)


def test_the_reward_looks_words_up_in_the_current_weights() -> None:
    policy = make_policy(SMALL, TEXTS * 9, seed=1)
    reward = policy_reward("f_disc", policy, own_embeddings=True)
    pair = em.Pair(TEXTS[0], (TEXTS[1],))
    for _ in range(2):
        table = policy.model.get_input_embeddings().weight.detach().numpy()
        x, y = (table[policy.tokenizer(text)["input_ids"][:-1]] for text in (TEXTS[0], TEXTS[1]))
        unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y)]
        similar = unit[0] @ unit[1].T
        total = similar[linear_sum_assignment(-similar)].sum()
        assert reward([pair])[0] == pytest.approx(2 * total / (len(x) + len(y)), abs=1e-6)
        with torch.no_grad():
            policy.model.get_input_embeddings().weight.normal_()


def test_a_metric_without_pieces_is_refused_own_embeddings(policy: Policy) -> None:
    with pytest.raises(InputError, match="own_embeddings needs a metric on a model's tokens"):
        policy_reward("align(vectors=hashed)", policy, own_embeddings=True)
    with pytest.raises(InputError, match="with own_embeddings, idf needs a table"):
        policy_reward("f_disc(idf=True)", policy, own_embeddings=True)


def test_pieces_are_drawn_as_often_as_the_model_says() -> None:
    wanted = torch.tensor([0.5, 0.0, 0.2, 0.3, 0.0])
    rows = wanted.log().expand(20_000, -1)
    found = _sample_tokens(rows, torch.Generator().manual_seed(1)).flatten()
    shares = torch.bincount(found, minlength=5) / len(found)
    assert shares[wanted == 0].sum() == 0
    assert (shares - wanted).abs().max() < 0.015
