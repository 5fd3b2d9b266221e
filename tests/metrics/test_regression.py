from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.scoring.metric_contract import check_metric
from tests.support.small_models import PAIRS, save

torch = pytest.importorskip("torch", reason="torch is not installed")
AUTO = "AutoModelForSequenceClassification"
CANDIDATES = [candidate for candidate, _ in PAIRS]
REFERENCES = [reference for _, reference in PAIRS]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(
        tmp_path_factory.mktemp("bert"), "bert", AUTO, num_labels=1, max_position_embeddings=48
    )


def one_by_one(folder: Path, first: Sequence[str], second: Sequence[str]) -> list[float]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    found = []
    for a, b in zip(first, second, strict=True):
        with torch.no_grad():
            found.append(float(model(**tokenizer(a, b, return_tensors="pt")).logits))
    return found


@pytest.mark.parametrize("batch_tokens", [1, 4096])
def test_bleurt_reads_the_reference_first(bert: Path, batch_tokens: int) -> None:
    metric = f"bleurt(model={str(bert)!r})"
    scores = em.score(CANDIDATES, REFERENCES, metric, batch_tokens=batch_tokens)
    wanted = one_by_one(bert, REFERENCES, CANDIDATES)
    assert [s.value for s in scores.segments] == pytest.approx(wanted, abs=1e-5)


def test_frugalscore_reads_the_candidate_first(bert: Path) -> None:
    scores = em.score(CANDIDATES, REFERENCES, f"frugalscore(model={str(bert)!r})")
    wanted = one_by_one(bert, CANDIDATES, REFERENCES)
    assert [s.value for s in scores.segments] == pytest.approx(wanted, abs=1e-5)
    assert wanted != pytest.approx(one_by_one(bert, REFERENCES, CANDIDATES), abs=1e-5)


def test_which_text_is_read_counts_too(tmp_path: Path) -> None:
    """Without token types, as RoBERTa has none, a model reads both texts all the same."""
    folder = save(tmp_path, "roberta", AUTO, num_labels=1, max_position_embeddings=66)
    scores = em.score(CANDIDATES[:1], REFERENCES[:1], f"bleurt(model={str(folder)!r})")
    assert scores.mean == pytest.approx(
        one_by_one(folder, REFERENCES[:1], CANDIDATES[:1])[0], abs=1e-5
    )


def test_a_metric_that_learnt_from_ratings_passes_the_published_check(bert: Path) -> None:
    check_metric(em.build(f"regression(model={str(bert)!r})"))


def test_the_longer_text_is_truncated_first_and_flagged(bert: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    long = "the quick brown fox jumps over the lazy dog " * 5
    [score] = em.score([long], ["rain"], f"regression(model={str(bert)!r}, limit=20)").segments
    tokenizer = AutoTokenizer.from_pretrained(bert)
    model = AutoModelForSequenceClassification.from_pretrained(bert).eval()
    given = tokenizer("rain", long, truncation="longest_first", max_length=20, return_tensors="pt")
    with torch.no_grad():
        assert score.value == pytest.approx(float(model(**given).logits), abs=1e-5)
    assert score.flags == {"truncated"}


def test_texts_too_long_can_be_an_error(bert: Path) -> None:
    with pytest.raises(em.InputError, match=r"two texts have \d+ tokens, .* reads 48; shorten"):
        em.score(["rain " * 90], ["rain"], f"regression(model={str(bert)!r}, long='error')")


def test_empty_texts_are_scored_by_the_model_and_flagged(bert: Path) -> None:
    scores = em.score(["", "rain"], ["rain", ""], f"bleurt(model={str(bert)!r})")
    assert [s.flags for s in scores.segments] == [{"empty_candidate"}, {"empty_reference"}]
    wanted = one_by_one(bert, ["rain", ""], ["", "rain"])
    assert [s.value for s in scores.segments] == pytest.approx(wanted, abs=1e-5)


def test_the_best_of_several_references_counts(bert: Path) -> None:
    metric = f"bleurt(model={str(bert)!r})"
    [both] = em.score(["rain"], [["rain", "a cat sat"]], metric).segments
    single = em.score(["rain"] * 2, ["rain", "a cat sat"], metric).segments
    assert both.value == pytest.approx(max(s.value for s in single), abs=1e-6)


def test_a_model_that_gives_several_numbers_is_refused(tmp_path: Path) -> None:
    folder = save(tmp_path, "bert", AUTO, num_labels=3)
    with pytest.raises(em.InputError, match="gives 3 numbers for a pair; name a model that gives"):
        em.score(["a"], ["a"], f"bleurt(model={str(folder)!r})")


@pytest.mark.model
def test_a_model_that_never_learnt_to_give_a_number_is_refused() -> None:
    with pytest.raises(em.DataError, match="minilm was not trained to give a number: it lacks"):
        em.score(["a"], ["a"], "bleurt(model='minilm')")


def test_a_limit_without_room_is_refused() -> None:
    with pytest.raises(em.InputError, match="limit must be 0 or leave room for both texts, got 3"):
        em.build("bleurt(limit=3)")


def test_the_signature_names_the_model_by_content(bert: Path) -> None:
    signature = em.build(f"bleurt(model={str(bert)!r})").signature
    assert str(bert) not in signature
    assert signature.startswith("regression(model='sha256:")


def test_model_metrics_are_streamed_in_chunks(bert: Path) -> None:
    from evenmatch.scoring.streaming import score_stream
    from evenmatch.types import Pair, Run

    pairs = [Pair(c, (r,)) for c, r in PAIRS]
    metric = em.build(f"bleurt(model={str(bert)!r})")
    told: list[tuple[int, int]] = []
    run = Run(progress=lambda done, total: told.append((done, total)))
    found = list(score_stream([metric], iter(pairs), run, chunk_size=2, total=len(pairs)))
    assert [len(scores.segments) for _, [scores] in found] == [2, 2, 1]
    assert told == [(2, 5), (4, 5), (5, 5)]
    whole = metric(pairs).segments
    joined = [s.value for _, [scores] in found for s in scores.segments]
    assert joined == pytest.approx([s.value for s in whole], abs=1e-6)
