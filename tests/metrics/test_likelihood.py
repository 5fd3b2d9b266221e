from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.metrics.likelihood import DEFAULT_PROMPT
from tests.support.small_models import PAIRS, save, save_causal

torch = pytest.importorskip("torch", reason="torch is not installed")
CANDIDATES = [candidate for candidate, _ in PAIRS]
REFERENCES = [reference for _, reference in PAIRS]


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("bart"), "bart", "AutoModelForSeq2SeqLM")


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(
        tmp_path_factory.mktemp("t5"), "t5", "AutoModelForSeq2SeqLM", decoder_start_token_id=0
    )


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_causal(tmp_path_factory.mktemp("causal"))


def loaded(folder: Path, kind: str) -> tuple[Any, Any]:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return getattr(transformers, kind).from_pretrained(folder).eval(), tokenizer


def looped(folder: Path, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
    """BARTScore as its paper defines it, one text and one token at a time."""
    model, tokenizer = loaded(folder, "AutoModelForSeq2SeqLM")
    found = []
    for source, target in zip(sources, targets, strict=True):
        read = torch.tensor([tokenizer(source)["input_ids"]])
        wanted = tokenizer(target)["input_ids"]
        written = [model.config.decoder_start_token_id]
        total = 0.0
        for piece in wanted:
            with torch.no_grad():
                logits = model(input_ids=read, decoder_input_ids=torch.tensor([written])).logits
            total += float(torch.log_softmax(logits[0, -1].double(), -1)[piece])
            written.append(piece)
        found.append(total / len(wanted))
    return found


def looped_causal(
    model: Any, tokenizer: Any, sources: Sequence[str], targets: Sequence[str]
) -> list[float]:
    """The target's tokens after the prompt, one forward pass for each token."""
    found = []
    for source, target in zip(sources, targets, strict=True):
        before = tokenizer(f"{source}\nIn other words:")["input_ids"]
        after = tokenizer(f" {target}")["input_ids"]
        if tokenizer.decode(after[0]) == " ":  # a piece of its own, and none of the target
            before, after = before + after[:1], after[1:]
        total = 0.0
        for at, piece in enumerate(after):
            with torch.no_grad():
                logits = model(torch.tensor([before + after[:at]])).logits
            total += float(torch.log_softmax(logits[0, -1].double(), -1)[piece])
        found.append(total / len(after))
    return found


@pytest.mark.parametrize("batch_tokens", [1, 64, 4096])
def test_bartscore_is_the_plain_loop_whatever_the_batch(bart: Path, batch_tokens: int) -> None:
    metric = f"bartscore(model={str(bart)!r})"
    scores = em.score(CANDIDATES, REFERENCES, metric, batch_tokens=batch_tokens)
    precision = looped(bart, REFERENCES, CANDIDATES)
    recall = looped(bart, CANDIDATES, REFERENCES)
    assert [s.precision for s in scores.segments] == pytest.approx(precision, abs=1e-5)
    assert [s.recall for s in scores.segments] == pytest.approx(recall, abs=1e-5)
    wanted = [(p + r) / 2 for p, r in zip(precision, recall, strict=True)]
    assert [s.value for s in scores.segments] == pytest.approx(wanted, abs=1e-5)


def test_t5_is_the_plain_loop_too(t5: Path) -> None:
    scores = em.score(CANDIDATES, REFERENCES, f"bartscore_precision(model={str(t5)!r})")
    assert [s.value for s in scores.segments] == pytest.approx(
        looped(t5, REFERENCES, CANDIDATES), abs=1e-5
    )


def test_one_direction_is_that_half_of_both(bart: Path) -> None:
    both = em.score(CANDIDATES, REFERENCES, f"bartscore(model={str(bart)!r})").segments
    for name in ("precision", "recall"):
        half = em.score(CANDIDATES, REFERENCES, f"bartscore_{name}(model={str(bart)!r})").segments
        assert [s.value for s in half] == pytest.approx([getattr(s, name) for s in both], abs=1e-6)
        other = "recall" if name == "precision" else "precision"
        assert all(getattr(s, other) is None for s in half)


def test_a_causal_model_is_the_plain_loop(causal: Path) -> None:
    scores = em.score(CANDIDATES, REFERENCES, f"likelihood(model={str(causal)!r})")
    model, tokenizer = loaded(causal, "AutoModelForCausalLM")
    precision = looped_causal(model, tokenizer, REFERENCES, CANDIDATES)
    assert [s.precision for s in scores.segments] == pytest.approx(precision, abs=1e-5)


@pytest.mark.parametrize("direction", ["candidate", "reference"])
def test_a_text_alone_follows_the_prompt_without_the_other_text(
    causal: Path, direction: str
) -> None:
    metric = f"likelihood(model={str(causal)!r}, direction={direction!r})"
    model, tokenizer = loaded(causal, "AutoModelForCausalLM")
    texts = CANDIDATES if direction == "candidate" else REFERENCES
    wanted = looped_causal(model, tokenizer, [""] * len(texts), texts)
    scores = em.score(CANDIDATES, REFERENCES, metric)
    assert scores.values == pytest.approx(wanted, abs=1e-5)
    assert all(s.precision is None and s.recall is None for s in scores.segments)


@pytest.mark.slow
@pytest.mark.model("smollm2")
def test_a_fluent_text_is_likelier_than_its_words_in_another_order() -> None:
    candidates = ["The panel meets again on Friday.", "Friday on again meet will committee The."]
    references = ["The committee will meet again on Friday."] * 2
    fluent, shuffled = em.score(candidates, references, "likelihood(direction='candidate')").values
    assert fluent > shuffled + 1


@pytest.mark.slow
@pytest.mark.model("smollm2")
def test_smollm2_is_the_plain_loop() -> None:
    from evenmatch.models import checkpoints

    folder = checkpoints.find_checkpoint("smollm2").folder
    model, tokenizer = loaded(folder, "AutoModelForCausalLM")
    scores = em.score(CANDIDATES, REFERENCES, "bartscore(model='smollm2')")
    precision = looped_causal(model, tokenizer, REFERENCES, CANDIDATES)
    recall = looped_causal(model, tokenizer, CANDIDATES, REFERENCES)
    assert [s.precision for s in scores.segments] == pytest.approx(precision, abs=1e-5)
    assert [s.recall for s in scores.segments] == pytest.approx(recall, abs=1e-5)


@pytest.mark.slow
@pytest.mark.model("smollm2")
def test_smollm2_finds_a_paraphrase_likelier_than_another_sentence() -> None:
    references = ["The committee will meet again on Friday."] * 3
    candidates = [
        "The panel meets again on Friday.",
        "Bananas are rich in potassium and taste sweet.",
        "Friday on again meet will committee The.",
    ]
    scores = em.score(candidates, references, "likelihood")
    best, *others = [s.value for s in scores.segments]
    assert best > max(others) + 0.5


def test_prism_counts_neither_its_tag_nor_reads_one(bart: Path) -> None:
    metric = f"prism(model={str(bart)!r}, source_tag='', target_tag='<mask>')"
    [score] = em.score(CANDIDATES[:1], REFERENCES[:1], metric).segments
    model, tokenizer = loaded(bart, "AutoModelForSeq2SeqLM")
    bare = [tokenizer(t, add_special_tokens=False)["input_ids"] for t in PAIRS[0]]
    wanted = [tokenizer.mask_token_id, *bare[0], tokenizer.eos_token_id]
    with torch.no_grad():
        logits = model(
            input_ids=torch.tensor([[*bare[1], tokenizer.eos_token_id]]),
            decoder_input_ids=torch.tensor([[model.config.decoder_start_token_id, *wanted[:-1]]]),
        ).logits
    logs = torch.log_softmax(logits[0], -1)[range(len(wanted)), wanted]
    assert score.precision == pytest.approx(float(logs[1:].mean()), abs=1e-5)


def test_a_tag_the_model_does_not_have_is_refused(bart: Path) -> None:
    with pytest.raises(em.InputError, match="has no token '__xx__'; give the tag as its tokenizer"):
        em.score(["a"], ["a"], f"prism(model={str(bart)!r}, source_tag='', target_tag='__xx__')")


def test_empty_texts_are_scored_by_their_special_tokens_and_flagged(bart: Path) -> None:
    scores = em.score(["", "rain"], ["rain", ""], f"bartscore(model={str(bart)!r})")
    assert [s.flags for s in scores.segments] == [{"empty_candidate"}, {"empty_reference"}]
    assert scores.segments[0].precision == pytest.approx(looped(bart, ["rain"], [""])[0], abs=1e-5)


def test_an_empty_text_is_a_uniform_guess_without_special_tokens(causal: Path) -> None:
    [score] = em.score([""], ["rain"], f"likelihood(model={str(causal)!r})").segments
    model, _ = loaded(causal, "AutoModelForCausalLM")
    assert score.precision == pytest.approx(-math.log(model.config.vocab_size))
    assert score.flags == {"empty_candidate"}


def test_a_long_text_is_truncated_as_by_the_tokenizer_and_flagged(bart: Path) -> None:
    long = "the quick brown fox jumps over the lazy dog " * 4
    [score] = em.score([long], ["rain"], f"bartscore_precision(model={str(bart)!r})").segments
    _, tokenizer = loaded(bart, "AutoModelForSeq2SeqLM")
    ids = tokenizer(long, truncation=True, max_length=24)["input_ids"]
    kept = tokenizer.decode(ids, skip_special_tokens=True)
    [same] = em.score([kept], ["rain"], f"bartscore_precision(model={str(bart)!r})").segments
    assert score.flags == {"truncated"}
    assert score.value == pytest.approx(same.value, abs=1e-5)


def test_a_prompt_too_long_leaves_each_text_half_of_the_room(causal: Path) -> None:
    long = "rain in the north " * 40
    scores = em.score([long, "rain"], ["rain", "rain"], f"likelihood(model={str(causal)!r})")
    assert [s.flags for s in scores.segments] == [{"truncated"}, set()]
    assert all(math.isfinite(s.value) for s in scores.segments)


@pytest.mark.parametrize("name", ["bart", "causal"])
def test_long_texts_can_be_an_error(name: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(name)
    with pytest.raises(em.InputError, match=r"a text has \d+ tokens, but .* takes \d+; shorten"):
        em.score(["rain " * 200], ["rain"], f"bartscore(model={str(folder)!r}, long='error')")


@pytest.mark.parametrize("prompt", ["{source}", "{target} {source}", "{source} {target}!", "a"])
def test_a_prompt_without_both_texts_in_order_is_refused(prompt: str) -> None:
    with pytest.raises(em.InputError, match=r"a prompt must contain \{source\} once and end"):
        em.build(f"likelihood(prompt={prompt!r})")


def test_another_prompt_gives_another_score(causal: Path) -> None:
    spec = f"likelihood(model={str(causal)!r}, prompt='{{source}} or {{target}}')"
    found = em.score(CANDIDATES, REFERENCES, [spec, f"likelihood(model={str(causal)!r})"])
    assert len({scores.mean for scores in found.values()}) == 2


def test_a_prompt_is_not_for_an_encoder_nor_a_tag_for_a_causal_model(
    bart: Path, causal: Path
) -> None:
    with pytest.raises(em.InputError, match="has an encoder and takes no prompt; leave it out"):
        em.score(["a"], ["a"], f"bartscore(model={str(bart)!r}, prompt='{{source}}: {{target}}')")
    with pytest.raises(em.InputError, match="is a causal model and takes no tags; write a prompt"):
        em.score(["a"], ["a"], f"prism(model={str(causal)!r})")


def test_the_best_of_several_references_counts(bart: Path) -> None:
    metric = f"bartscore(model={str(bart)!r})"
    [both] = em.score(["rain"], [["rain", "a cat sat"]], metric).segments
    single = em.score(["rain"] * 2, ["rain", "a cat sat"], metric).segments
    assert both.value == pytest.approx(max(s.value for s in single), abs=1e-6)


def test_the_signature_states_the_prompt_where_one_is_read(bart: Path, causal: Path) -> None:
    assert f"prompt {DEFAULT_PROMPT!r}" in em.build(f"bartscore(model={str(causal)!r})").signature
    assert "prompt" not in em.build(f"bartscore(model={str(bart)!r})").signature


def test_more_positions_than_fit_at_once_are_all_counted(
    bart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = f"bartscore(model={str(bart)!r})"
    whole = em.score(CANDIDATES, REFERENCES, metric)
    monkeypatch.setattr("evenmatch.metrics.likelihood._POSITIONS_PER_CHUNK", 3)
    parted = em.score(CANDIDATES, REFERENCES, metric)
    assert [s.value for s in parted.segments] == pytest.approx(
        [s.value for s in whole.segments], abs=1e-9
    )
