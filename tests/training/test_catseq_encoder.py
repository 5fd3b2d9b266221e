from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evenmatch.data.documents import Document
from evenmatch.errors import InputError
from evenmatch.training.keyphrases.decoding import WEIGHTS_FILE, load_generator
from evenmatch.training.keyphrases.encoder_states import FrozenEncoder, open_encoder
from evenmatch.training.keyphrases.sequences import join_pieces, make_keyphrase_example
from evenmatch.training.keyphrases.train_catseq import train_catseq
from evenmatch.types import Array
from tests.support.small_training import save_tiny
from tests.training.test_catseq import write_plan

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny(tmp_path_factory.mktemp("encoder") / "model")


@pytest.fixture
def encoder(model: str) -> FrozenEncoder:
    open_encoder.cache_clear()
    return open_encoder(model, 2)


WORDS = ("neural", "nets", "parse", "<digit>", "trees", ".", "na\u00efve", "x0")


def test_pieces_make_up_the_words_and_numbers_stay_whole(encoder: FrozenEncoder) -> None:
    pieces = encoder.split(WORDS)
    assert len(pieces) > len(WORDS)  # the tiny vocabulary splits words
    assert "<digit>" in pieces
    assert join_pieces(pieces) == (*WORDS[:6], "naive", "x0")  # as the encoder normalizes them


def test_there_is_a_state_for_each_piece_and_for_the_closing_token(encoder: FrozenEncoder) -> None:
    pieces = encoder.split(WORDS[3:])
    (states,) = encoder([pieces])
    assert states.shape == (len(pieces) + 1, encoder.width)
    text = " ".join("0" if word == "<digit>" else word for word in join_pieces(pieces))
    expected = encoder.backbone.encode([text], [2])[0].layers[2][1:]
    assert states == pytest.approx(expected, abs=5e-3)  # kept in half precision


def test_the_state_of_a_word_is_the_mean_over_its_pieces(model: str) -> None:
    open_encoder.cache_clear()
    by_word = open_encoder(model, 2, pieces=False)
    words = by_word.split(("trees", "<digit>", "na\u00efve"))
    assert words == ("trees", "<digit>", "naive")
    (states,) = by_word([words])
    hidden = by_word.backbone.encode(["trees 0 naive"], [2])[0]
    count = sum(start < 5 for start, _ in hidden.spans[1:-1].tolist())
    assert count > 1
    vectors = hidden.layers[2]
    expected = [vectors[1 : count + 1].mean(0), vectors[count + 1]]
    assert states[:2] == pytest.approx(np.array(expected), abs=5e-3)
    assert states[3] == pytest.approx(vectors[-1], abs=5e-3)


def test_words_beyond_what_the_encoder_reads_have_no_state(model: str) -> None:
    open_encoder.cache_clear()
    by_word = open_encoder(model, 2, pieces=False)
    (states,) = by_word([("trees",) * 30])
    assert len(states) == 31
    assert not states[-1].any()


def test_states_that_are_kept_are_not_computed_again(
    encoder: FrozenEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces, others = encoder.split(WORDS), encoder.split(WORDS[:2])
    encoder.keep([pieces])
    asked: list[int] = []
    compute = FrozenEncoder._encode

    def count(self: FrozenEncoder, sequences: list[tuple[str, ...]]) -> list[Array]:
        asked.append(len(sequences))
        return compute(self, sequences)

    monkeypatch.setattr(FrozenEncoder, "_encode", count)
    found = encoder([pieces, others, pieces])
    assert asked == [1]
    assert found[0] is found[2]


def test_a_phrase_is_present_by_its_words_whatever_its_pieces(encoder: FrozenEncoder) -> None:
    document = Document("Parsing trees is fast .", ("tree parsing", "parse tree"))
    example = make_keyphrase_example(document, 50, encoder.split)
    assert [join_pieces(each) for each in example.present] == [("parse", "tree")]
    assert [join_pieces(each) for each in example.absent] == [("tree", "parsing")]


def test_a_layer_that_is_not_there_is_refused(model: str) -> None:
    with pytest.raises(InputError, match=r"layer must be from 0 to 4 for .*, got 5"):
        open_encoder(model, 5)


def write_encoder_plan(folder: Path, model: str) -> Path:
    plan = write_plan(folder, epochs=1, stage_epochs=1)
    for name in ("train", "valid"):  # short documents, since the tiny encoder reads 22 pieces
        rows = ({"text": f"{a} {b} .", "keyphrases": [f"{a} {b}"]} for a in "abcd" for b in "xyz")
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = f'encoder = "{model}"\nlayer = 2\ntied = true\nhints = true\n'
    text = plan.read_text().replace("[shape]\n", f"[shape]\n{settings}")
    plan.write_text(f"longest = 22\n{text}")
    return plan


def test_training_on_an_encoder_goes_on_exactly_and_predicts(tmp_path: Path, model: str) -> None:
    plan = write_encoder_plan(tmp_path, model)
    whole = train_catseq(plan, tmp_path / "whole")
    for _ in range(10):
        open_encoder.cache_clear()  # as in a new process
        parts = train_catseq(plan, tmp_path / "parts", should_stop=lambda: True)
        if len(parts) == 3 and parts[-1].history.ended:
            break
    for one, other in zip(whole, parts, strict=True):
        weights = [(each.folder / WEIGHTS_FILE).read_bytes() for each in (one, other)]
        assert weights[0] == weights[1]
    generator = load_generator(whole[0].folder)
    assert generator.model.parts["word"].weight.equal(generator.model.parts["vectors"].weight)
    found = generator([Document("a net .", ()), Document("", ())])
    assert found[1] == ()
    assert not any("##" in phrase for phrase in found[0])


def test_documents_longer_than_the_encoder_reads_are_refused(tmp_path: Path, model: str) -> None:
    plan = write_encoder_plan(tmp_path, model)
    plan.write_text(plan.read_text().replace("longest = 22", "longest = 23"))
    with pytest.raises(InputError, match="reads 22 word pieces; set longest to that or less, got"):
        train_catseq(plan, tmp_path / "out")


def test_word_vectors_start_from_those_of_the_encoder(encoder: FrozenEncoder) -> None:
    pieces = encoder.split(("trees",))
    assert len(pieces) > 1
    word, special, *each = encoder.input_vectors(["trees", "<sep>", *pieces])
    assert special is None
    assert word == pytest.approx(np.mean(np.array(each), axis=0))
