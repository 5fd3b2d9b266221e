"""What people type by mistake, in Python and in the shell."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenmatch as em
from evenmatch.data.catalogue.catalogue import canonical_name
from evenmatch.data.pairs import read_everyday_sample
from tests.cli.conftest import Command, command

__all__ = ["command"]

HASHED = "align(vectors=hashed)"

MISTAKES = {
    "blue": "unknown metric 'blue'; did you mean 'bleu'",
    "bertscor": "unknown metric 'bertscor'; did you mean 'bertscore' or 'bartscore'",
    "lsaa": "unknown metric 'lsaa'",
    "bleu,chrf": "'bleu,chrf' names several parts; give one each time: -m bleu -m chrf",
    "bertscore(model=roberta-large)": (
        "bertscore's model takes a string; write it in quotes: model='roberta-large'"
    ),
    "bertscore(model=microsoft/deberta-v3-base)": "in quotes: model='microsoft/deberta-v3-base'",
    "bertscore(model=./mine)": "texts in quotes, like model='roberta-large'",
    "bertscore(layer=last)": "write it in quotes: layer='last'",
    "bertscore(idf=true)": "bertscore's idf takes True or False or a string; write idf=True",
    "bertscore(lang='en')": "no setting 'lang'; the model decides the language, as in model=",
    "bertscore(rescale_with_baseline=True)": "`evenmatch baseline` prints a rescaled metric",
    "chrF++": "unknown metric 'chrF++'; did you mean 'chrf(word_order=2)'?",
    "F1@5": "unknown metric 'F1@5'; did you mean 'f1_at_5'?",
    "ROUGE-L": "unknown metric 'ROUGE-L'; did you mean 'rougeL'?",
    "BERT-Score": "unknown metric 'BERT-Score'; did you mean 'bertscore'?",
    "rougeL(lang=de)": "no setting 'lang'; the model decides the language",
    "roberta-large": "a model is a setting of a metric: bertscore(model='roberta-large')",
    "comet": "unknown metric 'comet'; COMET is not included; for a metric fitted to ratings, use",
    "./parts.py": "./parts.py is a module; give the name of its metric and set EVENMATCH_PLUGINS",
    "sacrebleu": "did you mean 'bleu'?",
    "align(alignment=lssa)": "unknown alignment 'lssa'; did you mean 'lsa'?",
}


@pytest.mark.parametrize("given", MISTAKES)
def test_a_mistake_says_what_to_write(given: str, command: Command) -> None:
    with pytest.raises(em.EvenmatchError, match=re.escape(MISTAKES[given])) as caught:
        em.score(["a"], ["a"], given)
    for name in ("c.txt", "r.txt"):
        Path(name).write_text("a\n")
    said = command("score", "-c", "c.txt", "-r", "r.txt", "-m", given)
    assert (said.code, said.out) == (1, "")
    assert said.err == f"evenmatch: {caught.value}\n"


def test_all_is_for_the_command_score() -> None:
    with pytest.raises(em.UnknownNameError, match="only `evenmatch score` takes all; name the"):
        em.compare({"a": ["a"], "b": ["b"]}, ["a"], "all")


def test_a_folder_needs_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    with pytest.raises(em.UnknownNameError, match=r"for the folder of that name, write '\./mine'"):
        em.score(["a"], ["a"], "mine")


def test_the_folder_of_a_run_names_the_model_in_it(tmp_path: Path) -> None:
    (tmp_path / "run" / "model").mkdir(parents=True)
    (tmp_path / "run" / "model" / "config.json").write_text("{}")
    with pytest.raises(
        em.DataError, match=r"give the folder of a saved model, such as .*run/model"
    ):
        em.generate(tmp_path / "run", ["a"])


def test_an_unknown_metric_offers_metrics_only() -> None:
    with pytest.raises(em.UnknownNameError) as caught:
        em.score(["a"], ["a"], "greedyy")
    offered = re.findall(r"'(\w+)'", str(caught.value).split("did you mean")[-1])
    known = str(caught.value).rpartition("known: ")[2].split(", ")
    assert set(em.names("metric")) >= set(offered) - {"greedyy"}
    assert "greedy" not in known


@pytest.mark.parametrize(
    ("given", "name"), [("BLEU", "bleu"), ("ChrF", "chrf"), ("ROUGEl", "rougeL")]
)
def test_names_are_found_in_any_case(given: str, name: str, command: Command) -> None:
    found, wanted = (em.score(["a b"], ["a c"], each) for each in (given, name))
    assert found == wanted
    for file, text in (("c.txt", "a b\n"), ("r.txt", "a c\n")):
        Path(file).write_text(text)
    said = command("score", "-c", "c.txt", "-r", "r.txt", "-m", given)
    assert (said.code, f"{given}: {wanted.signature}" in said.out) == (0, True)
    assert em.build("BERTScore") == em.build("bertscore")


def test_no_two_names_differ_only_in_case() -> None:
    names = em.names()
    assert len({name.lower() for name in names}) == len(names)


def test_parts_of_a_metric_may_be_given_as_names_and_specs() -> None:
    texts: Any = {"vectors": "hashed", "alignment": "sinkhorn(epsilon=0.5)", "scoring": "PRF"}
    metric = em.AlignMetric(**texts)
    assert metric == em.build("align(vectors=hashed, alignment=sinkhorn(epsilon=0.5))")
    assert em.score(["a b"], ["b c"], metric).mean > 0


def test_a_part_of_another_kind_is_refused() -> None:
    wrong: Any = "lsa"
    with pytest.raises(em.InputError, match="vectors takes a part of kind vectors, got 'lsa'"):
        em.AlignMetric(vectors=wrong)


def test_a_misspelt_part_offers_parts_of_its_kind() -> None:
    wrong: Any = "lssa"
    with pytest.raises(em.UnknownNameError, match="unknown alignment 'lssa'; did you mean 'lsa'"):
        em.AlignMetric(alignment=wrong)


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """A table of ratings with two criteria."""
    lines = ["system\tsegment\tcandidate\treferences\trating\tsubset"]
    for n, (system, pairs) in enumerate(read_everyday_sample().items()):
        for segment, pair in enumerate(pairs[:6]):
            for criterion in ("fluency", "meaning"):
                cells = (system, str(segment), pair.candidate, pair.references[0])
                lines.append("\t".join([*cells, str(n + segment % 2), criterion]))
    path = tmp_path / "ratings.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_an_unknown_subset_lists_the_subsets(ratings: Path, command: Command) -> None:
    message = "has no subset 'fluent'; did you mean 'fluency'? its subsets: fluency, meaning"
    with pytest.raises(em.UnknownNameError, match=re.escape(message)):
        em.read_ratings(ratings, subsets=["fluent"])
    said = command("meta", str(ratings), "-m", HASHED, "--subset", "fluent")
    assert (said.code, said.err) == (1, f"evenmatch: {ratings} {message}\n")


def test_ratings_are_given_by_path_or_as_read(ratings: Path) -> None:
    read = em.read_ratings(ratings)
    expected = em.correlate(HASHED, read, resamples=20).rows
    assert em.correlate(HASHED, ratings, resamples=20).rows == expected
    assert em.correlate(HASHED, str(ratings), resamples=20).rows == expected
    assert em.correlate(em.build(HASHED), read[0], resamples=20).rows == expected[:1]


def test_pairs_of_an_audit_are_given_by_name_or_as_read() -> None:
    settings: dict[str, Any] = {"resamples": 20, "trials": 20}
    read = em.audit("chrf", em.read_fair_pairs(), attributes=["age"], **settings)
    assert read.rows == em.audit(em.build("chrf"), "", attributes=["age"], **settings).rows
    with pytest.raises(em.UnknownNameError, match="has no pairs about 'height'; it has: age"):
        em.audit("chrf", em.read_fair_pairs(), attributes=["height"], **settings)


def test_a_metric_in_a_folder_is_given_as_text_or_as_a_path(tmp_path: Path) -> None:
    (tmp_path / "metric.json").write_text(f'{{"metric": "{HASHED}"}}')
    by_path = em.score(["a b"], ["b c"], [tmp_path])
    assert by_path == em.score(["a b"], ["b c"], [str(tmp_path)])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pd.DataFrame({"text": ["a"]}), "must be a list of texts, got DataFrame; give one of its"),
        (np.array(["a"]), "must be a list of texts, got ndarray; write list(candidates)"),
        (iter(["a"]), "write list(candidates)"),
        ("a", "got one string; write [candidate]"),
    ],
    ids=["frame", "array", "iterator", "string"],
)
def test_texts_in_another_container_say_how_to_give_them(given: Any, words: str) -> None:
    with pytest.raises(em.InputError, match=re.escape(words)):
        em.score(given, ["a"], "bleu")


def test_the_plural_of_an_argument_is_named() -> None:
    wrong: Any = {"metrics": "bleu"}
    with pytest.raises(em.InputError, match="no setting 'metrics'; did you mean 'metric'"):
        em.score(["a"], ["a"], **wrong)


def test_a_misspelt_argument_is_not_taken_for_a_run_setting() -> None:
    wrong: Any = {"resample": 10}
    for call in (
        lambda: em.score_keyphrases("docs.jsonl", **wrong),
        lambda: em.correlate("chrf", "wmt17-da", **wrong),
        lambda: em.audit("chrf", **wrong),
    ):
        with pytest.raises(em.InputError, match="no argument 'resample'; did you mean 'resamples'"):
            call()


def test_one_text_where_a_list_is_wanted_says_how_to_write_it() -> None:
    wrong: Any = "gender"
    message = "takes a list of strings, got 'gender'; write ['gender']"
    with pytest.raises(em.InputError, match=re.escape(message)):
        em.audit("rouge1", attributes=wrong)


def test_names_of_data_sets_and_attributes_are_found_in_any_case(command: Command) -> None:
    assert em.read_fair_pairs("").select(["GENDER"]).pairs.keys() == {"gender"}
    said = command("data", "get", "WMT17-Daa")
    assert "did you mean wmt17-da?" in said.err
    assert canonical_name("WMT17-DA") == "wmt17-da"
    for asked in (("meta", "WMT17", "-m", "chrf"), ("keyphrases", "inspec")):
        said = command(*asked)
        assert (said.code, said.err.count("\n")) == (1, 1)
        assert "there is no data set, folder or file" in said.err
        assert "did you mean" in said.err


@pytest.mark.parametrize(
    "read",
    [
        em.read_documents,
        em.read_graphs,
        em.read_ratings,
        em.read_fair_pairs,
        em.score_keyphrases,
        lambda name: em.score_files(name, "out.jsonl", "chrf"),
        lambda name: em.distil("f_disc", name, "out"),
        lambda name: em.fit(name, "out"),
        lambda name: em.calibrate(name, "out"),
        lambda name: em.choose_layer(name, "f_disc"),
        lambda name: em.correlate("chrf", name),
        lambda name: em.audit("chrf", name),
    ],
    ids=lambda read: read.__name__,
)
@pytest.mark.parametrize("name", ["nowhere.jsonl", "nowhere.jsonl.gz"])
def test_a_file_that_is_not_there_is_an_error_of_the_library(
    read: Callable[[str], Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(em.DataError, match=re.escape(name)):
        read(name)


def test_a_kind_in_the_plural_is_named() -> None:
    with pytest.raises(em.UnknownNameError, match="no kind 'Metrics'; did you mean 'metric'"):
        em.names("Metrics")


@pytest.mark.parametrize(
    ("setting", "spec"),
    [("model", "bertscore(model='roberta-large')"), ("layer", "bertscore(layer=9)")],
)
def test_a_setting_of_a_metric_is_not_a_run_setting(setting: str, spec: str) -> None:
    given: dict[str, Any] = {setting: 9}
    with pytest.raises(em.InputError, match=re.escape(f"the metric has it, as in {spec!r}")):
        em.score(["a"], ["a"], "bertscore", **given)


@pytest.mark.parametrize("given", ["--lang en", "--model=roberta-large", "--idf"])
def test_a_setting_of_a_metric_is_not_an_option(given: str, command: Command) -> None:
    said = command("score", "-c", "a.txt", "-r", "b.txt", *given.split())
    assert (said.code, said.out) == (2, "")
    option = re.split("[ =]", given)[0]
    assert f"there is no option {option}" in said.err
    assert '; write -m "bertscore(' in said.err


def oneline(text: str) -> str:
    return " ".join(text.split())


def test_a_setting_after_the_metric_is_not_taken_for_a_file(command: Command) -> None:
    said = command("score", "-c", "a.txt", "-r", "b.txt", "-m", "bertscore", "model=x")
    assert said.code == 2
    assert "or -c and -r, not both; settings belong to the metric: -m " in oneline(said.err)
    said = command("score", "-c", "a.txt", "c.txt", "-r", "b.txt")
    assert "here c.txt, or -c and -r, not both; write -c or -r before each" in oneline(said.err)


def test_texts_that_are_names_of_files_are_remarked(command: Command) -> None:
    Path("a.txt").write_text("a cat\n")
    said = command("align", "a.txt", "a cat", "-m", HASHED)
    assert said.code == 0
    assert said.err == (
        "evenmatch: a.txt is aligned as a text, not read as a file; for files: evenmatch score\n"
    )


def test_swapped_arguments_of_a_report_are_named(tmp_path: Path) -> None:
    scores: Any = em.score(["a"], ["a"], HASHED)
    wanted = (
        r"takes a result and then a path, got str and Scores: write_report\(result, 'page.html'\)"
    )
    with pytest.raises(em.InputError, match=wanted):
        em.write_report(str(tmp_path / "page.html"), scores)  # type: ignore[arg-type]  # is tested


def test_a_misspelt_reward_is_an_error_before_a_run_begins(tmp_path: Path) -> None:
    settings = em.TuneSettings("no.jsonl", "no.jsonl", str(tmp_path / "run"), reward="f_dics")
    with pytest.raises(em.UnknownNameError, match="did you mean 'f_disc'"):
        em.tune(settings)
