from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.data.graphs import read_graphs
from evenmatch.errors import DataError, InputError
from evenmatch.training.checkpoints import CHECKPOINT_FILE
from evenmatch.training.generator.decoding import generate_texts
from evenmatch.training.generator.loss import StepMetrics, TuneBatch
from evenmatch.training.generator.policy import CausalPolicy, load_policy
from evenmatch.training.generator.tune import (
    EVALUATIONS_FILE,
    LOG_FOLDER,
    MODEL_FOLDER,
    RESULT_FILE,
    TuneExamples,
    _step_seed,
    prepare_policy,
    tensorboard_logger,
    tune,
)
from evenmatch.training.generator.tune_settings import T5Shape, TuneSettings, read_tune_settings
from evenmatch.training.loop import History
from tests.support.tuning import save_tiny_llama, tiny

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("tensorboard", reason="tensorboard is not installed")


def weights(settings: TuneSettings) -> bytes:
    return (Path(settings.out) / MODEL_FOLDER / "model.safetensors").read_bytes()


def train_plainly(settings: TuneSettings, logits_of: Callable[..., Any]) -> list[Any]:
    """Fine-tune in the plainest way: cross-entropy of each batch, summed over tokens."""
    graphs = read_graphs(settings.train)
    policy = prepare_policy(settings, graphs)
    examples = TuneExamples(graphs, settings, policy.tokenizer)
    model, steps = policy.model.train(), examples.steps * settings.epochs
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.rate, fused=True)
    for number in range(steps):
        optimizer.param_groups[0]["lr"] = settings.rate * (1 - number / steps)
        torch.manual_seed(_step_seed(settings.seed, number))
        logits, labels, mask = logits_of(policy, examples(number))
        lost = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), reduction="none"
        ).view_as(labels)
        optimizer.zero_grad()
        (lost * mask).sum(1).mean().backward()
        optimizer.step()
    return list(model.parameters())


def check_equal_to_checkpoint(settings: TuneSettings, expected: list[Any]) -> None:
    kept = torch.load(Path(settings.out) / CHECKPOINT_FILE, weights_only=True)["weights"]
    assert all(torch.equal(one, other) for one, other in zip(kept, expected, strict=True))


def test_without_reward_it_is_cross_entropy_bit_for_bit(tmp_path: Path) -> None:
    settings = tiny(tmp_path, rl_weight=0.0)
    tune(settings)

    def logits_of(policy: Any, batch: TuneBatch) -> Any:
        ids, mask = policy.tokenize(batch.sources, longest=512)
        wanted = policy.tokenizer(
            list(batch.targets), padding=True, truncation=True, max_length=12, return_tensors="pt"
        )
        labels = wanted["input_ids"]
        # Without a cache, which training has no use for and which rounds otherwise.
        output = policy.model(input_ids=ids, attention_mask=mask, labels=labels, use_cache=False)
        return output.logits, labels, wanted["attention_mask"]

    check_equal_to_checkpoint(settings, train_plainly(settings, logits_of))


def test_a_causal_run_without_reward_is_plain_fine_tuning_bit_for_bit(tmp_path: Path) -> None:
    model = save_tiny_llama(tmp_path / "llama")
    # One example a step: nothing is padded, and the plain pass is a single call of the model.
    settings = tiny(tmp_path, rl_weight=0.0, model=model, batch=1, epochs=1)
    tune(settings)

    def logits_of(policy: Any, batch: TuneBatch) -> Any:
        prompt = policy.tokenizer(batch.sources[0] + "\n")["input_ids"]
        labels = [*policy.tokenizer(batch.targets[0])["input_ids"][:11], 0]
        cache = transformers.DynamicCache()
        policy.model.model(input_ids=torch.tensor([prompt[:-1]]), past_key_values=cache)
        rest = torch.tensor([[prompt[-1], *labels[:-1]]])
        logits = policy.model(input_ids=rest, past_key_values=cache).logits
        return logits, torch.tensor([labels]), torch.ones((1, len(labels)))

    check_equal_to_checkpoint(settings, train_plainly(settings, logits_of))


@pytest.mark.parametrize(
    "changed",
    [{}, {"last_blocks": 1}, {"lora_rank": 2}, {"samples": 2, "baseline": "leave_one_out"}],
    ids=str,
)
def test_a_causal_run_that_was_stopped_ends_like_one_that_was_not(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    if "lora_rank" in changed:
        pytest.importorskip("peft", reason="peft is not installed")
    model = save_tiny_llama(tmp_path / "llama")
    common = {"model": model, "epochs": 9, "steps": 4, "look_every": 2, "bf16": True, **changed}
    whole = tune(tiny(tmp_path, "whole", **common))
    parts = tiny(tmp_path, "parts", **common)
    answers = iter([False, False, True])  # after the first evaluation, between two others
    tune(parts, should_stop=lambda: next(answers, False))
    found = tune(parts)
    assert found.history == whole.history
    assert found.document == whole.document
    assert len(found.history.step_metrics) == 4
    assert weights(parts) == (whole.model / "model.safetensors").read_bytes()


def test_a_tuned_causal_model_writes_texts_and_can_be_tuned_again(tmp_path: Path) -> None:
    settings = tiny(
        tmp_path,
        model=save_tiny_llama(tmp_path / "llama"),
        steps=2,
        rl_weight=0.0,
        separator=" =>",
        prefix="say: ",
        keep_last=True,
    )
    tuned = tune(settings)
    line = read_graphs(settings.valid)[0].graph.line
    (text,) = em.generate(tuned.model, [line])
    policy = load_policy(str(tuned.model), settings.decoding)
    assert generate_texts(policy, ["say: " + line], longest=(512, 12), batch_size=1) == [text]
    assert isinstance(policy, CausalPolicy)
    assert policy.separator == " =>"
    again = tiny(tmp_path, "again", model=str(tuned.last), steps=1, reward="f_disc")
    assert tune(again).history.ended


def test_merged_adapters_write_what_the_adapted_model_writes(tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="peft is not installed")
    settings = tiny(
        tmp_path, model=save_tiny_llama(tmp_path / "llama"), steps=2, rl_weight=0.0, lora_rank=2,
        rate=0.1,
    )  # fmt: skip
    tuned = tune(settings)
    base, merged = (load_policy(each).model for each in (settings.model, str(tuned.model)))
    ids = torch.arange(6)[None]
    with torch.no_grad():
        assert not torch.allclose(base(input_ids=ids).logits, merged(input_ids=ids).logits)
    assert "adapter_config.json" not in {each.name for each in tuned.model.iterdir()}
    examples = tuned.document["examples"]
    texts = em.generate(tuned.model, [each["source"] for each in examples])
    assert texts == [each["text"] for each in examples]


def test_a_run_takes_no_more_steps_than_it_should(tmp_path: Path) -> None:
    found = tune(tiny(tmp_path, steps=3, epochs=9, rl_weight=0.0)).history
    assert (len(found.step_metrics), found.steps) == (3, 3)


def test_evaluations_store_texts_and_their_form(tmp_path: Path) -> None:
    tuned = tune(tiny(tmp_path, patience=9))
    document = tuned.document
    steps = [step for step, _ in tuned.history.evaluations]
    assert [row["step"] for row in document["looks"]] == steps
    assert {"chrf", "greedy_length", "greedy_repetition", "length", "repetition"} <= set(
        document["looks"][0]
    )
    assert [each["step"] for each in document["examples"]] == [s for s in steps for _ in range(4)]
    assert set(document["examples"][0]) == {"step", "source", "text", "reference"}
    (tuned.model.parent / EVALUATIONS_FILE).write_text("[]")
    with pytest.raises(DataError, match=r"cannot read .*evaluations.json; remove it"):
        tune(tiny(tmp_path, patience=9))


class Killed(Exception):
    """Stands for whatever ends a process in the middle of a step."""


def test_logs_show_each_step_once_though_a_run_was_stopped(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    settings = tiny(tmp_path, patience=9)
    seen: list[int] = []

    def stop(history: History[StepMetrics]) -> None:
        seen.append(len(history.step_metrics))
        if len(seen) == 6:  # two steps after what is kept
            raise Killed

    with pytest.raises(Killed):
        tune(settings, on_step=stop)
    history = tune(settings).history
    logged = EventAccumulator(str(Path(settings.out) / LOG_FOLDER)).Reload()
    rewards = logged.Scalars("train/reward")
    assert [each.step for each in rewards] == list(range(1, len(history.step_metrics) + 1))
    assert [e.value for e in rewards] == pytest.approx(
        [told.reward for told in history.step_metrics]
    )
    assert [(e.step, e.value) for e in logged.Scalars("valid/bleu")] == [
        (step, pytest.approx(bleu)) for step, bleu in history.evaluations
    ]


def test_event_files_sort_in_the_order_they_were_begun(tmp_path: Path) -> None:
    history = History(steps=1, step_metrics=[StepMetrics(loss=1.0, cross_entropy=1.0)])
    for _ in range(3):  # by name, the tenth file of a process in one second comes before the ninth
        with tensorboard_logger(tmp_path) as log:
            log(history)
    begun = sorted(each.name.split(".")[3] for each in tmp_path.iterdir())
    assert len(set(begun)) == 3


def test_the_best_model_can_be_tuned_again(tmp_path: Path) -> None:
    first = tune(tiny(tmp_path, "first", epochs=1, rl_weight=0.0))
    again = tiny(tmp_path, "again", epochs=1, model=str(first.model), reward="chrf")
    assert tune(again).history.ended
    assert load_policy(str(first.model)).tokenizer("<H> Cork")["input_ids"][-1] == 1


def test_a_run_ends_when_bleu_no_longer_rises(tmp_path: Path) -> None:
    settings = tiny(tmp_path, epochs=9, rate=1e-12, rl_weight=0.0, patience=2)
    found = tune(settings)
    assert len(found.history.evaluations) == 3
    kept = json.loads((Path(settings.out) / RESULT_FILE).read_text())
    assert kept == found.document
    assert kept["best"]["step"] == kept["looks"][0]["step"]


def test_a_finished_run_is_not_taken_again(tmp_path: Path) -> None:
    settings = tiny(tmp_path, epochs=1, rl_weight=0.0)
    assert (
        tune(settings, should_stop=lambda: False).history
        == tune(settings, should_stop=pytest.fail).history
    )


def test_another_run_does_not_go_on_from_this_ones_state(tmp_path: Path) -> None:
    settings = tiny(tmp_path, epochs=1, rl_weight=0.0)
    tune(settings)
    with pytest.raises(DataError, match="is from a run with other settings, texts or model"):
        tune(dataclasses.replace(settings, seed=6))
    (Path(settings.out) / CHECKPOINT_FILE).write_bytes(b"not a checkpoint")
    with pytest.raises(DataError, match=r"cannot read .*checkpoint.pt .*remove it to start again"):
        tune(settings)


def test_one_of_the_references_is_drawn_in_each_pass(tmp_path: Path) -> None:
    settings = tiny(tmp_path, every_text=False, batch=3)
    graphs = read_graphs(settings.train)
    tokenizer = prepare_policy(settings, graphs).tokenizer
    examples = TuneExamples(graphs, settings, tokenizer)
    assert examples.steps == 4
    for epoch in range(2):
        batches = [examples(4 * epoch + i) for i in range(4)]
        read = sorted(source for batch in batches for source in batch.sources)
        assert read == sorted(each.graph.line for each in graphs)
        assert all(t in r for b in batches for t, r in zip(b.targets, b.references, strict=True))
    every = TuneExamples(graphs, dataclasses.replace(settings, every_text=True), tokenizer)
    count = sum(len(each.references) for each in graphs)
    assert every.steps == -(-count // settings.batch)


def test_a_model_without_a_decoder_of_its_own_is_refused() -> None:
    with pytest.raises(InputError, match="minilm does not write text; name an encoder-decoder"):
        load_policy("minilm")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("train = 'a'\nvalid = 'b'", "needs out = "),
        ("epoch = 3", "has no setting 'epoch'; did you mean 'epochs'?"),
        ("learning_rate = 3", "has no setting 'learning_rate'; did you mean 'rate'?"),
        ("embeddings = 3", "has no setting 'embeddings'; did you mean 'own_embeddings'?"),
        ("zzz = 3", "has no setting 'zzz'; known: train, valid"),
        ("epochs = 'x'", "epochs takes a whole number, got 'x'"),
        ("shape = 3", r"\[shape\] of .* must be a table, got 3"),
        ("[shape]\nwidht = 3", r"\[shape\] of .* has no setting 'widht'; did you mean 'width'"),
        ("epochs = ", "is not valid TOML"),
    ],
)
def test_a_config_that_means_nothing_is_refused(tmp_path: Path, text: str, said: str) -> None:
    config = tmp_path / "c.toml"
    config.write_text(text)
    with pytest.raises(InputError, match=said):
        read_tune_settings(config)


def test_a_config_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none.toml: No such file"):
        read_tune_settings(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"clip": -1.0}, "clip must be at least 0, got -1.0"),
        ({"rl_weight": 1.5}, "rl_weight must be between 0 and 1, got 1.5"),
        ({"rate": 0.0}, "rate must be above 0, got 0.0"),
        ({"rate": "high"}, "rate takes a number, got 'high'"),
        ({"samples": 2.5}, "samples takes a whole number, got 2.5"),
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"baseline": "mean"}, "baseline must be one of greedy, leave_one_out, got 'mean'"),
        ({"baseline": "leave_one_out"}, "baseline 'leave_one_out' needs at least 2 samples"),
        ({"last_blocks": 1, "lora_rank": 2}, "give last_blocks or lora_rank, not both"),
    ],
)
def test_numbers_out_of_range_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        dataclasses.replace(TuneSettings("a", "b", "c"), **changed)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"heads": 3}, "width 128 is not a multiple of the 3 heads"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"layers": 0}, "layers must be at least 1, got 0"),
        ({"layers": 1.5}, "layers takes a whole number, got 1.5"),
    ],
)
def test_shapes_that_cannot_be_are_refused(changed: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        dataclasses.replace(T5Shape(), **changed)  # type: ignore[arg-type]
