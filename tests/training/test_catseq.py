from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenmatch.data.documents import Document
from evenmatch.errors import DataError, InputError
from evenmatch.training.checkpoints import CHECKPOINT_FILE
from evenmatch.training.keyphrases import decoding
from evenmatch.training.keyphrases.decoding import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    DecodedPhrases,
    load_generator,
)
from evenmatch.training.keyphrases.sequences import (
    END_ID,
    START_ID,
    KeyphraseExample,
    make_catseq_batch,
)
from evenmatch.training.keyphrases.train_catseq import (
    CatSeqRun,
    CatSeqSettings,
    CatSeqTrainingSettings,
    read_catseq_plan,
    train_catseq,
)

torch = pytest.importorskip("torch", reason="torch is not installed")

NOUNS = "tree graph net parser model corpus loss text word code cell gene".split()
KINDS = "neural deep sparse fast random linear robust public".split()
PLAN = """
train = ["{train}"]
valid = "{valid}"
words = 40
seed = 3

[shape]
embedding = 16
hidden = 16
attention = 16

[likelihood]
epochs = {epochs}
batch = 10
rate = 0.01
look_every = 12

[[stages]]
reward = "fg"
epochs = {stage_epochs}
batch = 20
rate = 0.01
patience = 20
look_every = 3

[[stages]]
reward = "f1"
epochs = 1
batch = 20
rate = 0.002
look_every = 3
"""


def documents(count: int, seed: int) -> list[dict[str, object]]:
    """The phrase after "we study" is present, and tells the one that is absent."""
    draw = np.random.default_rng(seed)
    made: list[dict[str, object]] = []
    for _ in range(count):
        kind, noun, other = draw.choice(KINDS), draw.choice(NOUNS), draw.choice(NOUNS)
        text = f"the {other} is old . we study {kind} {noun} here ."
        made.append({"text": text, "keyphrases": [f"{kind} {noun}", f"{noun} theory"]})
    return made


def write_plan(folder: Path, *, epochs: int = 4, stage_epochs: int = 2, count: int = 60) -> Path:
    for name, number in (("train", count), ("valid", 20)):
        rows = documents(number, seed=len(name))
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = folder / "plan.toml"
    files = {name: str(folder / f"{name}.jsonl") for name in ("train", "valid")}
    plan.write_text(PLAN.format(**files, epochs=epochs, stage_epochs=stage_epochs))
    return plan


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> list[CatSeqRun]:
    folder = tmp_path_factory.mktemp("catseq")
    return train_catseq(write_plan(folder, epochs=2, stage_epochs=3, count=120), folder / "out")


def test_the_loss_falls(trained: list[CatSeqRun]) -> None:
    values = [each.value for each in trained[0].history.step_metrics]
    assert np.mean(values[-5:]) < 0.5 * np.mean(values[:5])
    assert trained[0].history.best[1] > trained[0].history.evaluations[0][1] + 0.2


def test_the_reward_rises(trained: list[CatSeqRun]) -> None:
    history = trained[1].history
    rewards = [each.value for each in history.step_metrics]
    assert history.best[1] > history.evaluations[0][1] + 0.1
    assert np.mean(rewards[-6:]) > np.mean(rewards[:6])


def test_a_second_stage_starts_from_the_first_one_at_its_best(trained: list[CatSeqRun]) -> None:
    assert [each.name for each in trained] == ["likelihood", "stage-1", "stage-2"]
    assert trained[2].history.ended


def test_a_generator_that_only_copies_can_write_words_it_has_never_seen(
    trained: list[CatSeqRun],
) -> None:
    generator = load_generator(trained[0].folder)
    generator.model.parts["own"].bias.data[:] = -50.0
    batch = make_catseq_batch(
        [KeyphraseExample(("zebra", "quagga", "okapi"))], generator.vocabulary
    )
    with torch.no_grad():
        memory = generator.model.encode(batch)
        chances = generator.model.step(memory, memory.initial_state, torch.tensor([START_ID]))[0][0]
    strange = chances[len(generator.vocabulary) :]
    assert len(strange) == 3
    assert strange.min() > 0
    assert float(strange.sum() + chances[END_ID]) == pytest.approx(1)  # it may copy the end too


def test_a_document_without_words_gets_no_phrases(trained: list[CatSeqRun]) -> None:
    found = load_generator(trained[0].folder)([Document("", ()), Document("a net", ())])
    assert found[0] == ()


def test_a_phrase_with_a_doubled_word_is_left_out_unless_asked_for(
    trained: list[CatSeqRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator, words = (
        load_generator(trained[0].folder),
        "wave wave <sep> wave a wave <eos>".split(),
    )
    made = DecodedPhrases(None, (tuple(words),))
    monkeypatch.setattr(decoding, "decode_batch", lambda *args, **options: made)
    assert generator([Document("a wave", ())]) == [("wave a wave",)]
    assert generator([Document("a wave", ())], doubled=True) == [("wave wave", "wave a wave")]


@pytest.mark.parametrize("setting", [{"beam": 0}, {"steps": 0}])
def test_writing_nothing_is_refused(trained: list[CatSeqRun], setting: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be at least 1, got 0"):
        load_generator(trained[0].folder)([], **setting)


def test_what_has_ended_is_not_trained_again(trained: list[CatSeqRun]) -> None:
    out = trained[0].folder.parent
    again = train_catseq(out.parent / "plan.toml", out, should_stop=pytest.fail)
    assert [each.history for each in again] == [each.history for each in trained]


class Killed(Exception):
    """Stands for whatever ends a process in the middle of a step."""


def test_training_that_was_stopped_anywhere_goes_on_exactly(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, epochs=2, stage_epochs=1, count=40)
    whole = train_catseq(plan, tmp_path / "whole")
    steps = 0

    def should_stop() -> bool:
        nonlocal steps
        steps += 1
        if steps % 5 == 0:
            raise Killed
        return steps % 2 == 0  # paused, and kept

    for _ in range(40):
        try:
            parts = train_catseq(plan, tmp_path / "parts", should_stop=should_stop)
        except Killed:
            continue
        if len(parts) == 3 and parts[-1].history.ended:
            break
    for one, other in zip(whole, parts, strict=True):
        assert one.history == other.history
        assert (one.folder / WEIGHTS_FILE).read_bytes() == (
            other.folder / WEIGHTS_FILE
        ).read_bytes()
        assert not (other.folder / CHECKPOINT_FILE).exists()


def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, count=20)
    train_catseq(plan, tmp_path / "out", should_stop=lambda: True)
    plan.write_text(plan.read_text().replace("seed = 3", "seed = 4"))
    with pytest.raises(DataError, match="from a run with other settings, texts or model"):
        train_catseq(plan, tmp_path / "out")


def test_a_finished_course_of_other_settings_is_refused(
    trained: list[CatSeqRun], tmp_path: Path
) -> None:
    out = trained[0].folder.parent
    other = tmp_path / "other.toml"
    other.write_text((out.parent / "plan.toml").read_text().replace("seed = 3", "seed = 4"))
    with pytest.raises(DataError, match="was trained with other settings or documents"):
        train_catseq(other, out)


def test_a_folder_without_a_generator_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no keyphrase generator; train one with: evenmatch"):
        load_generator(tmp_path)
    (tmp_path / WEIGHTS_FILE).write_bytes(b"")
    (tmp_path / CONFIG_FILE).write_text("{}")
    with pytest.raises(DataError, match="train it again"):
        load_generator(tmp_path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"epochs": 1.5}, "epochs takes a whole number, got 1.5"),
        ({"rate": 0.0}, "rate must be above 0"),
    ],
)
def test_a_course_that_cannot_be_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        CatSeqTrainingSettings(**settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"longest": 0}, "longest must be at least 1, got 0"),
        ({"most_phrases": 0}, "most_phrases must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"stages": ("f1",)}, "stages takes"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        CatSeqSettings(**settings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epochs = 1 = 2", "is not valid TOML"),
        ("valid = 'a'", "needs train, a list of document files, got None"),
        ("train='a'\nvalid='b'\nword = 3", "no setting 'word'; did you mean 'words'"),
        ("train='a'\nvalid='b'\nzzz = 3", "no setting 'zzz'; known: words, longest"),
        ("train='a'\nvalid='b'\nwords = 3.5", "words takes a whole number, got 3.5"),
        ("train='a'\nvalid='b'\n[shape]\nhiden=3", r"\[shape\] of .* did you mean 'hidden'"),
        ("train='a'\nvalid='b'\nshape=3", "must be a table, got 3"),
        ("train='a'\nvalid='b'\nstages=3", r"must be tables, each under \[\[stages\]\]"),
        ("train='a'\nvalid='b'\n[[stages]]\nrate=1.0", "needs a reward: f1, fg, fb or the spec"),
        (
            "train='a'\nvalid='b'\n[[stages]]\nreward='f1'\nhalve=3",
            "halve takes True or False",
        ),
    ],
)
def test_a_plan_that_means_nothing_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_catseq_plan(path)


def test_a_plan_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none.toml: No such file"):
        read_catseq_plan(tmp_path / "none.toml")
