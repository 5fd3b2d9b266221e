from __future__ import annotations

import pytest

from evenmatch.data.documents import Document
from evenmatch.errors import InputError
from evenmatch.training.keyphrases.sequences import (
    SPECIAL_TOKENS,
    UNKNOWN_ID,
    KeyphraseExample,
    Vocabulary,
    build_vocabulary,
    epoch_batches,
    make_catseq_batch,
    make_keyphrase_example,
    make_keyphrase_examples,
    parse_phrases,
)

DOCUMENT = Document("We parse trees . Trees help parsing .", ("logic", "parsing", "tree parse"))


def test_present_phrases_come_first_by_place_and_absent_ones_after_their_mark() -> None:
    document = Document("Neural nets parse trees .", ("logic", "parsing tree", "neural net"))
    target = " ".join(make_keyphrase_example(document, 400).target)
    assert target == "neural net <sep> parsing tree <peos> logic <eos>"


@pytest.mark.parametrize(
    ("present", "absent", "target"),
    [((), (("a",),), "<peos> a <eos>"), ((("a",),), (), "a <peos> <eos>")],
)
def test_a_group_without_phrases_still_has_its_mark(
    present: tuple[tuple[str, ...], ...], absent: tuple[tuple[str, ...], ...], target: str
) -> None:
    assert " ".join(KeyphraseExample((), present, absent).target) == target


def test_a_phrase_beyond_the_words_that_are_read_is_absent() -> None:
    document = Document("nets parse trees", ("nets", "trees"))
    assert make_keyphrase_example(document, 2).absent == (("trees",),)


def test_what_is_written_is_read_back() -> None:
    example = make_keyphrase_example(DOCUMENT, 400)
    assert parse_phrases(example.target) == (example.present, example.absent)


def test_without_its_mark_everything_written_is_present() -> None:
    assert parse_phrases("a b <sep> c".split()) == ((("a", "b"), ("c",)), ())


def test_a_second_mark_only_ends_a_phrase() -> None:
    assert parse_phrases("a <peos> b <peos> c <eos> d".split()) == ((("a",),), (("b",), ("c",)))


def test_documents_too_long_or_with_too_many_phrases_or_none_are_not_learnt_from() -> None:
    good = Document("a b c", ("a",))
    bad = [Document("a b c d", ("a",)), Document("a b", ("a", "b", "c")), Document("a", ())]
    found = make_keyphrase_examples([good, *bad], longest=3, most_phrases=2)
    assert found.examples == (make_keyphrase_example(good, 3),)
    assert str(found) == (
        "1 of 4 documents used; left out: 1 longer than 3 tokens, "
        "1 with more than 2 keyphrases, 1 without keyphrases"
    )
    assert str(make_keyphrase_examples([good])) == "1 of 1 documents used"
    with pytest.raises(InputError, match="no document has at most 3 tokens and 1 to 2 keyphrases"):
        make_keyphrase_examples(bad, longest=3, most_phrases=2)


def test_the_vocabulary_has_the_most_frequent_words_after_the_marks() -> None:
    vocabulary = build_vocabulary(
        [KeyphraseExample(("b", "a", "a", "c"), (("b",),), ())], len(SPECIAL_TOKENS) + 2
    )
    assert vocabulary.words == (*SPECIAL_TOKENS, "a", "b")


def test_a_vocabulary_of_special_tokens_alone_is_refused() -> None:
    with pytest.raises(InputError, match="larger than its 6 special tokens, got 6"):
        build_vocabulary([KeyphraseExample(("a",))], 6)


def test_a_vocabulary_without_marks_is_refused() -> None:
    with pytest.raises(InputError, match="starts with <pad> <bos>"):
        Vocabulary(("a", "b"))


def test_strange_words_of_a_document_have_numbers_of_their_own() -> None:
    vocabulary = Vocabulary((*SPECIAL_TOKENS, "a"))
    example = KeyphraseExample(("x", "a", "y", "x"), (("y",),), (("z",),))
    batch = make_catseq_batch([example], vocabulary)
    assert batch.extended_ids[0].tolist() == [7, 6, 8, 7, 2]
    assert batch.source_ids[0].tolist() == [UNKNOWN_ID, 6, UNKNOWN_ID, UNKNOWN_ID, 2]
    assert batch.targets[0].tolist() == [8, 5, UNKNOWN_ID, 2]
    assert vocabulary.word(8, batch.unknown_words[0]) == "y"


def test_an_epoch_is_the_same_whenever_it_is_asked_for_and_unlike_another() -> None:
    first, again, second = (
        [b.tolist() for b in epoch_batches(range(40), 4, seed=1, number=n)] for n in (0, 0, 1)
    )
    assert first == again != second
    assert sorted(i for batch in second for i in batch) == list(range(40))
