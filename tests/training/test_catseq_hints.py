"""What catSeq is told of a document's tokens (hints) and of its own output (history)."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from evenmatch.training.keyphrases.catseq import CatSeq, CatSeqShape
from evenmatch.training.keyphrases.decoding import decode_batch
from evenmatch.training.keyphrases.output_history import start_history
from evenmatch.training.keyphrases.sequences import (
    NEXT_ID,
    SPECIAL_TOKENS,
    KeyphraseExample,
    Vocabulary,
    make_catseq_batch,
)
from evenmatch.training.keyphrases.token_hints import (
    HINT_COUNT,
    TokenHints,
    fit_token_hints,
    parse_token_hints,
)

torch = pytest.importorskip("torch", reason="torch is not installed")

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "a", "b", "c"))
A, B = VOCABULARY.encode(("a", "b"))


def example(text: str, *phrases: str) -> KeyphraseExample:
    return KeyphraseExample(tuple(text.split()), tuple(tuple(p.split()) for p in phrases))


TRAINING = (
    example("neural parser . we train a neural parser", "neural parser"),
    example("deep graphs . we draw deep graphs", "deep graphs"),
    example("fast graphs . they are fast", "fast graphs"),
)
NEW = example("deep graphs . new graphs")


@pytest.fixture(scope="module")
def hints() -> TokenHints:
    return fit_token_hints(TRAINING)


def test_a_token_is_described_by_its_counts_and_place(hints: TokenHints) -> None:
    first, second = hints(NEW.words)[[1, 4], :6]
    idf = math.log(4 / 3)  # two of three documents have graphs
    known = math.log((2 + 0.5) / (2 + 5))  # both as part of a keyphrase
    wanted = [idf / 4, math.log(2), 1, math.log(2) / 4, 1, known / 2]
    assert first == pytest.approx(wanted, rel=1e-5)
    assert second == pytest.approx([*wanted[:2], 0, math.log(5) / 4, 0, known / 2], rel=1e-5)


def test_a_counted_document_is_not_told_its_own_keyphrases(hints: TokenHints) -> None:
    own, other = hints(TRAINING[0].words), replace(hints, own={}, kept={})(TRAINING[0].words)
    assert own[1, 5] == pytest.approx(math.log(0.5 / (1 + 5)) / 2)  # as if in no keyphrase
    assert other[1, 5] == pytest.approx(math.log(1.5 / (1 + 5)) / 2)
    assert own[0, 6] < other[0, 6]  # the candidate that begins there is less likely as well


def test_candidates_mark_where_they_begin_and_end(hints: TokenHints) -> None:
    begins, covers, ends = hints(NEW.words)[:, 6:9].T
    assert begins[0] == covers[0] == covers[1] == ends[1]  # deep graphs, a known keyphrase
    assert begins[1] < begins[0]
    assert [begins[2], covers[2], ends[2]] == [-4, -4, -4]  # a full stop is in no candidate
    assert not hints(NEW.words)[-1].any()


def test_every_piece_of_a_word_has_the_hints_of_the_word(hints: TokenHints) -> None:
    words, pieces = hints(NEW.words), hints(("de", "##ep", "graphs", ".", "new", "gra", "##phs"))
    assert pieces == pytest.approx(words[[0, 0, 1, 2, 3, 4, 4, 5]])


def test_hints_are_the_same_after_they_were_stored(hints: TokenHints) -> None:
    stored = json.dumps(hints.to_dict())
    again = parse_token_hints(stored)
    assert parse_token_hints(stored) is again  # generators share what was computed
    for each in (*TRAINING, NEW):
        assert again(each.words).tolist() == hints(each.words).tolist()


def test_a_document_without_words_has_hints_at_its_end_only(hints: TokenHints) -> None:
    assert hints(()).tolist() == np.zeros((1, HINT_COUNT)).tolist()


def test_history_says_which_words_follow_the_output() -> None:
    batch = make_catseq_batch([example("b a b c a b")], VOCABULARY)
    history = start_history(batch.extended_ids, len(VOCABULARY))
    for token in (A, B):
        history = history.append(batch.extended_ids, torch.tensor([token]))
    follows, follows_two, written, phrase, after = history.features()[0].T.int().tolist()
    assert follows == [0, 1, 0, 1, 0, 0, 1]  # the words after each b
    assert follows_two == [0, 0, 0, 1, 0, 0, 1]  # after each "a b"
    assert written == phrase == [1, 1, 1, 0, 1, 1, 0]
    assert after == [0, 0, 1, 1, 1, 1, 1]  # after the first a
    ended = history.append(batch.extended_ids, torch.tensor([NEXT_ID])).features()[0].T.int()
    assert ended.tolist()[:4] == [[0] * 7, [0] * 7, written, [0] * 7]


def test_a_repeated_word_is_as_likely_as_the_weight_of_repetition_says() -> None:
    def written(weight: float) -> tuple[str, ...]:
        shape = CatSeqShape(embedding=4, hidden=3, attention=2, history=True)
        model = CatSeq(shape, len(VOCABULARY), seed=1)
        with torch.no_grad():
            model.parts["repeat"].weight.fill_(weight)
            model.parts["word"].bias[[A, B, NEXT_ID]] = torch.tensor([9.0, 8.0, 7.0])
            model.parts["own"].bias.fill_(50.0)  # words are not copied
        batch = make_catseq_batch([example("c")], VOCABULARY)
        return decode_batch(model, batch, longest=6).words[0]

    assert written(0.0) == ("a",) * 6
    assert written(-5.0) == ("a", "b", "<sep>") * 2
