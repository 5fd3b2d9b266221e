"""Every kind of result becomes a page that says what the result holds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.cli.evaluate import comparison_document
from evenmatch.errors import InputError
from evenmatch.reports.results import RESULT_KINDS, read_result, result_page, write_report
from evenmatch.reports.study_page import StudyReport
from evenmatch.training.generator.tune import TuneResult
from evenmatch.training.loop import History
from evenmatch.types import Pair
from tests.reports.test_meta_page import Tags
from tests.support import report_results as made
from tests.support.rated_sets import rated_sets

DOCUMENTS = [{"text": "we parse trees .", "keyphrases": ["parse"], "pred": {"a": ["parse"]}}] * 2


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """A result of each kind, by the command that makes it, read back as from a file."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "docs.jsonl").write_text("".join(json.dumps(d) + "\n" for d in DOCUMENTS))
    found = {
        "score": made.scored(made.GREEDY, made.LSA, "chrf"),
        "compare": made.compared(),
        "meta": made.agreed(rated_sets(folder, "news", "talks")),
        "audit": made.audited(),
        "keyphrases": made.keyphrases(str(folder / "docs.jsonl")),
        "tune": made.TUNED,
        "study lisa": made.LISA,
        "study lisa-quality": made.WORTH,
        "study lisa-gradient": made.LESSONS,
        "study": made.STUDY,
    }
    command = {"command": "evenmatch it <now>"}
    return {name: json.loads(json.dumps({**each, **command})) for name, each in found.items()}


@pytest.mark.parametrize("name", [kind.command for kind in RESULT_KINDS])
def test_each_kind_is_told_from_all_others(every: dict[str, Any], name: str) -> None:
    assert [kind.command for kind in RESULT_KINDS if kind.matches(every[name])] == [name]


@pytest.mark.parametrize("name", [kind.command for kind in RESULT_KINDS])
def test_each_page_stands_alone_and_names_its_command(every: dict[str, Any], name: str) -> None:
    page = result_page(every[name])
    tags = Tags()
    tags.feed(page)
    assert [a for a in tags.addresses if not a.startswith("data:")] == []
    assert not re.search(r"url\(|@import", page)
    assert "default-src 'none'" in page
    assert '<code class="command">evenmatch it &lt;now&gt;</code>' in page
    assert page.count("<caption>") == page.count("<table") > 0


def test_signatures_are_on_the_page(every: dict[str, Any]) -> None:
    for name in ("compare", "meta", "audit", "keyphrases"):
        page = result_page(every[name])
        assert all(escape(own) in page for own in every[name]["signatures"].values())
    assert every["score"]["metrics"]["chrf"]["signature"] in result_page(every["score"])


def test_agreement_has_the_same_table_as_the_page_of_meta(every: dict[str, Any]) -> None:
    page = result_page(every["meta"])
    for row in every["meta"]["rows"]:
        assert f'<td class="number">{row["value"]:.3f}</td>' in page
    assert "Metric scores against human ratings" not in page


def test_a_metric_that_is_not_here_loses_only_its_explanation(every: dict[str, Any]) -> None:
    text = json.dumps(every["audit"]).replace(made.GREEDY, "align(vectors=gone)")
    page = result_page(json.loads(text))
    assert "Pairs with the largest score difference" in page
    assert "matched to" in result_page(every["audit"])
    assert "matched to" not in page


def test_systems_are_drawn_with_intervals_and_the_better_direction(every: dict[str, Any]) -> None:
    page = result_page(every["compare"])
    assert page.count('class="point"') == 2 * 2 + 2
    assert "ter (lower is better)" in page
    assert "lower is better: ter" in page


def test_training_is_drawn_as_curves(every: dict[str, Any]) -> None:
    page = result_page(every["tune"])
    assert page.count("<circle") == 9 * 2
    assert page.index("text 10") < page.index("text 20")
    assert "&lt;H&gt; Cork" in page
    assert "best: BLEU 0.2500 at step 20" in page
    assert "20 steps, not finished" in page
    given = {"reward": "f_disc", "shape": {"width": 64}}
    page = result_page({**every["tune"], "settings": given})
    assert "settings, apart from defaults: reward = f_disc, shape.width = 64" in page


def test_steps_are_drawn_at_whole_numbers(every: dict[str, Any]) -> None:
    rows = [{**row, "step": n} for n, row in enumerate(every["tune"]["looks"], start=2)]
    page = result_page({**every["tune"], "looks": rows})
    assert ">2</text>" in page
    assert ">2.5</text>" not in page


def test_intervals_of_a_study_are_one_cell(every: dict[str, Any]) -> None:
    page = result_page(every["study lisa"])
    assert "<td" in page
    assert "3.2500 [3.1500, 3.3500]" in page
    assert "one-to-one alignment lowers the mean" in page


def test_a_script_in_a_figure_of_a_study_does_not_get_into_the_page(every: dict[str, Any]) -> None:
    page = result_page(every["study"])
    assert "alert(1)" not in page
    assert page.count("data:image/svg+xml;base64,") == 1


def test_the_folder_of_a_study_holds_a_result_to_report(tmp_path: Path) -> None:
    study = StudyReport(
        "A study", ["it works"], {"all": [["arm", "F1"], ["MLE", "0.3"]]}, {}, ["a note"]
    )
    study.write(tmp_path)
    page = result_page(read_result(tmp_path / "result.json"))
    assert "<h1>A study</h1>" in page
    assert '<td>MLE</td><td class="number">0.3</td>' in page


def test_numbers_too_small_for_decimals_are_still_numbers(every: dict[str, Any]) -> None:
    assert '<td class="number">1.20e-04</td>' in result_page(every["study lisa-quality"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("nothing", r"is not JSON; give the output of a command with --json \(or of --out FILE"),
        ("[1]", "is not a JSON object"),
    ],
)
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "result.json"
    file.write_text(content)
    with pytest.raises(InputError, match=words):
        read_result(file)
    with pytest.raises(InputError, match=r"cannot read .*none.json: No such file"):
        read_result(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"a": 1}, "not a known kind of result: it contains 'a'; give the JSON of one of: score"),
        ({"candidate_units": []}, "this is an alignment; plot it with: evenmatch align"),
        ({"metrics": {"chrf": {}}}, "looks like a result of score but cannot be read .*signature"),
    ],
)
def test_a_document_of_no_known_kind_is_refused(document: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        result_page(document)


def test_texts_go_with_scores_only(every: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="with scores only, but this is a result of tune"):
        result_page(every["tune"], pairs=[Pair("a", ("b",))])


def test_texts_with_a_result_of_means_get_the_real_message() -> None:
    means = made.scored(made.LSA, segments=False)
    with pytest.raises(InputError, match=r"^texts are given but the result has only mean scores"):
        result_page(means, pairs=made.PAIRS)


def small_comparison() -> em.Comparison:
    systems = {"plain": ["the cat", "a dog"], "poor": ["dog", "cat"]}
    references = [["the cat sat"], ["a dog barked"]]
    return em.compare(systems, references, made.LSA, resamples=5, trials=5)


def small_keyphrases(folder: Path) -> em.KeyphraseTable:
    (folder / "docs.jsonl").write_text("".join(json.dumps(d) + "\n" for d in DOCUMENTS))
    return em.score_keyphrases(str(folder / "docs.jsonl"), "fg", resamples=5, trials=5)


@pytest.mark.model
def test_the_page_of_all_keyphrase_scores_shows_precision_and_recall(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(d) + "\n" for d in DOCUMENTS))
    found = em.score_keyphrases(tmp_path / "docs.jsonl", full=True, resamples=5, trials=5)
    em.write_report(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "P/R present" in page
    assert "self_similarity" in page
    em.write_report(json.loads(json.dumps(found.document())), tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text("utf-8") == page


RESULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "scores": (lambda _: em.score(["a cat"], ["the cat"], made.LSA), "Scores: align(vectors="),
    "scores by metric": (
        lambda _: em.score(["a cat"], ["the cat"], [made.LSA, "chrf"]),
        f"Scores: {made.LSA}, chrf",
    ),
    "agreement": (
        lambda folder: em.correlate("rouge1", rated_sets(folder, "news"), resamples=5),
        "Agreement with human ratings: mine",
    ),
    "audit": (lambda _: em.audit("chrf", worst=1, trials=5), "Social bias of metrics"),
    "comparison": (lambda _: small_comparison(), "Comparison of systems: plain, poor"),
    "keyphrases": (small_keyphrases, "Keyphrases: docs"),
    "study": (lambda _: StudyReport("A study", ["it works"], {}, {}, []), "A study"),
    "tuning": (
        lambda folder: TuneResult(folder, History(steps=2)),
        "Fine-tuning with a reward",
    ),
    "document": (lambda _: made.audited(), "Social bias of metrics: mine"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_write_report_takes_every_kind_of_result(name: str, tmp_path: Path) -> None:
    make, title = RESULTS[name]
    path = em.write_report(make(tmp_path), tmp_path / "page.html")
    page = path.read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert f"<h1>{escape(title)}" in page


def test_an_object_and_its_document_give_the_same_page() -> None:
    comparison = small_comparison()
    assert result_page(comparison) == result_page(comparison_document(comparison))
    scores = em.score(
        [p.candidate for p in made.PAIRS], [[*p.references] for p in made.PAIRS], "ter"
    )
    [page, again] = [
        result_page(s, pairs=made.PAIRS, examples=1) for s in (scores, {"ter": scores})
    ]
    assert page == again
    assert "Worst and best texts" in page


def test_write_report_checks_the_result_and_the_path(tmp_path: Path) -> None:
    scores = em.score(["a"], ["a"], "chrf")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(InputError, match="cannot write"):
        write_report(scores, tmp_path / "folder.html")
    with pytest.raises(InputError, match=r"the name of a report must end in .html or .htm, got"):
        write_report(scores, tmp_path / "page.txt")
    with pytest.raises(InputError, match="cannot write a report of list; give what score"):
        write_report([scores], tmp_path / "page.html")  # type: ignore[arg-type]  # a wrong type
    with pytest.raises(InputError, match="texts can be given with scores only"):
        result_page(small_comparison(), pairs=[Pair("a", ("b",))])
    both: dict[str, Any] = {"systems": {name: {"metrics": {}} for name in "ab"}}
    with pytest.raises(InputError, match="shown for one system only, but this result has 2; score"):
        result_page(both, pairs=[Pair("a", ("b",))])


def test_scores_know_the_texts_they_are_of(tmp_path: Path) -> None:
    scores = em.score(["a cat", "a dog"], ["the cat", "the dog"], "align(vectors=hashed)")
    own = [em.Pair("a cat", ("the cat",)), em.Pair("a dog", ("the dog",))]
    for result in (scores, {"mine": scores}):
        em.write_report(result, tmp_path / "page.html", pairs=own)
        with pytest.raises(InputError, match="computed from other texts; give the file that was"):
            em.write_report(result, tmp_path / "page.html", pairs=own[::-1])
