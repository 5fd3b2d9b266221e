from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.training.generator.decoding import (
    decode_texts,
    generate,
    generate_texts,
    generate_tokens,
    sample_tokens,
)
from evenmatch.training.generator.loss import (
    TuneBatch,
    log_likelihood,
    mixed_loss,
    policy_reward,
    reference_cross_entropy,
)
from evenmatch.training.generator.policy import (
    CausalPolicy,
    EncodedInputs,
    Policy,
    Seq2SeqPolicy,
    choose_trainable,
    load_policy,
    make_policy,
)
from evenmatch.training.generator.tune_settings import DecodingSettings
from tests.support.small_models import save_causal
from tests.support.tuning import SMALL, save_tiny_llama

torch = pytest.importorskip("torch", reason="torch is not installed")

TEXTS = ["Aarhus is near Bergen.", "Cork is near Dover and Essen."]
BATCH = TuneBatch(("x", "a longer y"), (TEXTS[0], TEXTS[1]), ((TEXTS[0],), (TEXTS[1], TEXTS[0])))
LONGEST = (32, 12)
REWARD = "align(vectors=hashed, alignment=lsa)"


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
        return SimpleNamespace(
            logits=self.table[decoder_input_ids],
            past_key_values=SimpleNamespace(batch_select_indices=lambda rows: None),
        )

    def eval(self) -> None:
        self.training = False

    def train(self, mode: bool) -> None:
        self.training = mode


@pytest.fixture(scope="module")
def policy() -> Seq2SeqPolicy:
    return make_policy(dataclasses.replace(SMALL, dropout=0.0), TEXTS * 9, seed=1)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture
def causal(llama: str) -> CausalPolicy:
    found = load_policy(llama)
    assert isinstance(found, CausalPolicy)
    return found


def by_hand(table: Any, ids: list[int], weight: float) -> Any:
    """The gradient of weight × log-probability: one-hot less softmax, row by row."""
    gradient = np.zeros_like(table)
    for before, piece in zip([0, *ids[:-1]], ids, strict=True):
        chances = np.exp(table[before]) / np.exp(table[before]).sum()
        gradient[before] -= weight * chances
        gradient[before, piece] += weight
    return gradient


def sampled_rows(toy: Policy, seed: int, **settings: Any) -> list[list[int]]:
    inputs = EncodedInputs(torch.zeros((2, 3, 1)), (), torch.ones((2, 3)))
    generator = torch.Generator().manual_seed(seed)
    ids, mask = generate_tokens(toy, inputs, generator=generator, longest=LONGEST[1], **settings)
    return [row[keep].tolist() for row, keep in zip(ids, mask, strict=True)]


@pytest.mark.parametrize(
    ("samples", "baseline"), [(1, "greedy"), (3, "greedy"), (3, "leave_one_out")]
)
def test_the_gradient_of_the_mixed_loss_is_the_one_computed_by_hand(
    policy: Seq2SeqPolicy, samples: int, baseline: str
) -> None:
    model = Bigrams(len(policy.tokenizer))
    toy = Seq2SeqPolicy(model, policy.tokenizer)
    reward = em.reward(REWARD) + em.reward("chrf")
    loss, told = mixed_loss(
        toy, BATCH, rl_weight=0.3, reward=reward, longest=LONGEST, samples=samples,
        baseline=baseline, generator=torch.Generator().manual_seed(7),
    )  # fmt: skip
    loss.backward()
    rows = sampled_rows(toy, 7, samples=samples)  # the last two are greedy
    texts = [policy.tokenizer.decode(row, skip_special_tokens=True).strip() for row in rows]
    references = BATCH.references * (samples + 1)
    values = reward([em.Pair(t, r) for t, r in zip(texts, references, strict=True)])
    table = model.table.detach().numpy()
    expected = np.zeros_like(table)
    for i in range(2):
        gold = policy.tokenizer(BATCH.targets[i])["input_ids"][: LONGEST[1]]
        expected += by_hand(table, gold, -0.7 / 2)
        own = values[i : 2 * samples : 2]
        for k in range(samples):
            others = (sum(own) - own[k]) / max(samples - 1, 1)
            base = values[2 * samples + i] if baseline == "greedy" else others
            expected += by_hand(table, rows[2 * k + i], 0.3 * (base - own[k]) / (2 * samples))
    assert values[:2] != values[-2:]  # otherwise the reward would not be tested
    np.testing.assert_allclose(model.table.grad.numpy(), expected, rtol=1e-4, atol=1e-7)
    assert told.reward == pytest.approx(sum(values[:-2]) / (2 * samples))


def test_inputs_are_encoded_once_for_all_three_uses(policy: Seq2SeqPolicy) -> None:
    model = Bigrams(len(policy.tokenizer))
    mixed_loss(
        Seq2SeqPolicy(model, policy.tokenizer), BATCH, rl_weight=0.5, reward=em.reward("chrf"),
        generator=torch.Generator().manual_seed(1), longest=LONGEST,
    )  # fmt: skip
    assert model.encoded == 1


def plain_likelihood(policy: CausalPolicy, source: str, ids: list[int]) -> Any:
    """The log-probability of one text by a plain forward pass: no cache, padding or batch."""
    prompt = policy.tokenizer(source + "\n")["input_ids"]
    logits = policy.model(input_ids=torch.tensor([prompt + ids]), use_cache=False).logits[0]
    chances = logits.log_softmax(-1)
    return sum(chances[len(prompt) - 1 + place, token] for place, token in enumerate(ids))


def test_the_causal_mixed_loss_is_the_one_of_plain_forward_passes(causal: CausalPolicy) -> None:
    reward = em.reward(REWARD)
    loss, told = mixed_loss(
        causal, BATCH, rl_weight=0.3, reward=reward, longest=LONGEST,
        generator=torch.Generator().manual_seed(7),
    )  # fmt: skip
    loss.backward()
    gradient = [each.grad.clone() for each in causal.model.parameters()]
    inputs = causal.encode(BATCH.sources, LONGEST[0])
    ids, mask = generate_tokens(
        causal, inputs, longest=LONGEST[1], samples=1, generator=torch.Generator().manual_seed(7)
    )
    texts = decode_texts(causal, ids, mask)
    values = reward([em.Pair(t, r) for t, r in zip(texts, BATCH.references * 2, strict=True)])
    expected: Any = 0.0
    for i, source in enumerate(BATCH.sources):
        gold = causal.tokenizer(BATCH.targets[i])["input_ids"][: LONGEST[1] - 1]
        gold = [*gold, causal.tokenizer.eos_token_id]
        sampled = plain_likelihood(causal, source, ids[i][mask[i]].tolist())
        expected += 0.7 / 2 * -plain_likelihood(causal, source, gold)
        expected += 0.3 / 2 * (values[2 + i] - values[i]) * sampled
    causal.model.zero_grad()
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for found, each in zip(gradient, causal.model.parameters(), strict=True):
        torch.testing.assert_close(found, each.grad, rtol=1e-3, atol=1e-4)
    assert told.reward == pytest.approx(sum(values[:2]) / 2)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_cached_prompt_and_its_padding_do_not_change_greedy_texts(
    causal: CausalPolicy, kind: str, tmp_path: Path
) -> None:
    found = causal if kind == "llama" else load_policy(str(save_causal(tmp_path / "gpt2")))
    assert isinstance(found, CausalPolicy)
    found.model.eval()
    sources = ["a", "Cork and Dover", "Essen near Faro near Cork"]
    texts = generate_texts(found, sources, longest=(32, 10), batch_size=3)
    for source, text in zip(sources, texts, strict=True):
        prompt = ids = found.tokenizer(source + "\n")["input_ids"]
        while len(ids) < len(prompt) + 10 and (
            ids == prompt or ids[-1] != found.tokenizer.eos_token_id
        ):
            logits = found.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
            ids = [*ids, int(logits.argmax())]
        plain = found.tokenizer.decode(ids[len(prompt) :], skip_special_tokens=True)
        assert text == plain.strip()


def test_a_text_does_not_depend_on_when_other_rows_finish(causal: CausalPolicy) -> None:
    def draw(sources: tuple[str, ...], seed: int) -> list[list[int]]:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            inputs = causal.encode(sources, 32)
            ids, mask = generate_tokens(
                causal, inputs, longest=40, samples=1, greedy=False, generator=generator
            )
        return [row[keep].tolist() for row, keep in zip(ids, mask, strict=True)]

    for seed in range(3):
        together = draw(("Cork", "Dover", "Essen"), seed)
        assert draw(("Cork",), seed)[0] == together[0]
    assert len({len(row) for row in together}) > 1


def test_the_precision_of_bfloat16_keeps_the_direction_of_the_gradient(llama: str) -> None:
    def gradient(bf16: bool) -> Any:
        found = load_policy(llama, DecodingSettings(bf16=bf16))
        loss, _ = mixed_loss(
            found, BATCH, rl_weight=0.3, reward=em.reward(REWARD), longest=LONGEST,
            generator=torch.Generator().manual_seed(7),
        )  # fmt: skip
        loss.backward()
        assert all(each.grad is not None for each in found.model.parameters())
        return torch.cat([each.grad.flatten() for each in found.model.parameters()])

    exact, rounded = gradient(False), gradient(True)
    assert not torch.equal(exact, rounded)
    # Cross-entropy dominates; without its or the prompt's gradient the cosine is far lower.
    assert torch.cosine_similarity(exact, rounded, dim=0) > 0.95


def test_cross_entropy_of_references_is_a_mean_over_tokens(causal: CausalPolicy) -> None:
    found = reference_cross_entropy(
        causal, BATCH.sources, BATCH.targets, longest=LONGEST, batch_size=1
    )
    inputs = causal.encode(BATCH.sources, LONGEST[0])
    ids, mask = causal.tokenize(BATCH.targets, LONGEST[1])
    total = log_likelihood(causal, inputs, ids, mask).sum().item()
    assert found == pytest.approx(-total / int(mask.sum()), rel=1e-5)


@pytest.mark.parametrize("name", ["f_disc", "f_cont", "bertscore", "chrf"])
@pytest.mark.parametrize("kind", ["causal", "policy"])
def test_the_baseline_is_the_reward_of_the_text_that_is_decoded(
    request: pytest.FixtureRequest, kind: str, name: str
) -> None:
    found = request.getfixturevalue(kind)
    reward = policy_reward(name, found, own_embeddings=True)
    _, told = mixed_loss(
        found, BATCH, rl_weight=0.3, reward=reward, longest=LONGEST,
        generator=torch.Generator().manual_seed(7),
    )  # fmt: skip
    texts = generate_texts(found, BATCH.sources, longest=LONGEST, batch_size=1)
    values = reward([em.Pair(t, r) for t, r in zip(texts, BATCH.references, strict=True)])
    assert told.baseline == pytest.approx(sum(values) / 2, abs=1e-6)


def test_padding_is_counted_over_inputs_and_targets(causal: CausalPolicy) -> None:
    _, told = mixed_loss(
        causal, BATCH, rl_weight=0.0, reward=em.reward("chrf"), longest=LONGEST,
        generator=torch.Generator(),
    )  # fmt: skip
    masks = [causal.encode(BATCH.sources, 32).mask, causal.tokenize(BATCH.targets, 12)[1]]
    zeros, every = (sum(f(m) for m in masks) for f in (lambda m: (m == 0).sum(), torch.numel))
    assert told.padding == pytest.approx(float(zeros / every))
    assert told.padding > 0


def test_texts_of_other_lengths_do_not_pad_a_sampled_one(policy: Seq2SeqPolicy) -> None:
    model = Bigrams(len(policy.tokenizer))
    with torch.no_grad():
        model.table[:, policy.tokenizer.eos_token_id] += 4.0
    toy = Seq2SeqPolicy(model, policy.tokenizer)
    _, told = mixed_loss(
        toy, BATCH, rl_weight=1.0, reward=em.reward("chrf"), longest=(32, 60), samples=8,
        generator=torch.Generator().manual_seed(1),
    )  # fmt: skip
    inputs = EncodedInputs(torch.zeros((2, 3, 1)), (), torch.ones((2, 3)))
    generator = torch.Generator().manual_seed(1)
    _, mask = generate_tokens(toy, inputs, longest=60, samples=8, generator=generator)
    assert mask.float().mean() < 0.6  # in one batch, much would be padding
    assert told.length == pytest.approx(float(mask[:16].sum(1).float().mean()))
    assert told.padding < 0.2


@pytest.mark.parametrize("flipped", [False, True])
def test_the_reward_rises_with_its_gradient_and_falls_against_it(
    policy: Seq2SeqPolicy, flipped: bool
) -> None:
    """Reward alone: the share of chosen words in the texts of a bigram model."""
    model = Bigrams(len(policy.tokenizer))
    toy = Seq2SeqPolicy(model, policy.tokenizer)
    optimizer = torch.optim.Adam([model.table], lr=0.3)
    reward = em.reward("chrf")
    rewards = []
    for number in range(30):
        loss, told = mixed_loss(
            toy, BATCH, rl_weight=1.0, reward=reward, longest=LONGEST, samples=8,
            baseline="leave_one_out", generator=torch.Generator().manual_seed(number),
        )  # fmt: skip
        optimizer.zero_grad()
        (-loss if flipped else loss).backward()
        optimizer.step()
        rewards.append(told.reward)
    early, late = np.mean(rewards[:5]), np.mean(rewards[-5:])
    assert late < early if flipped else late > 1.5 * early


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


def test_a_metric_without_pieces_is_refused_own_embeddings(policy: Seq2SeqPolicy) -> None:
    with pytest.raises(InputError, match="own_embeddings needs a metric on a model's tokens"):
        policy_reward("align(vectors=hashed)", policy, own_embeddings=True)
    with pytest.raises(InputError, match="with own_embeddings, idf needs a table"):
        policy_reward("f_disc(idf=True)", policy, own_embeddings=True)


def test_pieces_are_drawn_as_often_as_the_model_says() -> None:
    wanted = torch.tensor([0.5, 0.0, 0.2, 0.3, 0.0])
    rows = wanted.log().expand(20_000, -1)
    thresholds = torch.rand(20_000, generator=torch.Generator().manual_seed(1))
    shares = torch.bincount(sample_tokens(rows, thresholds), minlength=5) / len(rows)
    assert shares[wanted == 0].sum() == 0
    assert (shares - wanted).abs().max() < 0.015


def logits_of(policy: Policy) -> Any:
    with torch.no_grad():
        return policy.model(input_ids=torch.arange(6)[None], use_cache=False).logits


def test_adapters_that_are_off_leave_the_base_model(llama: str) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    base = logits_of(load_policy(llama))
    found = choose_trainable(load_policy(llama), last_blocks=0, lora_rank=2)
    trained = [each for each in found.model.parameters() if each.requires_grad]
    assert 0 < sum(each.numel() for each in trained) < 4000
    optimizer = torch.optim.Adam(trained, lr=0.1)
    for _ in range(2):
        loss, _ = mixed_loss(
            found, BATCH, rl_weight=0.3, reward=em.reward("chrf"), longest=LONGEST,
            generator=torch.Generator().manual_seed(1),
        )  # fmt: skip
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert not torch.equal(logits_of(found), base)
    with found.model.disable_adapter():
        assert torch.equal(logits_of(found), base)


def test_only_the_last_blocks_are_trained(llama: str) -> None:
    found = choose_trainable(load_policy(llama), last_blocks=1, lora_rank=0)
    names = [name for name, each in found.model.named_parameters() if each.requires_grad]
    assert names
    assert all(name.startswith("model.layers.1.") for name in names)
    with pytest.raises(InputError, match="last_blocks is 3, but the model has 2 blocks"):
        choose_trainable(load_policy(llama), last_blocks=3, lora_rank=0)


def test_a_separator_without_tokens_is_refused(llama: str) -> None:
    with pytest.raises(InputError, match="separator '' has no tokens; give a longer one"):
        load_policy(llama, DecodingSettings(separator=""))


def test_an_input_beyond_the_positions_of_a_causal_model_is_refused(tmp_path: Path) -> None:
    model = str(save_causal(tmp_path / "gpt2"))
    with pytest.raises(InputError, match="tokens, but the model reads at most 96; shorten"):
        generate(model, ["Cork and Dover " * 40])
    policy = load_policy(model)
    inputs = policy.encode(["Cork"], 512)
    fitting = 96 - inputs.mask.shape[1]
    policy.next_logits(inputs, torch.zeros((1, fitting), dtype=torch.long), None, use_cache=False)
    beyond = torch.zeros((1, fitting + 1), dtype=torch.long)
    with pytest.raises(InputError, match="an input and its text have 97 tokens, but the model"):
        policy.next_logits(inputs, beyond, None, use_cache=False)
