"""The documents of the keyphrase experiment: to learn from, to look at, and to test on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evenmatch.data.catalogue import find
from evenmatch.data.documents import Document
from evenmatch.data.documents_reading import read_documents
from evenmatch.uses.train.catseq_words import words_of

_LOOKED_AT = {"kp20k-small": 200, "kp-inspec": 100}  # documents of the sets for validation
_RUN = 8  # words in a row by which a text is known again
_SHARED = 0.2  # the share of such runs above which two texts are one


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents by what they are for; the tests by name, in the order of tables."""

    train: tuple[Document, ...]
    valid: tuple[Document, ...]
    tests: Mapping[str, tuple[Document, ...]]

    @property
    def digest(self) -> str:
        """The test documents by content; those to learn from are known by what is made of them."""
        parts = (d.text for each in self.tests.values() for d in each)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def public_corpus() -> Corpus:
    """What is public and at hand: samples of KP20k, Inspec and Krapivin.

    Krapivin has no documents for training of its own: they are those outside the usual test set.
    Documents for validation beyond those looked at are learnt from. Nothing of a test is.
    """
    tests = {
        "Inspec": tuple(_documents("kp-predictions", "inspec")),
        "Krapivin": tuple(_documents("kp-predictions", "krapivin")),
        "KP20k": tuple(_documents("kp20k-small", "test")),
    }
    valid, train = [], [*_documents("kp-krapivin", "test")]
    for name, count in _LOOKED_AT.items():
        others = list(_documents(name, "valid"))
        valid += others[:count]
        train += [*_documents(name, "train"), *others[count:]]
    judged = [*valid, *(d for each in tests.values() for d in each)]
    return Corpus(tuple(without(train, judged)), tuple(without(valid, judged[len(valid) :])), tests)


def without(documents: Iterable[Document], judged: Sequence[Document]) -> Iterator[Document]:
    """The documents whose text is not among those judged, however its words are set."""
    known = {run for document in judged for run in _runs(document)}
    for document in documents:
        own = _runs(document)
        if sum(run in known for run in own) <= _SHARED * len(own):
            yield document


def _runs(document: Document) -> set[tuple[str, ...]]:
    words = [word for word in words_of(document.text) if word.isalpha()]
    return {tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)}


def _documents(name: str, part: str) -> Iterator[Document]:
    """The documents of one file of a public set, without what others predicted."""
    for found in read_documents(str(find(name) / f"{part}.jsonl.gz")):
        for document in found.documents:
            yield Document(document.text, document.keyphrases)
