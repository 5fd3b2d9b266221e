"""A signature rebuilds the metric, names everything by content, and resolves what was 'auto'."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evenmatch as em
from tests.support.parts import Row, rows

CANDIDATES, REFERENCES = ["the cat sat", "a dog"], ["a cat sat down", "the dog"]


@pytest.mark.parametrize("row", rows("metric"))
def test_a_signature_rebuilds_the_metric(row: Row) -> None:
    scores = em.score(CANDIDATES, REFERENCES, row.spec)
    rebuilt = em.build(scores.signature.split(" · ")[0])
    assert em.score(CANDIDATES, REFERENCES, rebuilt).signature == scores.signature
    # only a call knows the number of references
    assert rebuilt.signature == scores.signature.replace("nrefs:1", "nrefs:var")


@pytest.mark.parametrize("row", rows("metric"))
def test_a_signature_is_one_line_without_a_local_path(row: Row) -> None:
    signature = em.score(CANDIDATES, REFERENCES, row.spec).signature
    assert "\n" not in signature
    assert "/" not in signature.replace("/s", "")
    assert f" · evenmatch {em.__version__}" in signature
    assert "auto" not in signature


@pytest.mark.model
@pytest.mark.parametrize("name", ["bertscore", "f_disc", "f_cont"])
def test_the_layer_that_was_chosen_is_shown(name: str) -> None:
    signature = em.build(name).signature
    assert "layer=4" in signature
    assert em.build(f"{name}(layer=4)").signature == signature
    assert "layer=6" in em.build(f"{name}(layer='last')").signature


@pytest.mark.model
def test_the_model_is_named_with_the_hash_of_its_content() -> None:
    facts = em.build("bertscore").signature.split(" · ")
    assert facts[1] == f"evenmatch {em.__version__}"
    assert facts[2].startswith("model minilm@")
    assert len(facts[2].split("@")[1]) == 12


@pytest.mark.model
def test_idf_is_named_with_the_hash_of_what_was_counted() -> None:
    one, two = (em.score(CANDIDATES, r, "bertscore(idf=True)") for r in (REFERENCES, ["x", "y"]))
    assert "weights=idf(table='sha256:" in one.signature
    assert one.signature != two.signature
    assert em.score(CANDIDATES, REFERENCES, "bertscore(idf=True)").signature == one.signature


def test_a_table_file_is_named_by_content(tmp_path: Path) -> None:
    file = tmp_path / "counts.json"
    file.write_text(json.dumps({"documents": 3, "counts": [[7, 2]]}))
    metric = em.build(f"align(vectors=hashed(weights=idf(table={str(file)!r})))")
    assert str(tmp_path) not in metric.signature
    assert em.build(metric.signature.split(" · ")[0]).signature == metric.signature


def test_different_settings_have_different_signatures() -> None:
    specs = [
        "align(vectors=hashed)",
        "align(vectors=hashed(dim=8))",
        "align(vectors=hashed, alignment=lsa)",
    ]
    assert len({em.build(spec).signature for spec in specs}) == len(specs)


@pytest.mark.model
def test_run_settings_are_no_part_of_a_signature() -> None:
    plain = em.score(CANDIDATES, REFERENCES)
    assert em.score(CANDIDATES, REFERENCES, batch_tokens=5, threads=1).signature == plain.signature
