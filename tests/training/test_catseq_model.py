from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evenmatch.errors import InputError
from evenmatch.training.keyphrases.catseq import CatSeq, CatSeqShape
from evenmatch.training.keyphrases.decoding import beam_search, decode_batch
from evenmatch.training.keyphrases.objectives import likelihood_loss, torch_generator
from evenmatch.training.keyphrases.sequences import (
    END_ID,
    PAD_ID,
    SPECIAL_TOKENS,
    START_ID,
    KeyphraseExample,
    Vocabulary,
    make_catseq_batch,
)
from evenmatch.training.keyphrases.token_hints import fit_token_hints

torch = pytest.importorskip("torch", reason="torch is not installed")

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "a", "b", "c"))
SMALL = CatSeqShape(embedding=6, hidden=5, attention=4, dropout=0.5)
EXAMPLES = (
    KeyphraseExample(("a", "x", "b"), (("x",),), (("c",),)),
    KeyphraseExample(("b", "y", "z", "c", "a"), (("y", "z"),), ()),
)


VARIANTS: dict[str, dict[str, Any]] = {
    "hints": {"hints": True},
    "history": {"history": True},
    "linear reader": {"recurrent": False},
    "title_guided": {"title_guided": True},
    "coverage": {"coverage": True},
    "review": {"review": True},
    "target_encoder": {"target_encoder": 3},
    "tied": {"tied": True},
    "salience": {"salience": 1.0},
}
ALL_VARIANTS = {name: value for each in VARIANTS.values() for name, value in each.items()}
VARIANTS["dot"] = {"dot": True}  # which goes with all but coverage
HINTS = fit_token_hints(EXAMPLES)


def sharp(seed: int, shape: CatSeqShape = SMALL) -> CatSeq:
    """A model whose weights are large, so that its choices are not all alike."""
    hints = HINTS if shape.hints else None
    model = CatSeq(shape, len(VOCABULARY), seed=seed, hints=hints)
    with torch.no_grad():
        for weights in model.parts.parameters():
            weights.mul_(3.0)
    return model


def chances(model: CatSeq, example: KeyphraseExample, tokens: list[int]) -> float:
    memory = model.encode(make_catseq_batch([example], VOCABULARY))
    return float(model.log_likelihood(memory, torch.tensor([tokens])).sum().detach())


@pytest.mark.parametrize("variant", [{}, *VARIANTS.values(), ALL_VARIANTS])
def test_step_by_step_and_all_at_once_give_the_same_probabilities(variant: dict[str, Any]) -> None:
    model = sharp(0, replace(SMALL, **variant))
    batch = make_catseq_batch(EXAMPLES, VOCABULARY)
    memory, targets = model.encode(batch), batch.targets
    wanted = model.log_likelihood(memory, targets).detach()
    state, tokens = memory.initial_state, torch.full((2,), START_ID)
    for at in range(targets.shape[1]):
        probabilities, _, state = model.step(memory, state, tokens)
        tokens = targets[:, at]
        found = probabilities.gather(1, tokens[:, None])[:, 0].log().detach()
        real = tokens != PAD_ID
        assert torch.allclose(found[real], wanted[real, at], atol=1e-5)


def test_probabilities_add_up_to_one_and_no_mark_that_is_no_word_has_any() -> None:
    model = sharp(1)
    memory = model.encode(make_catseq_batch(EXAMPLES, VOCABULARY))
    probabilities, weights, _ = model.step(memory, memory.initial_state, torch.full((2,), START_ID))
    assert torch.allclose(probabilities.sum(-1), torch.ones(2))
    assert torch.allclose(weights.sum(-1), torch.ones(2))
    assert not probabilities[:, [PAD_ID, START_ID]].any()


def test_a_strange_word_gets_the_attention_of_its_places_and_nothing_else() -> None:
    model = sharp(2)
    memory = model.encode(make_catseq_batch([KeyphraseExample(("x", "a", "x", "y"))], VOCABULARY))
    found = model.step(memory, memory.initial_state, torch.tensor([START_ID]))
    probabilities, weights = found[0][0].detach(), found[1][0].detach()
    x, y = probabilities[len(VOCABULARY) :].tolist()
    assert x / y == pytest.approx(float((weights[0] + weights[2]) / weights[3]), rel=1e-5)


@pytest.mark.parametrize("variant", [{}, ALL_VARIANTS])
def test_a_document_does_not_depend_on_those_beside_it(variant: dict[str, Any]) -> None:
    model = sharp(3, replace(SMALL, **variant))
    alone = [
        decode_batch(model, make_catseq_batch([each], VOCABULARY)).words[0] for each in EXAMPLES
    ]
    assert list(decode_batch(model, make_catseq_batch(EXAMPLES, VOCABULARY)).words) == alone


def test_a_seed_settles_weights_and_dropped_values() -> None:
    def loss(seed: int, drop: int) -> float:
        model = CatSeq(SMALL, len(VOCABULARY), seed=seed)
        batch = make_catseq_batch(EXAMPLES, VOCABULARY)
        return float(
            likelihood_loss(model, batch, dropout_generator=torch_generator(drop)).detach()
        )

    assert loss(1, 1) == loss(1, 1)
    assert len({loss(1, 1), loss(2, 1), loss(1, 2)}) == 3


def test_drawn_words_come_as_often_as_they_are_probable() -> None:
    model = sharp(4)
    batch = make_catseq_batch([EXAMPLES[0]] * 4000, VOCABULARY)
    memory = model.encode(make_catseq_batch([EXAMPLES[0]], VOCABULARY))
    wanted = (
        model.step(memory, memory.initial_state, torch.tensor([START_ID]))[0][0].detach().numpy()
    )
    written = decode_batch(model, batch, generator=torch_generator(0), longest=1)
    found = np.bincount(written.tokens[:, 0], minlength=len(wanted)) / 4000
    assert abs(found - wanted).max() < 0.03


def every_text(
    model: CatSeq, example: KeyphraseExample, longest: int
) -> dict[tuple[int, ...], float]:
    """The log-probability of everything that ends within so many steps."""
    words = range(3, len(VOCABULARY) + len(VOCABULARY.unknown_words(example.words)))
    bodies = (
        (*body, END_ID)
        for length in range(longest)
        for body in itertools.product([w for w in words if w != END_ID], repeat=length)
    )
    return {body: chances(model, example, list(body)) for body in bodies}


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_search_finds_the_likeliest_of_everything(seed: int) -> None:
    model, example = sharp(seed), EXAMPLES[0]
    model.parts["word"].bias.data[END_ID] += 3.0  # so that short texts are likely
    every = every_text(model, example, 3)
    best = max(every, key=every.__getitem__)
    batch = make_catseq_batch([example], VOCABULARY)
    found = beam_search(model, batch, width=400, longest=3, length_power=0.0)
    # An unknown word is shown by the one that was looked at, so texts are compared by length too.
    known = [VOCABULARY.word(n, VOCABULARY.unknown_words(example.words)) for n in best]
    shown = [w for w, k in zip(found, known, strict=True) if k != "<unk>"]
    assert shown == [k for k in known if k != "<unk>"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_variant_changes_what_is_probable(variant: str) -> None:
    example = KeyphraseExample(("a", "a", ".", "b"), (("a",),), (("b",),))
    batch = make_catseq_batch([example], VOCABULARY)
    plain = sharp(5)
    changed = sharp(5, replace(SMALL, **VARIANTS[variant]))
    own = changed.parts.state_dict()
    weights = plain.parts.state_dict().items()  # the same where both have them
    changed.parts.load_state_dict(
        own | {k: v for k, v in weights if k in own and own[k].shape == v.shape}
    )
    losses = [float(likelihood_loss(model, batch).detach()) for model in (plain, changed)]
    assert losses[0] != pytest.approx(losses[1], abs=1e-6)


def test_attention_turns_from_what_it_has_attended_to_if_coverage_says_so() -> None:
    model = sharp(6, replace(SMALL, coverage=True))
    batch = make_catseq_batch([KeyphraseExample(("a", "b", "c"))], VOCABULARY)
    memory = model.encode(batch)
    attended = torch.tensor([[5.0, 0.0, 0.0, 0.0]])
    with torch.no_grad():
        model.parts["likeness"].weight.fill_(1.0)
        model.parts["covered"].weight.fill_(-1.0)
        fresh = model.step(memory, memory.initial_state, torch.tensor([START_ID]))
        after = model.step(
            memory, replace(memory.initial_state, attended=attended), torch.tensor([START_ID])
        )
    assert after[1][0, 0] < fresh[1][0, 0]
    assert torch.allclose(after[2].attended, attended + after[1])


@pytest.mark.parametrize("seed", range(4))
def test_a_search_with_one_beginning_writes_what_writing_writes(seed: int) -> None:
    model = sharp(seed, replace(SMALL, **(ALL_VARIANTS if seed % 2 else {})))
    for example in EXAMPLES:
        batch = make_catseq_batch([example], VOCABULARY)
        written = decode_batch(model, batch, longest=8).words[0]
        assert beam_search(model, batch, width=1, longest=8) == written


def test_an_unknown_word_is_replaced_by_the_one_looked_at_most() -> None:
    model = CatSeq(SMALL, len(VOCABULARY))
    model.parts["word"].bias.data[3] = 50.0
    model.parts["own"].bias.data[:] = 50.0
    example = KeyphraseExample(("q", "q"))
    written = decode_batch(model, make_catseq_batch([example], VOCABULARY), longest=2)
    assert written.words == (("q", "q"),)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hidden": 0}, "hidden must be at least 1, got 0"),
        ({"hidden": 1.5}, "hidden takes a whole number, got 1.5"),
        ({"dropout": 1.0}, "at least 0 and below 1"),
        ({"orthogonality": -1.0}, "orthogonality must be at least 0, got -1.0"),
        ({"semantic_coverage": 1.0}, "semantic_coverage needs a target_encoder"),
        ({"coverage": True, "dot": True}, "coverage needs additive attention; leave out dot"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        CatSeqShape(**settings)


def test_a_word_that_can_neither_be_written_nor_copied_is_hardly_possible() -> None:
    model = sharp(0)
    assert chances(model, KeyphraseExample(("a",)), [len(VOCABULARY)]) == pytest.approx(
        math.log(1e-8)
    )
