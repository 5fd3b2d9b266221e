"""Every score of the full table, against a second implementation on random and published lists."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nltk.stem.porter import PorterStemmer

import evenmatch as em
from evenmatch.data.documents import Document, DocumentSet
from evenmatch.evaluation.keyphrase_scores import (
    ALL_KEYPHRASE_METRICS,
    LIST_STATISTICS,
    score_keyphrases,
)
from evenmatch.evaluation.keyphrase_table import KeyphraseRow, KeyphraseTable

stem = cache(PorterStemmer().stem)
Lists = tuple[list[str], list[str], list[str]]  # predicted, predicted without duplicates, gold


def stemmed(phrase: str) -> str:
    return " ".join(stem(word.lower()) for word in phrase.split())


def lists_of(document: Document, column: str) -> Lists:
    text = f" {stemmed(document.text)} "

    def select(phrases: list[str]) -> list[str]:
        return [
            p for p in phrases if column == "all" or (f" {p} " in text) == (column == "present")
        ]

    given = [stemmed(p) for p in document.predictions["s"]]
    valid = [p for p in given if not {",", ".", "<unk>"} & set(p.split())]
    gold = [stemmed(p) for p in document.keyphrases]
    return select(given), [*dict.fromkeys(select(valid))], [*dict.fromkeys(select(gold))]


def f(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def precision_recall(lists: Lists, k: int | str) -> tuple[float, float]:
    _, given, gold = lists
    size = {"M": len(given), "O": len(gold)}.get(str(k), k)
    assert isinstance(size, int)
    correct = sum(p in gold for p in given[:size])
    return (correct / size if given and size else 0.0, correct / len(gold) if gold else 0.0)


def average_precision(lists: Lists) -> float:
    _, given, gold = lists
    hits = [p in gold for p in given]
    found = [sum(hits[: i + 1]) / (i + 1) for i, hit in enumerate(hits) if hit]
    return sum(found) / len(gold) if gold else 0.0


def dcg(gains: list[float]) -> float:
    return sum(gain / math.log(rank + 1, 2) for rank, gain in enumerate(gains, 1))


def ndcg(lists: Lists, own: bool) -> float:
    _, given, gold = lists
    hits = [float(p in gold) for p in given]
    best = dcg(sorted(hits, reverse=True) if own else [1.0] * len(gold))
    return dcg(hits) / best if best else 0.0


def alpha_ndcg(lists: Lists) -> float:
    _, given, gold = lists

    def gain(phrase: str, before: list[str]) -> float:
        return sum(0.5 ** sum(q in y for q in before) for y in gold if phrase in y)

    gains = [gain(p, given[:i]) for i, p in enumerate(given)]
    left, order, best = list(given), list[str](), list[float]()
    while left:
        values = [gain(p, order) for p in left]
        at = values.index(max(values))
        best.append(values[at])
        order.append(left.pop(at))
    return min(1.0, dcg(gains) / dcg(best)) if dcg(best) else 0.0


def mean(values: Iterator[float] | list[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


def duplicates(items: list[str]) -> float:
    return sum(item in items[:i] for i, item in enumerate(items)) / len(items)


def expected(documents: list[Document], column: str) -> dict[str, float]:
    every = [lists_of(document, column) for document in documents]

    def corpus(k: int | str) -> tuple[float, float, float]:
        parts = [precision_recall(lists, k) for lists in every]
        p, r = mean([p for p, _ in parts]), mean([r for _, r in parts])
        return p, r, f(p, r)

    given = [lists[0] for lists in every if lists[0]]
    return {
        "f1_at_5": corpus(5)[2],
        "f1_at_m": corpus("M")[2],
        "f1_at_10": corpus(10)[2],
        "f1_at_o": corpus("O")[2],
        "recall_at_10": corpus(10)[1],
        "recall_at_50": corpus(50)[1],
        "keyphrase_map": mean(average_precision(lists) for lists in every),
        "keyphrase_ndcg": mean(ndcg(lists, False) for lists in every),
        "keyphrase_ndcg(ideal='predictions')": mean(ndcg(lists, True) for lists in every),
        "keyphrase_alpha_ndcg": mean(alpha_ndcg(lists) for lists in every),
        "predicted_phrases": mean(float(len(lists[1])) for lists in every),
        "gold_phrases": mean(float(len(lists[2])) for lists in every),
        "count_error": mean(float(abs(len(lists[1]) - len(lists[2]))) for lists in every),
        "duplicate_phrases": mean(map(duplicates, given)),
        "duplicate_words": mean(duplicates([w for p in each for w in p.split()]) for each in given),
    }


WORDS = "tree trees graph net nets neural parse deep model data".split()


def random_documents(count: int) -> list[Document]:
    draw = random.Random(1)

    def phrases(most: int) -> tuple[str, ...]:
        lengths = [draw.choice((1, 1, 2, 3)) for _ in range(draw.randint(0, most))]
        return tuple(" ".join(draw.choices(WORDS, k=length)) for length in lengths)

    made = []
    for _ in range(count):
        gold, extra = phrases(6), (f"{draw.choice(WORDS)} <unk>", "a , b")
        predicted = [*phrases(14), *draw.sample(gold, len(gold) // 2), draw.choice(extra)]
        draw.shuffle(predicted)
        made.append(Document(" ".join(draw.choices(WORDS, k=12)), gold, {"s": tuple(predicted)}))
    return made


def table(documents: list[Document], *metrics: str) -> dict[str, KeyphraseRow]:
    documents_of_s = DocumentSet("made", tuple(documents), ("s",))
    found = score_keyphrases(documents_of_s, metrics or None, full=True, resamples=2, trials=1)
    return {row.metric: row for row in found.rows}


LEXICAL = [name for name in ALL_KEYPHRASE_METRICS if name != "sem_f1"]


@pytest.mark.model
@pytest.mark.parametrize("column", ["present", "absent", "all"])
def test_scores_of_random_lists_are_those_of_a_second_implementation(
    column: Any, random_table: dict[str, KeyphraseRow]
) -> None:
    wanted = expected(random_documents(300), column)
    found = {name: random_table[name].cells[column].value for name in wanted}
    assert found == pytest.approx(wanted, abs=1e-12)


@pytest.fixture(scope="module")
def random_table() -> dict[str, KeyphraseRow]:
    return table(random_documents(300), *LEXICAL)


@pytest.mark.model
def test_the_columns_of_precision_and_recall_are_means_over_documents(
    random_table: dict[str, KeyphraseRow],
) -> None:
    every = [lists_of(document, "absent") for document in random_documents(300)]
    for name, k in (("f1_at_5", 5), ("f1_at_m", "M"), ("recall_at_10", 10)):
        row, parts = random_table[name], [precision_recall(lists, k) for lists in every]
        assert row.precision["absent"] == pytest.approx(mean([p for p, _ in parts]), abs=1e-12)
        assert row.recall["absent"] == pytest.approx(mean([r for _, r in parts]), abs=1e-12)
    assert not random_table["fg"].precision
    assert not random_table["count_error"].recall


@pytest.mark.model
@pytest.mark.parametrize("name", ["krapivin", "nus", "semeval"])
def test_published_predictions_have_the_scores_of_a_second_implementation(
    data: Path, name: str
) -> None:
    documents = []
    with gzip.open(data / "kp-predictions" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        for record in map(json.loads, islice(file, 60)):
            text = f"{record['title']} {record['abstract']}"
            predicted = tuple(record["pred"]["catSeqTG-2RF1-seed1234"])
            documents.append(Document(text, tuple(record["keyphrases"]), {"s": predicted}))
    found = table(documents, *LEXICAL)
    for column in ("present", "absent", "all"):
        wanted = expected(documents, column)
        values = {metric: found[metric].cells[column].value for metric in wanted}
        assert values == pytest.approx(wanted, abs=1e-12)


@pytest.fixture(scope="module")
def embed() -> Callable[[str], Any]:
    """Mean of the last hidden states of a phrase's tokens, by transformers itself."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from evenmatch.models.checkpoints import find_checkpoint

    folder = find_checkpoint("minilm").folder
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()

    @cache
    def vector(phrase: str) -> Any:
        with torch.no_grad():
            states = model(**tokenizer(phrase, return_tensors="pt")).last_hidden_state[0, 1:-1]
        pooled = states.mean(0).double().numpy()
        return pooled / np.linalg.norm(pooled)

    return vector


PHRASES = ("Neural nets", "car", "automobile", "parsing trees", "deep learning", "x ray")


@pytest.mark.model
def test_semantic_scores_are_those_of_a_second_implementation(
    embed: Callable[[str], Any],
) -> None:
    gold = ("neural net", "cars", "tree parser")
    documents = [Document("we parse", gold, {"s": PHRASES}), Document("a b", gold, {"s": ("car",)})]

    def similar(p: str, q: str) -> float:
        return 1.0 if stemmed(p) == stemmed(q) else max(0.0, float(embed(p) @ embed(q)))

    precisions = [
        mean(max(similar(p, q) for q in gold) for p in d.predictions["s"]) for d in documents
    ]
    recalls = [
        mean(max(similar(p, q) for p in d.predictions["s"]) for q in gold) for d in documents
    ]
    rows = table(documents, "sem_f1")
    row = rows["sem_f1"]
    assert row.precision["all"] == pytest.approx(mean(precisions), abs=1e-5)
    assert row.recall["all"] == pytest.approx(mean(recalls), abs=1e-5)
    assert row.cells["all"].value == pytest.approx(mean(map(f, precisions, recalls)), abs=1e-5)
    # of the first document alone, since one phrase has no pairs
    pairs = mean(similar(p, q) for p, q in combinations(PHRASES, 2))
    assert rows["self_similarity"].cells["all"].value == pytest.approx(pairs, abs=1e-5)


@pytest.mark.model
def test_repeated_phrases_raise_duplicates_and_self_similarity_and_not_the_counts() -> None:
    once, twice = (
        table([Document("a", ("car",), {"s": predicted})], "f1_at_m")
        for predicted in (("car", "tree"), ("car", "tree", "cars", "car tree"))
    )
    assert twice["duplicate_phrases"].cells["all"].value == pytest.approx(1 / 4)
    assert twice["duplicate_words"].cells["all"].value == pytest.approx(3 / 5)
    assert once["duplicate_words"].cells["all"].value == 0
    assert twice["predicted_phrases"].cells["all"].value == 3
    assert twice["self_similarity"].cells["all"].value > once["self_similarity"].cells["all"].value


@pytest.mark.model
def test_the_full_table_has_every_metric_and_shows_precision_and_recall() -> None:
    documents = DocumentSet("made", tuple(random_documents(4)), ("s",))
    found = score_keyphrases(documents, full=True, resamples=2, trials=1)
    assert [row.metric for row in found.rows] == [*ALL_KEYPHRASE_METRICS, *LIST_STATISTICS]
    header, *lines = found.score_table()
    assert header[-3:] == ["P/R present", "P/R absent", "P/R all"]
    row = found.rows[1]
    assert lines[1][-1] == f"{row.precision['all']:.3f}/{row.recall['all']:.3f}"
    assert lines[0][-1] == "-"
    flat = found.flat_records()
    assert flat[1]["precision_all"] == row.precision["all"]
    assert flat[0]["recall_present"] == ""


def test_the_short_table_has_precision_and_recall_in_its_record_only() -> None:
    documents = DocumentSet("made", tuple(random_documents(4)), ("s",))
    found: KeyphraseTable = score_keyphrases(documents, resamples=2, trials=1)
    assert "P/R all" not in found.score_table()[0]
    fg, f1, _ = found.document()["rows"]
    assert fg["precision"] is None
    assert f1["recall"] == dict(found.rows[1].recall)
    assert "precision_all" not in found.flat_records()[0]


def variants(*gold: str | tuple[str, ...], predicted: tuple[str, ...], text: str = "") -> Document:
    lists = tuple((each,) if isinstance(each, str) else each for each in gold)
    return Document(text, tuple(each[0] for each in lists), {"s": predicted}, variants=lists)


@pytest.mark.parametrize(
    ("spec", "predicted", "value"),
    [
        ("f1_at_m", ("nn", "parsing"), 1),
        ("f1_at_m", ("neural network", "parsing"), 1),
        # two variants of one phrase: one is correct
        ("f1_at_m", ("nn", "neural networks"), 1 / 2),
        ("recall_at_10", ("nn",), 1 / 2),
        ("keyphrase_map", ("x", "nn"), 1 / 4),
        ("fg", ("nn", "parsing"), 1),
        # the variant that is closest to a prediction: 'neural network' for half of its words
        ("fg(quantity=False)", ("neural thing",), 1 / 2),
        ("fg(quantity=False)", ("neural network", "x"), 1 / 2),
        ("f1_at_m", (), 0),
    ],
)
def test_any_variant_counts_as_the_phrase(
    spec: str, predicted: tuple[str, ...], value: float
) -> None:
    pair = variants(("neural network", "NN"), "parsing", predicted=predicted).to_pair("s")
    assert em.build(spec)([pair]).segments[0].value == pytest.approx(value)


def test_a_phrase_is_present_if_one_of_its_variants_is() -> None:
    document = variants(("neural network", "nn"), "x", predicted=("nn",), text="an nn is deep")
    found = em.build("f1_at_m(which='present')")([document.to_pair("s")]).segments[0]
    assert (found.precision, found.recall) == (1, 1)
    absent = em.build("f1_at_m(which='absent')")([document.to_pair("s")]).segments[0]
    assert "empty_candidate" in absent.flags
    assert absent.recall == 0


@pytest.mark.model
def test_variants_are_one_gold_phrase_in_the_counts() -> None:
    document = variants(("neural network", "nn", "net"), "parsing", predicted=("nn",))
    assert table([document], "fg")["gold_phrases"].cells["all"].value == 2


def test_the_page_of_scores_is_that_of_the_results() -> None:
    from tools.pages import keyphrase_scores as pages

    rows = json.loads(pages.ROWS.read_text("utf-8"))["rows"]
    scorer = json.loads(pages.SCORER.read_text("utf-8"))
    assert pages.PAGE.read_text("utf-8") == pages.page(rows, scorer)
