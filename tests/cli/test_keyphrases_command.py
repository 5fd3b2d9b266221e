from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

LINES = [
    {
        "text": "we parse trees .",
        "keyphrases": ["parse", "logic"],
        "pred": {"a": ["parse"], "b": []},
    },
    {"text": "we train nets .", "keyphrases": ["nets"], "pred": {"a": ["net"], "b": ["train"]}},
]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return str(path)


def test_json_has_the_rows_that_were_promised(command: Command, file: str) -> None:
    done = command("keyphrases", file, "--json")
    found = json.loads(done.out)
    assert (done.code, done.err) == (0, "")
    assert set(found) >= {"rows", "tests", "flagged", "trouble", "signatures"}
    row = found["rows"][2]
    assert (row["prediction"], row["metric"], row["documents"]) == ("a", "f1_at_m", 2)
    assert row["present"] == 1
    assert len(found["tests"]) == 9


def test_the_table_is_read_by_people_and_by_latex(command: Command, file: str) -> None:
    text = command("keyphrases", file, "-m", "fg").out
    assert text.startswith("data       prediction  metric  present")
    assert "intervals: 95 %, 1000 resamples" in text
    latex = command("keyphrases", file, "-m", "f1_at_5", "-f", "latex").out
    assert latex.count(r"\begin{tabular}") == 2
    assert r"f1\_at\_5" in latex
    tsv = command("keyphrases", file, "-m", "fg", "-f", "tsv").out.splitlines()
    assert tsv[0].split("\t")[1:6] == ["prediction", "metric", "present", "absent", "all"]


def test_only_the_predictions_named_are_scored(command: Command, file: str) -> None:
    found = json.loads(command("keyphrases", file, "--pred", "b", "-m", "fg", "--json").out)
    assert [row["prediction"] for row in found["rows"]] == ["b"]


@pytest.mark.model
def test_all_scores_are_printed_on_request(command: Command, file: str) -> None:
    short = command("keyphrases", file, "--json", "--resamples", "5", "--trials", "5")
    full = command("keyphrases", file, "--all", "--json", "--resamples", "5", "--trials", "5")
    assert (full.code, full.err) == (0, "")
    few, many = (json.loads(done.out)["rows"] for done in (short, full))
    assert len(few) == 6
    assert [row for row in many if row["metric"] in {each["metric"] for each in few}] == few
    names = {row["metric"] for row in many}
    assert {"recall_at_50", "f1_at_o", "keyphrase_map", "sem_f1", "count_error"} < names
    f1 = next(row for row in many if (row["prediction"], row["metric"]) == ("a", "f1_at_m"))
    assert (f1["precision"]["all"], f1["recall"]["all"]) == (1, 3 / 4)
    text = command("keyphrases", file, "--all", "--resamples", "5", "--trials", "5").out
    assert "P/R present" in text.splitlines()[0]
    assert "duplicate_phrases ↓" in text
    assert "↓ lower is better: count_error, duplicate_phrases, duplicate_words" in text


@pytest.mark.model
def test_another_metric_joins_all_of_them(command: Command, file: str) -> None:
    done = command("keyphrases", file, "--all", "-m", "keyphrase_f1(k=3)", "-m", "fg", "-f", "tsv")
    header, *rows = (line.split("\t") for line in done.out.splitlines())
    assert header[-2:] == ["recall_absent", "recall_all"]
    names = [row[2] for row in rows if row[1] == "a"]
    assert names.count("keyphrase_f1(k=3)") == names.count("fg") == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--pred", "c"), "has a prediction 'c'; found: text, keyphrases, pred, a, b"),
        ((), "has no predictions; put them in a field pred.NAME"),
    ],
)
def test_a_field_that_no_row_has_is_refused_with_those_there_are(
    command: Command, file: str, options: tuple[str, ...], words: str
) -> None:
    if not options:
        Path(file).write_text('{"text": "a", "keyphrases": ["a"], "mine": ["a"]}\n')
    done = command("keyphrases", file, *options)
    assert (done.code, done.out) == (1, "")
    assert words in done.err
    assert "found: text, keyphrases, " in done.err


def test_a_file_without_gold_phrases_is_refused(command: Command, file: str) -> None:
    Path(file).write_text('{"text": "a", "gold": ["a"], "pred": {"a": ["a"]}}\n')
    done = command("keyphrases", file)
    assert (done.code, done.out) == (1, "")
    assert "rename the field (found: text, gold, pred, a)" in done.err


def test_a_malformed_line_is_told_and_counted(command: Command, file: str) -> None:
    with open(file, "a", encoding="utf-8") as more:
        more.write('{"text": 1, "keyphrases": 2, "pred": {"a": 3}}\n{nonsense\n' * 4)
    done = command("keyphrases", file, "-m", "fg", "--json")
    found = json.loads(done.out)
    assert found["flagged"]["documents"]["a"]["malformed"] == 4
    assert found["rows"][0]["documents"] == 6
    assert done.err.count("warning: ") == 6
    assert "more\n" in done.err
    refused = command("keyphrases", file, "--strict")
    assert (refused.code, refused.out) == (1, "")
    assert "line 3: text must be text, got 1; correct it" in refused.err


def test_standard_input_will_do(command: Command) -> None:
    given = "\n".join(map(json.dumps, LINES))
    assert command("keyphrases", "-", "-m", "fg", given=given).code == 0


def test_fitting_on_keyphrases_takes_no_other_ratings(command: Command, file: str) -> None:
    done = command("fit", file, "--keyphrases", "-o", "scorer", "--test", "wmt17-da")
    assert done.code == 2
    assert "--keyphrases takes neither --test nor --subset" in done.err
    too_few = command("fit", file, "--keyphrases", "-o", "scorer")
    assert (too_few.code, too_few.out) == (1, "")
    assert "a share of 0.1 of 2 documents leaves none to train on" in too_few.err
