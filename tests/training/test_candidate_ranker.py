from __future__ import annotations

import math

import numpy as np
import pytest

from evenmatch.data.documents import Document
from evenmatch.errors import InputError
from evenmatch.training.keyphrases.candidate_ranker import (
    CandidateRanker,
    candidate_features,
    choose_threshold,
    count_corpus,
    find_candidates,
    fit_candidate_ranker,
    fit_tfidf_ranker,
)

NOUNS = "tree graph net parser model corpus".split()


def documents(count: int, seed: int) -> list[Document]:
    """The keyphrase is the noun phrase after "study", which occurs twice."""
    draw = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        one, other = draw.choice(NOUNS, 2, replace=False)
        text = f"we study the deep {one} . of the {other} , and the deep {one} of the past"
        made.append(Document(text, (f"deep {one}",)))
    return made


COUNTS = count_corpus(documents(20, 0))


def test_candidates_neither_cross_punctuation_nor_end_in_common_words() -> None:
    words = tuple("the deep net of the past . tree".split())
    found = [" ".join(each.words) for each in find_candidates(words, COUNTS)]
    assert "deep net" in found
    assert "tree" in found
    assert not any(phrase.startswith("the") or "." in phrase for phrase in found)


def test_a_document_does_not_tell_its_own_keyphrases() -> None:
    only = Document("a rare gem shines", ("rare gem",))
    counts = count_corpus([only, *documents(5, 1)])
    found = find_candidates(("a", "rare", "gem", "shines"), counts)
    place = [each.words for each in found].index(("rare", "gem"))
    known, unknown = (
        candidate_features(found, counts, own)[place]
        for own in (frozenset(), frozenset({("rare", "gem")}))
    )
    assert known[-2] == pytest.approx(math.log(2))
    assert unknown[-2] == 0


def test_tfidf_is_the_count_times_the_sum_of_inverse_document_frequencies() -> None:
    counts = count_corpus([Document("x y", ("y",)), Document("x", ()), Document("x", ())])
    found = find_candidates(("y", "y"), counts)
    rows = candidate_features(found, counts)
    assert rows[0][0] == pytest.approx(2 * math.log(4 / 2))


def test_a_ranker_learns_which_phrases_are_keyphrases() -> None:
    ranker = fit_candidate_ranker(documents(60, 2), documents(20, 3))
    test = documents(20, 4)
    assert [found[0] for found in ranker(test)] == [each.keyphrases[0] for each in test]


def test_the_threshold_is_the_one_with_the_best_f1() -> None:
    """By count: deep net 2, of which the gold phrase is the first."""
    ranker = fit_tfidf_ranker(documents(20, 5), documents(20, 6))
    assert max(map(len, ranker(documents(20, 7)))) <= 3
    everything = CandidateRanker(ranker.counts, ranker.score, -math.inf)
    assert choose_threshold(everything, documents(20, 6)).threshold == ranker.threshold


def test_a_part_of_a_better_phrase_is_left_out() -> None:
    ranker = fit_candidate_ranker(documents(60, 2), documents(20, 3))
    ranked = [" ".join(each.words) for _, each in ranker.rank(documents(1, 8)[0])]
    assert ranked[0].startswith("deep ")
    assert "deep" not in ranked


def test_documents_without_keyphrases_cannot_train_a_ranker() -> None:
    with pytest.raises(InputError, match="no document has both words and keyphrases"):
        fit_candidate_ranker([Document("a text", ())], documents(2, 0))
    with pytest.raises(InputError, match="no validation document has words"):
        fit_tfidf_ranker(documents(2, 0), [Document("", ())])


def test_a_document_without_words_gets_no_phrases() -> None:
    assert fit_tfidf_ranker(documents(9, 0), documents(9, 1))([Document("", ())]) == [()]
