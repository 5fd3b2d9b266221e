"""Each n-gram metric gives what its library gives, on pairs of our own and on real ones."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import nltk
import pytest
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk.translate import bleu_score, chrf_score, meteor_score, nist_score
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

import evenmatch as em
from evenmatch.metrics.ngram.meteor import wordnet
from evenmatch.models.checkpoints import find_package
from evenmatch.types import Score

Rows = list[tuple[str, list[str]]]

OWN: Rows = [
    ("The cat sat on the mat.", ["The cat is sitting on the mat.", "A cat sat on a mat."]),
    ("the cat the cat the cat", ["The cat sat on the mat."]),
    ("It's 20% off until Friday!", ["Until Friday, it is 20 % off."]),
    ("He bought a car.", ["He purchased an automobile.", "She sold a bicycle."]),
    ("She runs quickly", ["She ran quick", "Her running is quick", "They sleep"]),
    ("rain", ["rain"]),
    ("rain", ["snow"]),
    ("two words", ["two words"]),
    ("one two three", ["one two three"]),
    ("one two three four", ["one two three four"]),
    ("a b c d e f g", ["a b c d e f g h"]),
    (
        "Prices rose by 3.5 per cent in May, the bank said.",
        ["The bank said prices rose 3.5% in May."],
    ),
    ("The committee's decision was un-expected", ["The decision of the committee was unexpected."]),
    ('"Well," he said, "that is that."', ["'Well', he said. 'That is that.'"]),
    ("We visited the museum (twice).", ["We went to the museum two times.", "Twice we saw it."]),
    ("http://example.org/a?b=c is down", ["The page http://example.org/a?b=c is not reachable"]),
    (
        "The café in São Paulo was naïvely décorated",
        ["The cafe in Sao Paulo was naively decorated"],
    ),
    ("Über den Wolken muss die Freiheit sein", ["Über den Wolken ist die Freiheit"]),
    ("The word 猫 means cat.", ["The word 猫 stands for a cat."]),
    ("UPPER CASE TEXT HERE NOW", ["upper case text here now"]),
    ("Children were playing in the gardens", ["A child played in a garden", "Kids play outdoors"]),
    ("the the the the the the the", ["the cat is on the mat", "there is a cat on the mat"]),
    (
        "On Monday the ship left port and sailed north",
        ["The ship sailed north from port on Monday"],
    ),
    ("b a d c f e h g", ["a b c d e f g h"]),
    ("A very long sentence that goes on and on without saying very much at all", ["Short one."]),
    ("Short one.", ["A very long sentence that goes on and on without saying very much at all"]),
    ("$5 or €5?", ["5 dollars or 5 euros?"]),
    ("e.g. this, i.e. that", ["for example this, that is that"]),
    ("tabs\tand  double  spaces ", ["tabs and double spaces"]),
    ("line one\nline two", ["line one line two"]),
    ("They are big , round ; and red .", ["They are big, round; and red."]),
]
CHRF_PLUS = "chrf(word_order=2)"


@pytest.fixture(scope="module")
def nltk_wordnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A reader of nltk itself over the WordNet that METEOR here reads."""
    root = tmp_path_factory.mktemp("nltk_data")
    folder = shutil.copytree(find_package("wordnet"), root / "corpora" / "wordnet")
    # files that nltk opens and METEOR does not use; there are 45 lexicographer files
    (folder / "lexnames").write_text("".join(f"{i:02} file{i} 0\n" for i in range(45)))
    (folder / "index.sense").write_text("")
    nltk.data.path.insert(0, str(root))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses the other languages
        yield WordNetCorpusReader(str(folder), None)
    nltk.data.path.remove(str(root))


@pytest.fixture(scope="module")
def real() -> Rows:
    """1,000 outputs of WMT17 systems into English, from seven languages."""
    folder = _data("wmt17-da")
    rows: Rows = []
    for path in sorted(folder.glob("*-en.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line, _ in zip(lines, range(40), strict=False):
                item = json.loads(line)
                rows += [(text, [item["ref"]]) for text in list(item["out"].values())[:4]]
    return rows[:1000]


def _data(name: str) -> Path:
    root = os.environ.get("EVENMATCH_DATA")
    if not root or not (Path(root) / name).is_dir():
        pytest.skip(f"set EVENMATCH_DATA to a folder that holds {name}")
    return Path(root) / name


def scored(rows: Rows, metric: str) -> em.Scores:
    return em.score([text for text, _ in rows], [references for _, references in rows], metric)


def sentence_scores(scorer: Any) -> Callable[[Rows], list[float]]:
    return lambda rows: [scorer.sentence_score(*row).score / 100 for row in rows]


def rouge(name: str, *, stemmer: bool) -> Callable[[Rows], list[float]]:
    scorer = RougeScorer([name], use_stemmer=stemmer)
    return lambda rows: [scorer.score_multi(refs, text)[name].fmeasure for text, refs in rows]


def nltk_bleu(method: int) -> Callable[[Rows], list[float]]:
    smooth = getattr(bleu_score.SmoothingFunction(), f"method{method}")
    return lambda rows: [
        bleu_score.sentence_bleu([r.split() for r in refs], c.split(), smoothing_function=smooth)
        for c, refs in rows
    ]


def nltk_chrf(rows: Rows) -> list[float]:
    return [max(chrf_score.sentence_chrf(r, c) for r in references) for c, references in rows]


def nltk_nist(rows: Rows) -> list[float]:
    return [
        max(
            nist_score.sentence_nist([r.split()], c.split(), n=min(5, len(c.split()))) for r in refs
        )
        for c, refs in rows
    ]


LIBRARIES: dict[str, Callable[[Rows], list[float]]] = {
    "bleu": sentence_scores(BLEU(effective_order=True)),
    "bleu(lowercase=True, smoothing='floor', tokenizer='intl')": sentence_scores(
        BLEU(lowercase=True, smooth_method="floor", tokenize="intl", effective_order=True)
    ),
    "chrf": sentence_scores(CHRF()),
    CHRF_PLUS: sentence_scores(CHRF(word_order=2)),
    "rouge1": rouge("rouge1", stemmer=False),
    "rouge1(stemmer=True)": rouge("rouge1", stemmer=True),
    "rouge2": rouge("rouge2", stemmer=False),
    "rougeL": rouge("rougeL", stemmer=False),
    "rougeL(stemmer=True)": rouge("rougeL", stemmer=True),
    "bleu_nltk": nltk_bleu(1),
    "bleu_nltk(smoothing=3)": nltk_bleu(3),
    "chrf_nltk": nltk_chrf,
    "nist": nltk_nist,
}
SACREBLEU_TER = sentence_scores(TER())


@pytest.mark.parametrize("metric", LIBRARIES)
def test_sentence_scores_are_the_librarys(metric: str) -> None:
    assert values(scored(OWN, metric)) == pytest.approx(LIBRARIES[metric](OWN), abs=1e-12)


@pytest.mark.parametrize("metric", LIBRARIES)
def test_sentence_scores_are_the_librarys_on_real_text(metric: str, real: Rows) -> None:
    assert len(real) == 1000
    assert values(scored(real, metric)) == pytest.approx(LIBRARIES[metric](real), abs=1e-12)


def test_ter_is_sacrebleus() -> None:
    assert values(scored(OWN, "ter")) == pytest.approx(SACREBLEU_TER(OWN), abs=1e-12)


@pytest.mark.slow
def test_ter_is_sacrebleus_on_real_text(real: Rows) -> None:
    assert values(scored(real, "ter")) == pytest.approx(SACREBLEU_TER(real), abs=1e-12)


def test_ter_is_sacrebleus_on_a_little_real_text(real: Rows) -> None:
    few = real[::20]
    assert values(scored(few, "ter")) == pytest.approx(SACREBLEU_TER(few), abs=1e-12)


def test_meteor_is_nltks_with_nltks_own_wordnet(nltk_wordnet: Any) -> None:
    assert values(scored(OWN, "meteor")) == pytest.approx(meteor(OWN, nltk_wordnet), abs=1e-12)


def test_meteor_is_nltks_on_real_text(real: Rows, nltk_wordnet: Any) -> None:
    assert values(scored(real, "meteor")) == pytest.approx(meteor(real, nltk_wordnet), abs=1e-12)


def meteor(rows: Rows, reader: Any) -> list[float]:
    return [
        meteor_score.meteor_score([r.split() for r in references], text.split(), wordnet=reader)
        for text, references in rows
    ]


def test_synonyms_are_those_of_nltks_reader(nltk_wordnet: Any) -> None:
    listed = sorted(nltk_wordnet.all_lemma_names())
    inflected = "axes better best dogs dying geese lives men oxen ran running wolves worse".split()
    for word in [*listed[::100], *inflected, "Dog", "galore", "zzz", "猫", ""]:
        assert synonyms(wordnet(), word) == synonyms(nltk_wordnet, word), word


def synonyms(reader: Any, word: str) -> set[str]:
    return {lemma.name() for synset in reader.synsets(word) for lemma in synset.lemmas()}


def test_rouge_has_the_librarys_precision_and_recall() -> None:
    found = scored(OWN, "rouge2").segments
    scorer = RougeScorer(["rouge2"])
    wanted = [scorer.score_multi(references, text)["rouge2"] for text, references in OWN]
    assert [(s.precision, s.recall) for s in found] == [(w.precision, w.recall) for w in wanted]


def values(scores: em.Scores) -> list[float]:
    return [score.value for score in scores.segments]


SCORERS: dict[str, Any] = {
    "bleu": BLEU(),
    "bleu(smoothing='add-k', order=2)": BLEU(smooth_method="add-k", max_ngram_order=2),
    "chrf": CHRF(),
    CHRF_PLUS: CHRF(word_order=2),
    "ter": TER(),
    "ter(normalized=True, case_sensitive=True)": TER(normalized=True, case_sensitive=True),
}
EMPTY_ROWS: Rows = [("", ["a b c"]), ("a b c", [""]), ("", [""]), ("a b", ["", "a b c d"])]


@pytest.mark.parametrize("metric", SCORERS)
def test_corpus_scores_are_sacrebleus_with_any_number_of_references(metric: str) -> None:
    rows = [*OWN, *EMPTY_ROWS]
    assert scored(rows, metric).corpus == pytest.approx(
        SCORERS[metric].corpus_score(*streams(rows)).score / 100, abs=1e-12
    )


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_corpus_scores_are_sacrebleus_on_real_text(metric: str, real: Rows) -> None:
    assert scored(real, metric).corpus == pytest.approx(
        SCORERS[metric].corpus_score(*streams(real)).score / 100, abs=1e-12
    )


def streams(rows: Rows) -> tuple[list[str], list[list[str | None]]]:
    """The rows as sacrebleu wants them: one list per reference, None where a row has fewer."""
    most = max(len(references) for _, references in rows)
    padded = [[*references, *[None] * (most - len(references))] for _, references in rows]
    return [text for text, _ in rows], [[row[k] for row in padded] for k in range(most)]


def test_corpus_bleu_by_nltk_is_nltks() -> None:
    smooth = bleu_score.SmoothingFunction().method1
    references = [[r.split() for r in refs] for _, refs in OWN]
    wanted = bleu_score.corpus_bleu(
        references, [text.split() for text, _ in OWN], smoothing_function=smooth
    )
    assert scored(OWN, "bleu_nltk").corpus == pytest.approx(wanted, abs=1e-12)


def test_corpus_nist_is_nltks() -> None:
    references = [[r.split() for r in refs] for _, refs in OWN]
    wanted = nist_score.corpus_nist(references, [text.split() for text, _ in OWN])
    assert scored(OWN, "nist").corpus == pytest.approx(wanted, abs=1e-12)


def test_metrics_whose_corpus_score_is_the_mean_give_none() -> None:
    for metric in ("rouge1", "rouge2", "rougeL", "meteor", "chrf_nltk"):
        assert scored(OWN[:2], metric).corpus is None


@pytest.mark.parametrize("metric", ["rouge1", "rouge2", "rougeL", "meteor", "nist", "chrf_nltk"])
def test_the_best_of_several_references_counts(metric: str) -> None:
    rows = [row for row in OWN if len(row[1]) > 1]
    alone = [[scored([(text, [r])], metric).segments[0] for r in refs] for text, refs in rows]
    best = [max(scores, key=lambda score: score.value) for scores in alone]
    assert scored(rows, metric).segments == tuple(best)


def first_gender_row() -> tuple[list[str], list[str]]:
    with gzip.open(_data("metric-fairness") / "gender.jsonl.gz", "rt", encoding="utf-8") as lines:
        row = json.loads(next(lines))
    return [row["cand_a"]], [row["ref_a"]]


def test_the_papers_settings_give_its_first_gender_row() -> None:
    candidates, references = first_gender_row()
    for metric, value in (("bleu_nltk", 0.704805), ("rouge1(stemmer=True)", 0.888889)):
        assert round(em.score(candidates, references, metric).mean, 6) == value


@pytest.mark.parametrize(
    ("metric", "column"),
    [("bleu_nltk", "BLEU"), ("rouge1(stemmer=True)", "ROUGE"), ("chrf_nltk", "chrF")],
)
def test_the_papers_settings_give_its_published_gender_scores(metric: str, column: str) -> None:
    with gzip.open(_data("metric-fairness") / "gender.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    sides = [(row, side) for row in rows for side in "ab"]
    found = em.score(
        [row[f"cand_{side}"] for row, side in sides],
        [row[f"ref_{side}"] for row, side in sides],
        metric,
    )
    published = [row[f"scores_{side}"][column] for row, side in sides]
    assert values(found) == pytest.approx(published, abs=1e-8)


def test_nltks_bleu_by_hand() -> None:
    # One word of 13 is wrong, in the middle, where the reference has two.
    scores = em.score(["a b c d e f g x h i j k l"], ["a b c d e f g y z h i j k l"], "bleu_nltk")
    precisions = (12 / 13) * (10 / 12) * (8 / 11) * (6 / 10)
    assert scores.mean == pytest.approx(0.925961 * precisions**0.25, abs=1e-6)


def scores_alone(rows: Rows, metric: str) -> Sequence[Score]:
    return [scored([row], metric).segments[0] for row in rows]


@pytest.mark.parametrize("metric", [*LIBRARIES, "ter", "meteor"])
def test_a_score_depends_on_its_pair_alone(metric: str) -> None:
    rows = [*OWN[:12], *EMPTY_ROWS]
    assert list(scored(rows, metric).segments) == scores_alone(rows, metric)


SIGNED: dict[str, Any] = {
    "bleu": BLEU(),
    "bleu(tokenizer='zh', lowercase=True, smoothing='add-k')": BLEU(
        tokenize="zh", lowercase=True, smooth_method="add-k"
    ),
    "bleu(smoothing='floor')": BLEU(smooth_method="floor"),
    "bleu(smoothing='none')": BLEU(smooth_method="none"),
    "chrf": CHRF(),
    "chrf(word_order=2, whitespace=True, lowercase=True, eps_smoothing=True)": CHRF(
        word_order=2, whitespace=True, lowercase=True, eps_smoothing=True
    ),
    "ter": TER(),
    "ter(normalized=True, no_punct=True, asian_support=True, case_sensitive=True)": TER(
        normalized=True, no_punct=True, asian_support=True, case_sensitive=True
    ),
}


@pytest.mark.parametrize("spec", SIGNED)
@pytest.mark.parametrize("references", [1, 2])
def test_a_signature_has_the_fields_of_sacrebleu(spec: str, references: int) -> None:
    scorer = SIGNED[spec]
    scorer.corpus_score(["a cat"], [["a dog"]] * references)
    found = em.score(["a cat"], [["a dog"] * references], spec)
    assert found.signature.split(" · ")[-1] == str(scorer.get_signature())


def test_the_number_of_references_varies() -> None:
    found = em.score(["a", "b"], [["a"], ["a", "b"]], "bleu")
    assert " · nrefs:var|case:mixed|" in found.signature
    assert em.build(found.signature.split(" · ")[0]) == em.build("bleu")
