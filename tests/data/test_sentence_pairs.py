from __future__ import annotations

from pathlib import Path

import pytest

from evenmatch.data.pairs import TRAINING_SPLITS, read_sentence_pairs
from evenmatch.errors import InputError
from evenmatch.types import Pair


def test_a_file_of_pairs_is_read_as_score_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"candidate": "a", "reference": "b"}\n')
    assert read_sentence_pairs(str(path)) == [Pair("a", ("b",))]


@pytest.mark.parametrize("name", TRAINING_SPLITS)
def test_public_sets_give_their_training_pairs(name: str, data: Path) -> None:
    pairs = read_sentence_pairs(name)
    assert len(pairs) > 1000
    assert all(pair.candidate and pair.references[0] for pair in pairs[:50])


def test_an_unknown_set_is_an_error() -> None:
    with pytest.raises(InputError, match="no set of sentence pairs is called 'nowhere'; give a"):
        read_sentence_pairs("nowhere")
