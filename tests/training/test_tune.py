from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from evenmatch.data.graphs import read_graphs
from evenmatch.errors import DataError, InputError
from evenmatch.training.checkpoints import CHECKPOINT_FILE
from evenmatch.training.generator.loss import StepMetrics
from evenmatch.training.generator.policy import load_policy
from evenmatch.training.generator.tune import (
    LOG_FOLDER,
    MODEL_FOLDER,
    RESULT_FILE,
    TuneExamples,
    _prepare_policy,
    _step_seed,
    tensorboard_logger,
    tune,
)
from evenmatch.training.generator.tune_settings import T5Shape, TuneSettings, read_tune_settings
from evenmatch.training.loop import History
from tests.support.tuning import tiny

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("tensorboard", reason="tensorboard is not installed")


def weights(settings: TuneSettings) -> bytes:
    return (Path(settings.out) / MODEL_FOLDER / "model.safetensors").read_bytes()


def test_without_reward_it_is_cross_entropy_bit_for_bit(tmp_path: Path) -> None:
    settings = tiny(tmp_path, rl_weight=0.0)
    tune(settings)
    examples = TuneExamples(read_graphs(settings.train), settings)
    policy = _prepare_policy(settings, examples)
    model, steps = policy.model.train(), examples.steps * settings.epochs
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.rate)
    for number in range(steps):
        optimizer.param_groups[0]["lr"] = settings.rate * (1 - number / steps)
        torch.manual_seed(_step_seed(settings.seed, number))
        batch = examples(number)
        ids, mask = policy.tokenize(batch.sources, longest=512)
        read = {"input_ids": ids, "attention_mask": mask}
        wanted = policy.tokenizer(
            list(batch.targets), padding=True, truncation=True, max_length=12, return_tensors="pt"
        )
        labels = wanted["input_ids"]
        # Without a cache, which training has no use for and which rounds otherwise.
        logits = model(**read, labels=labels, use_cache=False).logits
        lost = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
        optimizer.zero_grad()
        (lost * wanted["attention_mask"]).sum(1).mean().backward()
        optimizer.step()
    kept = torch.load(Path(settings.out) / CHECKPOINT_FILE, weights_only=True)["weights"]
    expected = list(model.parameters())
    assert all(torch.equal(one, other) for one, other in zip(kept, expected, strict=True))


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
    examples = TuneExamples(graphs, settings)
    assert examples.steps == 4
    for epoch in range(2):
        batches = [examples(4 * epoch + i) for i in range(4)]
        read = sorted(source for batch in batches for source in batch.sources)
        assert read == sorted(each.graph.line for each in graphs)
        assert all(t in r for b in batches for t, r in zip(b.targets, b.references, strict=True))
    every = TuneExamples(graphs, dataclasses.replace(settings, every_text=True))
    count = sum(len(each.references) for each in graphs)
    assert every.steps == -(-count // settings.batch)


def test_a_model_without_a_decoder_of_its_own_is_refused() -> None:
    with pytest.raises(InputError, match="minilm is not an encoder-decoder; name one"):
        load_policy("minilm")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("train = 'a'\nvalid = 'b'", "needs out = "),
        ("epoch = 3", "has no setting 'epoch'; did you mean 'epochs'?"),
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
    ],
)
def test_numbers_out_of_range_are_refused(changed: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        dataclasses.replace(TuneSettings("a", "b", "c"), **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"heads": 3}, "width 128 is not a multiple of the 3 heads"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"layers": 0}, "layers must be at least 1, got 0"),
    ],
)
def test_shapes_that_cannot_be_are_refused(changed: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        dataclasses.replace(T5Shape(), **changed)  # type: ignore[arg-type]
