"""Losses on scores, states and probabilities that are given here, against values by hand.

Each test fails if a term of its loss is left out.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evenmatch.fairness import adapter_training, training_data
from evenmatch.fairness.adapter_training import DebiasSettings, _sample, train_adapter
from evenmatch.fairness.counterfactuals import Counterfactual
from evenmatch.fairness.differentiable import Differentiable
from evenmatch.fairness.training_data import (
    Contrast,
    DebiasData,
    _described_people,
    _interleave,
    _opposite_stereotypes,
    _pronoun_contrasts,
    build_debias_data,
    pronoun_contrasts,
)
from evenmatch.training.generator import loss as generator_loss
from evenmatch.training.generator.loss import TuneBatch, mixed_loss, reference_cross_entropy
from evenmatch.training.keyphrases import objectives
from evenmatch.training.keyphrases.catseq import (
    CatSeq,
    CatSeqShape,
    orthogonality_loss,
    salience_loss,
    semantic_coverage_loss,
)
from evenmatch.training.keyphrases.decoding import DecodedPhrases, KeyphraseGenerator
from evenmatch.training.keyphrases.objectives import (
    likelihood_loss,
    likelihood_objective,
    reward_objective,
    torch_generator,
    training_loss,
)
from evenmatch.training.keyphrases.sequences import (
    END_ID,
    NEXT_ID,
    PAD_ID,
    SPECIAL_TOKENS,
    SPLIT_ID,
    START_ID,
    KeyphraseExample,
    Vocabulary,
    make_catseq_batch,
)
from evenmatch.training.metrics.distil import _similarity_loss
from evenmatch.training.metrics.projection import ranking_loss
from evenmatch.types import Pair, Score, Scores

torch = pytest.importorskip("torch", reason="torch is not installed")

# Scores with the adapter and without. A wrong gender costs 0.05 beside a man and 0.3 beside a woman
# with the adapter, 0.75 and 0.2 without; the groups differ by 0.2 beside one trait and by -0.4
# beside the opposite one.
ADAPTED = {("he", "it"): 0.8, ("she", "it"): 0.5, ("a", "b"): 0.6}
ADAPTED |= {("he", "the man"): 0.95, ("she", "the man"): 0.9}
ADAPTED |= {
    ("he 1", "it 1"): 0.7,
    ("she 1", "it 1"): 0.5,
    ("he 2", "it 2"): 0.2,
    ("she 2", "it 2"): 0.6,
}
ADAPTED |= {("she", "the woman"): 0.8, ("he", "the woman"): 0.5}
PLAIN = {("a", "b"): 0.4, ("he", "the man"): 0.95, ("she", "the man"): 0.2}
PLAIN |= {("she", "the woman"): 0.6, ("he", "the woman"): 0.4}
DATA = DebiasData(
    (Counterfactual("he", "she", "it"),),
    (("a", "b"),),
    ((Contrast("he", "she", "the man"), Contrast("she", "he", "the woman")),),
    ((Counterfactual("he 1", "she 1", "it 1"), Counterfactual("he 2", "she 2", "it 2")),),
)
EQUAL, KEPT, PENALTY, STEREOTYPE = 0.3, 0.2, (0.7 - 0.1) / 2, 0.6


def debias_loss(monkeypatch: pytest.MonkeyPatch, **settings: float) -> float:
    """The loss of the first step."""
    steps: list[Any] = []
    monkeypatch.setattr(
        adapter_training, "run_training_loop", lambda _, step, **others: steps.append(step)
    )

    def scores(pairs: Any, adapter: Any) -> Any:
        return torch.tensor([(ADAPTED if adapter else PLAIN)[pair] for pair in pairs])

    how = DebiasSettings(factor=1, **settings)  # type: ignore[arg-type]  # weights by name
    train_adapter(Differentiable(4, 1, "", scores), DATA, how)
    loss, recorded = steps[0](0)
    assert recorded == pytest.approx(float(loss))
    return float(recorded)


@pytest.mark.parametrize(
    ("anchor", "contrast", "stereotype", "expected"),
    [
        (0.0, 0.0, 0.0, EQUAL),
        (1.0, 0.0, 0.0, EQUAL + KEPT),
        (0.0, 1.0, 0.0, EQUAL + PENALTY),
        (0.0, 0.0, 1.0, EQUAL + STEREOTYPE),
        (2.0, 0.5, 3.0, EQUAL + 2 * KEPT + 0.5 * PENALTY + 3 * STEREOTYPE),
    ],
)
def test_debiasing_adds_scores_and_penalties_to_keep_and_opposite_stereotypes(
    monkeypatch: pytest.MonkeyPatch,
    anchor: float,
    contrast: float,
    stereotype: float,
    expected: float,
) -> None:
    found = debias_loss(
        monkeypatch,
        anchor_weight=anchor,
        contrast_weight=contrast,
        stereotype_weight=stereotype,
    )
    assert found == pytest.approx(expected)


def test_by_default_all_four_terms_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert debias_loss(monkeypatch) == pytest.approx(EQUAL + KEPT + PENALTY + STEREOTYPE)


def test_each_kind_of_example_is_drawn_by_its_own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []
    monkeypatch.setattr(
        adapter_training, "run_training_loop", lambda _, step, **others: steps.append(step)
    )
    read: list[Any] = []

    def scores(pairs: Any, adapter: Any) -> Any:
        read.append(pairs)
        return torch.ones(len(pairs), requires_grad=True)

    data = DebiasData(
        tuple(Counterfactual(f"he {i}", f"she {i}", f"it {i}") for i in range(99)),
        tuple((f"a {i}", f"b {i}") for i in range(99)),
        (),
    )
    train_adapter(Differentiable(4, 1, "", scores), data, DebiasSettings(factor=1, batch=3))
    steps[0](5)
    twins, anchors = (
        np.random.default_rng((0, 5, kind)).integers(99, size=size)
        for kind, size in enumerate((3, 2))
    )
    expected = [*((f"he {i}", f"it {i}") for i in twins), *((f"she {i}", f"it {i}") for i in twins)]
    assert read[0] == [*expected, *((f"a {i}", f"b {i}") for i in anchors)]


def test_examples_depend_on_seed_step_and_kind() -> None:
    items, settings = range(1000), DebiasSettings(batch=6)
    drawn = np.random.default_rng((0, 5, 1)).integers(1000, size=3).tolist()
    assert _sample(items, settings, 5, 1) == drawn
    assert _sample([], settings, 0, 0) == []
    assert len(_sample(items, settings, 5, 2)) == len(_sample(items, settings, 5, 3)) == 2
    other = DebiasSettings(batch=6, seed=1)
    assert _sample(items, other, 5, 1) != drawn != _sample(items, settings, 5, 0)


@pytest.mark.parametrize(("kind", "word"), [("noun", "the aunt"), ("name", "Ann")])
def test_pronouns_contrast_beside_a_noun_or_a_name(
    monkeypatch: pytest.MonkeyPatch, kind: str, word: str
) -> None:
    vocabulary = {
        "nouns": [{"terms": [["uncle", "aunt", "person"]]}],
        "names": [{"terms": [["Tom", "Ann", "someone"]]}],
        "pronouns": [["{noun} saw that {he} won.", "{noun} saw that {noun} won."]],
    }
    monkeypatch.setattr(training_data, "held_out", lambda: vocabulary)
    first, second = pronoun_contrasts(kind)
    capital = word[0].upper() + word[1:]
    assert second.right == f"{capital} saw that she won."
    assert second.wrong == f"{capital} saw that he won."
    assert second.reference == f"{capital} saw that {word} won."
    assert first.right.endswith(" he won.")


FAMILIES: list[dict[str, Any]] = [
    {
        "terms": [["he", "she", "the {trait}"]],
        "frames": ["The {trait} said {group} won."],
        "one": ["brave"],
        "other": ["shy"],
    },
    {"terms": [["he", "she", "they"]], "frames": [], "one": ["never"], "other": []},
    {"terms": [["men", "women", "people"]], "plural": 1, "frames": [], "one": ["x"], "other": []},
    {"terms": [["uncle", "aunt", "person"]], "frames": [], "one": ["wept"], "other": ["sang"]},
    {"terms": [["Tom", "Ann", "someone"]], "frames": [], "one": ["ran"], "other": []},
]


@pytest.mark.parametrize(
    ("by_name", "words"), [(False, ("The uncle", "the aunt")), (True, ("Tom", "Ann"))]
)
def test_pronouns_are_trained_beside_nouns_or_names(by_name: bool, words: tuple[str, str]) -> None:
    spoken, *lone = _pronoun_contrasts(FAMILIES, by_name)
    one, other = words[0], words[1][0].upper() + words[1][1:]
    lower = one if by_name else "the uncle"
    assert spoken == (
        Contrast(f"{one} said he won.", f"{one} said she won.", f"{one} said {lower} won."),
        Contrast(
            f"{other} said she won.", f"{other} said he won.", f"{other} said {words[1]} won."
        ),
    )
    assert lone == [
        (
            Contrast(f"He {deed}.", f"She {deed}.", f"{one} {deed}."),
            Contrast(f"She {deed}.", f"He {deed}.", f"{other} {deed}."),
        )
        for deed in "wept sang ran wept sang ran wept sang".split()
    ]


def test_generated_contrasts_are_beside_nouns_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_data, "training_families", lambda attribute: FAMILIES)
    data = build_debias_data([Pair("He sat.", ("It rained.",))])
    found = {contrast.reference for both in data.contrasts for contrast in both}
    assert {"The aunt wept.", "Ann wept.", "He sat.", "The brave said he won."} <= found
    assert Counterfactual("He sat.", "She sat.", "The person sat.") in data.counterfactuals
    brave = Counterfactual(
        "The brave said he won.", "The brave said she won.", "The brave said the brave won."
    )
    assert any(one == brave for one, _ in data.stereotypes)


def test_opposite_stereotypes_have_traits_of_either_group() -> None:
    family = {
        "one": ["a", "b"],
        "other": ["c", "d", "e"],
        "terms": [["Men", "Women", "People"]],
        "frames": ["{group} {trait}.", "{group} all {trait}."],
    }
    found = [
        (one.original.split()[-1], other.swapped.split()[-1])
        for one, other in _opposite_stereotypes(family)
    ]
    first = [("a.", "c."), ("b.", "d."), ("a.", "e.")]
    assert found == [*first, ("b.", "d."), ("a.", "e."), ("b.", "c.")]
    assert next(_opposite_stereotypes(family)) == (
        Counterfactual("Men a.", "Women a.", "People a."),
        Counterfactual("Men c.", "Women c.", "People c."),
    )
    assert not list(_opposite_stereotypes(family | {"other": []}))


def test_people_are_described_by_adjectives_of_two_groups() -> None:
    families = [{"terms": [["old", "young", ""], ["aged", "teenage", ""], ["he", "she", "it"]]}]
    texts = ["A man sat.", "The boy ran.", "It rained.", "People sang.", "A man sat."]
    assert _described_people(texts, families) == [
        Counterfactual("An old man sat.", "A young man sat.", "A man sat."),
        Counterfactual("The aged boy ran.", "The teenage boy ran.", "The boy ran."),
        Counterfactual("Aged people sang.", "Young people sang.", "People sang."),
    ]


def test_the_shorter_list_is_repeated() -> None:
    assert _interleave("abc", "x") == ["a", "x", "b", "x", "c", "x"]
    assert _interleave("a", "xyz") == ["a", "x", "a", "y", "a", "z"]
    assert _interleave("ab", "") == ["a", "b"]
    assert _interleave("", "xy") == ["x", "y"]
    assert _interleave("ab", "x", "pq") == ["a", "x", "p", "b", "x", "q"]
    assert _interleave() == []


def test_sentences_become_counterfactuals_anchors_and_contrasts() -> None:
    data = build_debias_data([Pair("He sat.", ("It rained.",))], templates=False)
    assert {(c.original, c.swapped) for c in data.counterfactuals} == {("He sat.", "She sat.")}
    assert data.anchors == (("He sat.", "It rained."),)
    mirrored = (
        Contrast("He sat.", "She sat.", "He sat."),
        Contrast("She sat.", "He sat.", "She sat."),
    )
    assert set(data.contrasts) == {mirrored}


def test_a_student_imitates_similarities_and_states() -> None:
    """Cosines 0.6 and 0.8 against 0.8 and 0.8; one of two states differs by (1, 1).

    The second reference token is padding and must not count.
    """
    x, y = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]), torch.tensor([[[3.0, 4.0], [7.0, 9.0]]])
    masks = torch.tensor([[True, True]]), torch.tensor([[True, False]])
    teacher_states = torch.tensor([[[0.0, 1.0], [0.0, 2.0]], [[3.0, 4.0], [0.0, 0.0]]])
    student: Any = SimpleNamespace(
        encoder=SimpleNamespace(height=1),
        encode_pairs=lambda examples, batch, layers: (({1: x}, masks[0]), ({1: y}, masks[1])),
        pad_states=lambda states, examples, batch: teacher_states,
    )
    examples: Any = None
    loss = _similarity_loss(student, [], examples, np.array([0]))
    similarity_loss, state_loss = (0.2**2 + 0) / 2, ((1 + 1) / 2 / 2 + 0) / 2
    assert float(loss) == pytest.approx(similarity_loss + 0.1 * state_loss)


VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "a", "b"))
A, B = len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 1


class Fixed:
    """A model whose log-probability of a word is minus its position, counted from 1."""

    shape = CatSeqShape()

    def encode(self, batch: Any, dropout_generator: Any = None) -> Any:
        return SimpleNamespace(select=lambda rows: None)

    def force_targets(self, memory: Any, targets: Any, dropout_generator: Any) -> Any:
        return dropout_generator

    def target_log_probabilities(self, memory: Any, targets: Any, outputs: Any) -> Any:
        return self.log_likelihood(memory, targets, outputs)

    def log_likelihood(self, memory: Any, targets: Any, dropout_generator: Any = None) -> Any:
        shift = 0.0 if dropout_generator is None else 100.0
        return -torch.arange(1.0, targets.shape[1] + 1).expand(targets.shape) - shift


SHORT = KeyphraseExample(("a",))  # <peos> <eos>
LONG = KeyphraseExample(("a",), (("a",),), (("b",),))  # a <peos> b <eos>


def test_the_likelihood_loss_is_the_mean_over_words_that_are_not_padding() -> None:
    batch = make_catseq_batch([SHORT, LONG], VOCABULARY)
    model: Any = Fixed()
    assert float(likelihood_loss(model, batch)) == pytest.approx((1 + 2 + 1 + 2 + 3 + 4) / 6)


def test_validation_counts_every_word_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objectives, "_LIKELIHOOD_BATCH", 1)
    model: Any = Fixed()
    objective = likelihood_objective(KeyphraseGenerator(model, VOCABULARY), [SHORT, LONG])
    assert objective.evaluate() == pytest.approx(-(1 + 2 + 1 + 2 + 3 + 4) / 6)
    loss, recorded = objective.loss([SHORT, LONG], torch_generator(0))
    assert float(loss) == recorded.value == pytest.approx(13 / 6 + 100)
    assert (recorded.entropy, recorded.length) == pytest.approx((13 / 6 + 100, 3))


class Table:
    """A metric that scores pairs of texts by a table."""

    higher_is_better, bounds, signature = True, (0.0, 1.0), "table"

    def __call__(self, pairs: list[Pair]) -> Scores:
        values = {("a", "a"): 0.5, ("", "b"): 0.1, ("b", "a"): 0.75, ("b", "b"): 0.6}
        segments = tuple(Score(values[p.candidate, p.references[0]]) for p in pairs)
        assert {pair.source for pair in pairs} == {"a"}
        return Scores(segments, "table")


def test_the_reward_loss_is_self_critical(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gains over the greedy output are 0.75 - 0.5 (present) and 0.6 - 0.1 (absent)."""
    greedy = DecodedPhrases(torch.tensor([[A, END_ID]]), (("a", "<eos>"),))
    sampled = DecodedPhrases(
        torch.tensor([[B, SPLIT_ID, B, END_ID, PAD_ID]]), (("b", "<peos>", "b", "<eos>"),)
    )

    def decode(_: Any, batch: Any, *, generator: Any = None, memory: Any = None) -> DecodedPhrases:
        assert batch.targets.shape == (1, 4)
        return greedy if generator is None else sampled

    monkeypatch.setattr(objectives, "decode_batch", decode)
    model: Any = Fixed()
    metric: Any = Table()
    objective = reward_objective(KeyphraseGenerator(model, VOCABULARY), [LONG], metric)
    loss, recorded = objective.loss([LONG], torch_generator(0))
    assert float(loss) == pytest.approx((0.75 * 1 + 0.75 * 2 + 0.5 * 3 + 0.5 * 4) / 4)
    assert recorded.value == pytest.approx(0.75 + 0.6)
    assert (recorded.entropy, recorded.length) == pytest.approx(((1 + 2 + 3 + 4) / 4, 4))
    assert objective.evaluate() == pytest.approx(0.5 + 0.1)


def test_inputs_and_targets_are_cut_at_limits_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a reward the loss is minus the mean log-likelihood of the targets."""
    cut: list[Any] = []
    mask = torch.ones(2, 3)

    def encode(texts: Any, longest: Any) -> Any:
        cut.append((texts, longest))
        return SimpleNamespace(mask=mask)

    def tokenize(texts: Any, longest: Any) -> Any:
        cut.append((texts, longest))
        return None, mask

    monkeypatch.setattr(generator_loss, "log_likelihood", lambda *_: torch.tensor([-2.0, -4.0]))
    policy: Any = SimpleNamespace(bf16=False, tokenize=tokenize, encode=encode)
    batch = TuneBatch(("s", "t"), ("u", "v"), ((), ()))
    nothing: Any = None
    loss, found = mixed_loss(
        policy, batch, rl_weight=0, reward=nothing, generator=nothing, longest=(7, 5)
    )
    assert cut == [(("s", "t"), 7), (("u", "v"), 5)]
    assert float(loss) == found.loss == found.cross_entropy == 3.0
    assert found.reward == found.baseline == 0.0


def test_cross_entropy_of_references_counts_each_token_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Texts of 1, 2, 3, 4 and 5 tokens with log-probabilities -10, -20, …, two at a time."""

    def tokenize(texts: list[str], longest: int) -> Any:
        assert longest == 5
        lengths = torch.tensor([len(text) for text in texts])
        return lengths, torch.arange(9) < lengths[:, None]

    monkeypatch.setattr(generator_loss, "log_likelihood", lambda *given: -10.0 * given[2])
    model = SimpleNamespace(training=True, eval=lambda: None, train=lambda mode: None)
    policy: Any = SimpleNamespace(
        bf16=False, model=model, tokenize=tokenize, encode=lambda texts, longest: None
    )
    texts = ["abc", "a", "abcde", "ab", "abcd"]
    found = reference_cross_entropy(policy, texts, texts, longest=(7, 5), batch_size=2)
    assert found == pytest.approx(10)
    lengths = [len(text) for text in texts]
    monkeypatch.setattr(generator_loss, "log_likelihood", lambda *given: -(given[2].double() ** 2))
    found = reference_cross_entropy(policy, texts, texts, longest=(7, 5), batch_size=2)
    assert found == pytest.approx(sum(n**2 for n in lengths) / sum(lengths))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def gru_step(weights: dict[str, Any], name: str, suffix: str, x: Any, h: Any) -> Any:
    """One step of a GRU (Cho et al. 2014) with torch's order of gates: reset, update, new."""
    w, u, b, c = (
        weights[f"{name}.{kind}_l0{suffix}"]
        for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    xr, xz, xn = np.split(w @ x + b, 3)
    hr, hz, hn = np.split(u @ h + c, 3)
    reset, update = sigmoid(xr + hr), sigmoid(xz + hz)
    return (1 - update) * np.tanh(xn + reset * hn) + update * h


def softmax(x: Any) -> Any:
    return np.exp(x) / np.exp(x).sum()


def read(weights: dict[str, Any], name: str, vectors: Any) -> tuple[Any, Any]:
    """The states of a bidirectional GRU, and its last ones, backward and forward."""
    ahead = [np.zeros(weights[f"{name}.weight_hh_l0"].shape[1])]
    back = [ahead[0]]
    for vector in vectors:
        ahead.append(gru_step(weights, name, "", vector, ahead[-1]))
    for vector in vectors[::-1]:
        back.append(gru_step(weights, name, "_reverse", vector, back[-1]))
    states = [np.concatenate(both) for both in zip(ahead[1:], back[:0:-1], strict=True)]
    return np.array(states), np.concatenate([back[-1], ahead[-1]])


def forward(
    model: CatSeq, ids: list[int], extended: list[int], previous: list[int], kept: Any = None
) -> tuple[Any, Any]:
    """Probabilities of the words after `previous`, by the equations of Chan et al. (2019).

    Those of the variants are from Chen et al. (2018, 2019) and Yuan et al. (2020). The title is all
    of the document but its closing token. Also returns the last state of the target encoder and
    the vector of the document.
    """
    p = {name: value.double().numpy() for name, value in model.parts.state_dict().items()}
    vectors, shape = p["vectors.weight"], model.shape
    memory, state = read(p, "reader", vectors[ids])
    if shape.title_guided:
        title, _ = read(p, "title", vectors[ids[:-1]])
        matched = [softmax(p["match.weight"] @ each @ title.T) @ title for each in memory]
        merged, state = read(p, "merge", np.concatenate([memory, matched], axis=1))
        memory = (memory + merged) / 2
    document = p["document.weight"] @ state + p["document.bias"] if shape.target_encoder else None
    found, attended, past = [], np.zeros(len(ids)), [state]
    written = np.zeros(shape.target_encoder)
    for step, token in enumerate(previous):
        word = vectors[token if token < model.words else 3]
        if shape.target_encoder:
            written = gru_step(p, "target", "", word, written)
        state = gru_step(p, "writer", "", np.concatenate([word, written]), state)
        compared = memory @ p["key.weight"].T + p["query.weight"] @ state + p["query.bias"]
        if shape.coverage:
            compared += attended[:, None] * p["covered.weight"][:, 0]
        scores = np.tanh(compared) @ p["likeness.weight"][0]
        if shape.salience:
            scores += memory @ p["salient.weight"][0] + p["salient.bias"]
        attention = softmax(scores)
        attended += attention
        seen = [attention @ memory, state]
        if shape.review:
            query = p["review.weight"] @ state / len(state) ** 0.5
            seen.append(softmax(np.array(past) @ query) @ np.array(past))
            past.append(state)
        context = np.concatenate(seen)
        mixed = p["mixed.weight"] @ context + p["mixed.bias"]
        mixed *= 1 if kept is None else kept[step]
        logits = p["word.weight"] @ mixed + p["word.bias"]
        logits[[PAD_ID, START_ID]] = -np.inf
        gate = sigmoid(p["own.weight"][0] @ np.concatenate([context, word]) + p["own.bias"][0])
        chances = np.zeros(max(model.words, *(i + 1 for i in extended)))
        chances[: model.words] = gate * softmax(logits)
        np.add.at(chances, extended, (1 - gate) * attention)
        found.append(chances)
    return np.array(found), (written, document)


def small_model(**shape: Any) -> CatSeq:
    model = CatSeq(CatSeqShape(3, 2, 5, **{"dropout": 0.0} | shape), len(VOCABULARY), seed=1)
    with torch.no_grad():
        for weights in model.parts.parameters():
            weights.mul_(2.0)
    return model


def test_orthogonality_is_the_norm_of_products_of_different_separator_states() -> None:
    """States (1, 2) and (3, 4) of the first document are at separators: 2 * 11 ** 2 is squared."""
    hidden = torch.tensor(
        [[[1.0, 2.0], [9.0, 9.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0], [1.0, 1.0]]]
    )
    targets = torch.tensor([[NEXT_ID, A, SPLIT_ID], [A, SPLIT_ID, END_ID]])
    assert float(orthogonality_loss(hidden, targets)) == pytest.approx((2 * 11**2) ** 0.5 / 2, 1e-3)


def test_semantic_coverage_is_the_cross_entropy_of_the_own_document() -> None:
    scores = torch.tensor([[2.0, 0.0], [1.0, 3.0]])
    expected = (np.log(1 + np.exp(-2)) + np.log(1 + np.exp(-2))) / 2
    assert float(semantic_coverage_loss(scores)) == pytest.approx(expected)


def test_salience_is_the_cross_entropy_of_tokens_of_present_phrases() -> None:
    """Log-odds ln 3 and 0 of the tokens, ln 3 of the closing one; the last column is padding."""
    log_odds = torch.tensor([[np.log(3.0), 0.0, np.log(3.0), 5.0]])
    mask = torch.tensor([[True, True, True, False]])
    examples = [KeyphraseExample(("a", "b"), (("a",),))]
    expected = -(np.log(3 / 4) + np.log(1 / 2) + np.log(1 / 4)) / 3
    assert float(salience_loss(log_odds, mask, examples)) == pytest.approx(expected)


@pytest.mark.parametrize("weight", ["orthogonality", "semantic_coverage"])
def test_each_loss_of_a_variant_is_added_with_its_weight(weight: str) -> None:
    examples = [KeyphraseExample(("a", "b"), (("a",), ("b",)), (("b", "a"),)), LONG]
    batch = make_catseq_batch(examples, VOCABULARY)

    def loss(value: float) -> float:
        shape = CatSeqShape(3, 2, 5, 0.0, target_encoder=2, **{weight: value})  # type: ignore[arg-type]  # one of two weights
        return float(training_loss(CatSeq(shape, len(VOCABULARY), seed=1), batch, None)[0].detach())

    none, half, whole = loss(0.0), loss(0.5), loss(1.0)
    assert half > none + 1e-4
    assert whole - none == pytest.approx(2 * (half - none), rel=1e-3)


def test_salience_is_added_with_its_weight() -> None:
    batch = make_catseq_batch([LONG], VOCABULARY)

    def losses(weight: float) -> tuple[float, float]:
        model = CatSeq(CatSeqShape(3, 2, 5, 0.0, salience=weight), len(VOCABULARY), seed=1)
        whole = training_loss(model, batch, None)[0]
        return float(whole.detach()), float(likelihood_loss(model, batch).detach())

    (half, base), (whole, same) = losses(0.5), losses(1.0)
    assert base == same
    assert half > base + 0.1
    assert whole - base == pytest.approx(2 * (half - base), rel=1e-4)


def test_semantic_coverage_trains_the_target_encoder() -> None:
    shape = CatSeqShape(3, 2, 5, 0.0, target_encoder=2, semantic_coverage=1.0)
    model = CatSeq(shape, len(VOCABULARY), seed=1)
    other = KeyphraseExample(("b", "b"), (("b",),))
    loss, _ = training_loss(model, make_catseq_batch([LONG, other], VOCABULARY), None)
    loss.backward()
    assert float(model.parts["target"].weight_ih_l0.grad.abs().sum()) > 0


SHOWN = KeyphraseExample(("b", "x", "a", "x"), (("x",),), (("a",),))  # x is not a known word


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"coverage": True},
        {"review": True},
        {"title_guided": True},
        {"salience": 1.0},
        {"target_encoder": 2},
        {"coverage": True, "review": True},
    ],
    ids=str,
)
def test_catseq_gives_the_probabilities_of_its_equations(variant: dict[str, Any]) -> None:
    """The document beside it is longer, so that padding must not be attended to."""
    model = small_model(**variant)
    longer = KeyphraseExample(("a", "b", "b", "a", "b", "y", "a"))
    batch = make_catseq_batch([SHOWN, longer], VOCABULARY)
    x = len(VOCABULARY)
    targets = [x, SPLIT_ID, A, END_ID]
    read_ids, copied = [B, 3, A, 3, END_ID], [B, x, A, x, END_ID]
    expected, _ = forward(model, read_ids, copied, [START_ID, *targets[:3]])
    memory = model.encode(batch)
    wanted = torch.tensor([targets, targets])
    with torch.no_grad():
        found = model.log_likelihood(memory, wanted)[0].exp().numpy()
        first = model.step(memory, memory.initial_state, torch.tensor([START_ID, START_ID]))[0][0]
    assert found == pytest.approx(expected[range(4), targets], abs=1e-6)
    assert first.numpy()[: x + 1] == pytest.approx(expected[0], abs=1e-6)


def test_semantic_coverage_compares_the_whole_output_with_every_document() -> None:
    """The shorter output ends two words before the other, where padding begins."""
    model = small_model(target_encoder=2, semantic_coverage=0.5)
    batch = make_catseq_batch([KeyphraseExample(("b",)), LONG], VOCABULARY)
    found, log_probabilities = training_loss(model, batch, None)
    sides = [
        forward(model, [word, END_ID], [word, END_ID], [START_ID, *before])[1]
        for word, before in ((B, [SPLIT_ID]), (A, [A, SPLIT_ID, B]))
    ]
    scores = np.array([[written @ document for _, document in sides] for written, _ in sides])
    coverage = np.mean([-np.log(softmax(row)[i]) for i, row in enumerate(scores)])
    real = (batch.targets != PAD_ID).numpy()
    likelihood = float((log_probabilities.detach().numpy() * real).sum()) / 6
    assert float(found.detach()) == pytest.approx(0.5 * coverage - likelihood, rel=1e-5)


def test_dropout_scales_what_it_keeps() -> None:
    model = small_model(dropout=0.25)
    batch = make_catseq_batch([SHOWN], VOCABULARY)
    x = len(VOCABULARY)
    kept = torch.empty((1, 4, 4)).bernoulli_(0.75, generator=torch_generator(5))[0].numpy() / 0.75
    targets = [x, SPLIT_ID, A, END_ID]
    expected, _ = forward(
        model, [B, 3, A, 3, END_ID], [B, x, A, x, END_ID], [START_ID, *targets[:3]], kept=kept
    )
    with torch.no_grad():
        found = model.log_likelihood(
            model.encode(batch), torch.tensor([targets]), torch_generator(5)
        )
    assert found[0].exp().numpy() == pytest.approx(expected[range(4), targets], abs=1e-6)
    assert kept.min() == 0


def test_the_ranking_loss_compares_outputs_of_one_reference() -> None:
    predicted = torch.tensor([0.5, 0.0, 0.25, 9.0])
    targets = torch.tensor([1.0, 0.0, 1.0, -5.0])
    # 0 and 2 are better than 1; their targets are equal; 3 has another reference
    found = ranking_loss(predicted, targets, torch.tensor([0, 0, 0, 1]))
    expected = (np.log1p(np.exp(-1.0)) + np.log1p(np.exp(-0.5))) / 2
    assert float(found) == pytest.approx(expected, abs=1e-6)
    assert float(ranking_loss(predicted, targets, torch.arange(4))) == 0
