from __future__ import annotations

import pytest

from evenmatch.data.documents import Document
from evenmatch.errors import InputError
from evenmatch.uses.train.catseq_batch import batch_of, epoch
from evenmatch.uses.train.catseq_vocabulary import UNKNOWN_ID, Vocabulary, vocabulary_of
from evenmatch.uses.train.catseq_words import MARKS, Example, example_of, examples_of, groups_of

DOCUMENT = Document("We parse trees . Trees help parsing .", ("logic", "parsing", "tree parse"))


def test_present_phrases_come_first_by_place_and_absent_ones_after_their_mark() -> None:
    document = Document("Neural nets parse trees .", ("logic", "parsing tree", "neural net"))
    target = " ".join(example_of(document, 400).target)
    assert target == "neural net <sep> parsing tree <peos> logic <eos>"


@pytest.mark.parametrize(
    ("present", "absent", "target"),
    [((), (("a",),), "<peos> a <eos>"), ((("a",),), (), "a <peos> <eos>")],
)
def test_a_group_without_phrases_still_has_its_mark(
    present: tuple[tuple[str, ...], ...], absent: tuple[tuple[str, ...], ...], target: str
) -> None:
    assert " ".join(Example((), present, absent).target) == target


def test_a_phrase_beyond_the_words_that_are_read_is_absent() -> None:
    document = Document("nets parse trees", ("nets", "trees"))
    assert example_of(document, 2).absent == (("trees",),)


def test_what_is_written_is_read_back() -> None:
    example = example_of(DOCUMENT, 400)
    assert groups_of(example.target) == (example.present, example.absent)


def test_without_its_mark_everything_written_is_present() -> None:
    assert groups_of("a b <sep> c".split()) == ((("a", "b"), ("c",)), ())


def test_a_second_mark_only_ends_a_phrase() -> None:
    assert groups_of("a <peos> b <peos> c <eos> d".split()) == ((("a",),), (("b",), ("c",)))


def test_documents_too_long_or_with_too_many_phrases_or_none_are_not_learnt_from() -> None:
    good = Document("a b c", ("a",))
    bad = [Document("a b c d", ("a",)), Document("a b", ("a", "b", "c")), Document("a", ())]
    assert examples_of([good, *bad], longest=3, most_phrases=2) == [example_of(good, 3)]
    with pytest.raises(InputError, match="no document with at most 3 words and 1 to 2 keyphrases"):
        examples_of(bad, longest=3, most_phrases=2)


def test_the_vocabulary_has_the_most_frequent_words_after_the_marks() -> None:
    vocabulary = vocabulary_of([Example(("b", "a", "a", "c"), (("b",),), ())], len(MARKS) + 2)
    assert vocabulary.words == (*MARKS, "a", "b")


def test_a_vocabulary_of_marks_alone_is_refused() -> None:
    with pytest.raises(InputError, match="needs more than its 6 marks, got 6 words"):
        vocabulary_of([Example(("a",))], 6)


def test_a_vocabulary_without_marks_is_refused() -> None:
    with pytest.raises(InputError, match="starts with <pad> <bos>"):
        Vocabulary(("a", "b"))


def test_strange_words_of_a_document_have_numbers_of_their_own() -> None:
    vocabulary = Vocabulary((*MARKS, "a"))
    example = Example(("x", "a", "y", "x"), (("y",),), (("z",),))
    batch = batch_of([example], vocabulary)
    assert batch.copied[0].tolist() == [7, 6, 8, 7, 2]
    assert batch.known[0].tolist() == [UNKNOWN_ID, 6, UNKNOWN_ID, UNKNOWN_ID, 2]
    assert batch.targets[0].tolist() == [8, 5, UNKNOWN_ID, 2]
    assert vocabulary.word(8, batch.strange[0]) == "y"


def test_an_epoch_is_the_same_whenever_it_is_asked_for_and_unlike_another() -> None:
    first, again, second = (
        [b.tolist() for b in epoch(range(40), 4, seed=1, number=n)] for n in (0, 0, 1)
    )
    assert first == again != second
    assert sorted(i for batch in second for i in batch) == list(range(40))
