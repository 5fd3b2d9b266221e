from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.data.documents import Document, read_documents
from evenmatch.errors import DataError, InputError
from evenmatch.units.keyphrases import Phrases

RECORD = {
    "title": "Trees",
    "abstract": "We parse.",
    "keyphrases": ["parsing", "trees "],
    "pred": {"one": ["tree", ""], "two": "a; b;"},
}


def write(path: Path, *records: Any) -> str:
    lines = [each if isinstance(each, str) else json.dumps(each) for each in records]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def test_a_document_has_text_gold_phrases_and_those_of_each_system(tmp_path: Path) -> None:
    (found,) = read_documents(write(tmp_path / "d.jsonl", RECORD))
    (document,) = found.documents
    assert (found.name, found.predictions, found.errors) == ("d", ("one", "two"), ())
    assert document.text == "Trees We parse."
    assert document.keyphrases == ("parsing", "trees")
    assert document.predictions == {"one": ("tree",), "two": ("a", "b")}
    pair = document.to_pair("two")
    assert (pair.candidate, pair.references, pair.source) == (
        "a; b",
        ("parsing; trees",),
        "Trees We parse.",
    )


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ({"pred.mine": ["a"]}, "mine"),
        ({"prediction": "a"}, "prediction"),
        ({"pred": ["a"]}, "pred"),
    ],
)
def test_predictions_are_found_in_every_known_field(
    tmp_path: Path, field: dict[str, Any], name: str
) -> None:
    record = {"text": "t", "keyphrases": ["a"], **field}
    (found,) = read_documents(write(tmp_path / "d.jsonl", record))
    assert found.predictions == (name,)
    assert found.documents[0].predictions[name] == ("a",)


def test_predicted_phrases_may_be_lists_of_words(tmp_path: Path) -> None:
    record = {"text": "t", "keyphrases": ["a"], "pred_sents": [["deep", "net"], ["x"]]}
    (found,) = read_documents(write(tmp_path / "d.jsonl", record), predictions=["pred_sents"])
    assert found.documents[0].predictions == {"pred_sents": ("deep net", "x")}
    assert not found.errors
    record["pred_sents"] = [["deep net", "net"]]  # no words: variants, which predictions have not
    (found,) = read_documents(write(tmp_path / "d.jsonl", record), predictions=["pred_sents"])
    assert found.documents[0].flags == {"malformed"}


def test_documents_without_gold_phrases_are_read_on_request(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", {"text": "t"})
    (found,) = read_documents(path, gold=False)
    assert found.documents[0].keyphrases == ()


def test_predictions_in_another_field_are_read_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", {**RECORD, "mine": "x"})
    (found,) = read_documents(path, predictions=["mine", "one"])
    assert found.documents[0].predictions == {"mine": ("x",), "one": ("tree",)}


def test_gold_phrases_may_come_as_present_and_absent(tmp_path: Path) -> None:
    record = {"text": "t", "present": ["a"], "absent": ["b"]}
    (found,) = read_documents(write(tmp_path / "d.jsonl", record))
    assert found.documents[0].keyphrases == ("a", "b")


@pytest.mark.parametrize("broken", [7, None, ["a", 1], {"a": 1}])
def test_a_malformed_prediction_counts_as_empty_and_is_flagged(tmp_path: Path, broken: Any) -> None:
    record = {**RECORD, "pred": {"one": broken}}
    (found,) = read_documents(write(tmp_path / "d.jsonl", RECORD, record))
    assert found.documents[1].predictions["one"] == ()
    assert found.documents[1].flags == {"malformed"}
    assert not found.documents[0].flags
    assert any("line 2: one must be a list of phrases" in line for line in found.errors)


def test_a_line_that_is_not_a_record_is_left_out_with_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", RECORD, "{broken", "[1]", "", RECORD)
    (found,) = read_documents(path)
    assert len(found.documents) == 2
    assert [line.removeprefix(path) for line in found.errors] == [
        " line 2 is not JSON and was left out",
        " line 3 is not a JSON object and was left out",
    ]


def test_strict_reading_refuses_what_cannot_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", RECORD, "{broken")
    with pytest.raises(InputError, match=r"line 2 is not JSON and was left out; correct it, or"):
        read_documents(path, strict=True)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"text": "t", "pred": {"one": "a"}}, "line 1 has no field 'keyphrases'"),
        ({"text": 3, "keyphrases": "a", "pred": {"one": "a"}}, "text must be text, got 3"),
        ({"text": "t", "keyphrases": "a"}, "has no prediction 'one'"),
    ],
)
def test_missing_fields_are_errors(tmp_path: Path, record: dict[str, Any], words: str) -> None:
    path = write(tmp_path / "d.jsonl", record, RECORD)
    (found,) = read_documents(path, predictions=["one"])
    assert words in found.errors[0]


def test_a_system_without_some_predictions_is_an_error(tmp_path: Path) -> None:
    other = {**RECORD, "pred": {"one": "a"}}
    (found,) = read_documents(write(tmp_path / "d.jsonl", RECORD, other))
    assert found.errors[0].endswith("1 document has no prediction 'two'")
    assert found.documents[1].to_pair("two").candidate == ""


def test_a_text_in_an_unknown_field_is_an_error(tmp_path: Path) -> None:
    record = {"title": "t", "body": "a b", "keyphrases": "a", "pred": {"one": "a"}, "mine": "b"}
    (found,) = read_documents(write(tmp_path / "d.jsonl", record), predictions=["one", "mine"])
    [error] = found.errors
    assert error.endswith(
        "no record has abstract or text; phrases are looked up in title only (unused fields: body)"
    )
    del record["body"]
    (found,) = read_documents(write(tmp_path / "d.jsonl", record), predictions=["one", "mine"])
    assert not found.errors


def test_a_folder_is_all_its_files_gzipped_or_not(tmp_path: Path) -> None:
    write(tmp_path / "b.jsonl", RECORD)
    with gzip.open(tmp_path / "a.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps(RECORD) + "\n")
    names = [each.name for each in read_documents(tmp_path)]
    assert names == [f"{tmp_path.name}/a", f"{tmp_path.name}/b"]


def test_a_tsv_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "d.tsv", "text\tkeyphrases\tprediction", "a b\ta; c\ta")
    (found,) = read_documents(path)
    assert found.documents[0].keyphrases == ("a", "c")
    assert found.documents[0].predictions == {"prediction": ("a",)}


def test_no_documents_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no documents in d"):
        read_documents(write(tmp_path / "d.jsonl", "{"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"has no \.jsonl file; give a file of documents"):
        read_documents(tmp_path / "empty")


def test_a_public_set_is_found_by_name(data: Path) -> None:
    sets = read_documents("kp-predictions")
    assert {each.name: len(each.documents) for each in sets} == {
        "kp-predictions/inspec": 500,
        "kp-predictions/krapivin": 400,
        "kp-predictions/nus": 211,
        "kp-predictions/semeval": 100,
    }
    assert not any(each.errors for each in sets)


@pytest.mark.parametrize("phrase", ["q&amp;a systems", "one; two", "C;"])
def test_a_listed_phrase_with_a_semicolon_stays_one_phrase(phrase: str) -> None:
    document = Document(f"text about {phrase} .", (phrase, "other"), {"a": (phrase,)})
    pair = document.to_pair("a")
    assert len(Phrases()(pair.candidate).groups) == 1
    assert len(Phrases()(pair.references[0]).groups) == 2
    scores = em.build("keyphrase_f1(k='M', which='present')")([pair])
    assert scores.segments[0].value == 1.0


def test_predictions_that_no_record_has_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", RECORD, RECORD)
    with pytest.raises(InputError, match=r"no record of .* has a prediction 'nosuch'; .*one"):
        read_documents(path, predictions=["one", "nosuch"])


def test_gold_phrases_that_no_record_has_are_refused(tmp_path: Path) -> None:
    record = {"text": "a b", "gold": ["a"], "pred": {"x": ["a"]}}
    path = write(tmp_path / "d.jsonl", record, record)
    with pytest.raises(
        InputError, match=r"has gold keyphrases in a field keyphrases .*found: text, gold"
    ):
        read_documents(path)


def test_the_records_of_kpeval_are_read(tmp_path: Path) -> None:
    record = {
        "id": 3,
        "source": "fast trees [sep] we parse q ; a .",
        "target": "parsing;fast trees",
        "prediction": "parse ; nets",
    }
    (found,) = read_documents(write(tmp_path / "d.jsonl", record))
    (document,) = found.documents
    assert (found.predictions, found.errors) == (("prediction",), ())
    assert document.text == "fast trees we parse q ; a ."
    assert document.keyphrases == ("parsing", "fast trees")
    assert document.predictions == {"prediction": ("parse", "nets")}


def test_a_gold_phrase_may_be_a_list_of_its_variants(tmp_path: Path) -> None:
    record = {**RECORD, "keyphrases": [["neural nets", "nn; net", " "], "parsing", [], [""]]}
    (found,) = read_documents(write(tmp_path / "d.jsonl", record))
    (document,) = found.documents
    assert document.keyphrases == ("neural nets", "parsing")
    assert document.variants == (("neural nets", "nn; net"), ("parsing",))
    assert not document.flags
    units = Phrases()(document.to_pair("one").references[0])
    assert units.items == ("neural net", "nn; net", "pars")


def test_phrases_without_variants_have_none(tmp_path: Path) -> None:
    (found,) = read_documents(write(tmp_path / "d.jsonl", RECORD))
    assert found.documents[0].variants == ()


def test_a_variant_that_is_no_text_is_malformed(tmp_path: Path) -> None:
    record = {**RECORD, "keyphrases": [["a", 1], "b"]}
    (found,) = read_documents(write(tmp_path / "d.jsonl", record))
    assert found.documents[0].keyphrases == ("b",)
    assert "keyphrases must be a list of phrases" in found.errors[0]


def test_a_file_without_texts_is_told(tmp_path: Path) -> None:
    record = {"keyphrases": ["a"], "pred": {"x": ["a"]}}
    (found,) = read_documents(write(tmp_path / "d.jsonl", record))
    assert found.errors[-1].endswith(
        "has a text in a field title, abstract, text, source; every phrase counts as absent"
    )


def test_a_set_knows_its_fields(tmp_path: Path) -> None:
    (found,) = read_documents(write(tmp_path / "d.jsonl", RECORD, {**RECORD, "mine": "a"}))
    assert found.fields == ("title", "abstract", "keyphrases", "pred", "one", "two", "mine")
