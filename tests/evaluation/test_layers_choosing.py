from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.evaluation.layer_selection import choose_layer
from evenmatch.files import models_dir
from evenmatch.models.backbone import HiddenStates, OpenBackbone
from evenmatch.models.checkpoints import (
    find_checkpoint,
    layer_choice_path,
    resolve_layer,
    save_layer_choice,
)

REFERENCES = [
    "the cat sat on the mat",
    "prices rose by three per cent last year",
    "nobody expected the minister to resign",
    "rain is forecast for the whole north",
    "she plays the violin in an orchestra",
    "the train was late again this morning",
]
CANDIDATES = [
    ["a cat was on the mat", "cats like mats", "the mat", "dogs bark", "the cat sat", "rain"],
    ["a cat sat", "prices went up", "the minister stayed", "it will rain", "a violin", "a train"],
]


def rated(layer: int, *, subset: str = "", humans: frozenset[str] = frozenset()) -> RatedSet:
    """Ratings equal to the scores of the model at that layer."""
    references = tuple((text,) for text in REFERENCES)
    ratings = [
        [s.value for s in em.score(own, REFERENCES, f"f_disc(layer={layer})").segments]
        for own in CANDIDATES
    ]
    return RatedSet(
        name="made-up",
        subset=subset,
        systems=("one", "two"),
        segments=tuple(map(str, range(6))),
        candidates=tuple(map(tuple, CANDIDATES)),
        references=references,
        sources=(None,) * 6,
        ratings=np.array(ratings),
        system_ratings=np.full(2, np.nan),
        humans=humans,
    )


@pytest.fixture
def unknown(tmp_path: Path, empty_cache: Path) -> str:
    """The embedded model in a folder of its own, so that nothing is published under its name."""
    folder = tmp_path / "model"
    folder.mkdir()
    for path in (models_dir() / "minilm").iterdir():
        (folder / path.name).symlink_to(path)
    return str(folder)


@pytest.mark.model
def test_the_layer_that_people_think_at_is_chosen() -> None:
    found = choose_layer([rated(2)], "f_disc", folds=3, store=False)
    assert found.layer == 2
    assert found.rows[2].agreement == pytest.approx(1)
    assert found.rows[2].held_out == pytest.approx(1)
    assert [row.chosen for row in found.rows] == [0, 0, 3, 0, 0, 0, 0]
    assert found.held_out == pytest.approx(1)
    assert em.build(found.metric) == em.build("f_disc(layer=2)")
    assert (found.data, found.outputs) == ("made-up", 12)


@pytest.mark.model
@pytest.mark.parametrize(("level", "method"), [("per_item", "kendall"), ("per_system", "pearson")])
def test_other_levels_and_coefficients_choose_as_well(level: Any, method: Any) -> None:
    found = choose_layer([rated(5)], "f_disc", level=level, method=method, folds=2, store=False)
    assert found.rows[5].agreement == pytest.approx(1)
    assert found.rows[found.layer].agreement == pytest.approx(1)


@pytest.mark.model
def test_subsets_count_the_same_and_can_be_held_out() -> None:
    sets = [rated(1, subset="a"), rated(1, subset="b"), rated(6, subset="c")]
    found = choose_layer(sets, "f_disc", folds="subsets", store=False)
    alone = [choose_layer([own], "f_disc", folds=2, store=False).rows for own in sets]
    for row, own in zip(found.rows, zip(*alone, strict=True), strict=True):
        assert row.agreement == pytest.approx(sum(each.agreement for each in own) / 3)
    assert found.subsets == ("a", "b", "c")
    assert sum(row.chosen for row in found.rows) == 3
    assert found.held_out < max(row.agreement for row in found.rows)


@pytest.mark.model
def test_people_among_the_systems_are_left_out() -> None:
    found = choose_layer([rated(3, humans=frozenset({"two"}))], "f_disc", folds=2, store=False)
    assert found.outputs == 6


@pytest.mark.model
def test_texts_go_through_the_model_once_for_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rated(2)
    seen: list[str] = []
    encode = OpenBackbone.encode

    def noting(
        self: OpenBackbone, texts: Sequence[str], layers: Sequence[int]
    ) -> list[HiddenStates]:
        assert list(layers) == list(range(7))
        seen.extend(texts)
        return encode(self, texts, layers)

    monkeypatch.setattr(OpenBackbone, "encode", noting)
    choose_layer([data], "f_disc", folds=2, store=False)
    assert sorted(seen) == sorted({*REFERENCES, *(t for own in CANDIDATES for t in own)})


@pytest.mark.model
def test_auto_takes_the_stored_choice_and_the_signature_shows_it(unknown: str) -> None:
    metric = em.build(f"f_disc(model={unknown!r})")
    with pytest.warns(UserWarning, match=r"using 4 of 6 .* evenmatch choose-layer"):
        assert "layer=4" in metric.signature
    found = choose_layer([rated(2)], metric, folds=2)
    assert "layer=2" in metric.signature
    assert found.model == find_checkpoint(unknown).label
    stored = json.loads(layer_choice_path(find_checkpoint(unknown)).read_text("utf-8"))
    assert (stored["layer"], stored["data"], stored["outputs"]) == (2, "made-up", 12)


@pytest.mark.model
def test_nothing_is_stored_unless_wanted(unknown: str) -> None:
    choose_layer([rated(2)], f"f_disc(model={unknown!r})", folds=2, store=False)
    assert not layer_choice_path(find_checkpoint(unknown)).exists()


@pytest.mark.model
def test_what_is_published_goes_before_a_choice(empty_cache: Path) -> None:
    choose_layer([rated(2)], "f_disc", folds=2)
    assert layer_choice_path(find_checkpoint("minilm")).is_file()
    assert resolve_layer("auto", find_checkpoint("minilm")) == 4


@pytest.mark.model
@pytest.mark.parametrize("note", ["", "{", "[]", '{"layer": "2"}', '{"layer": 7}', '{"depth": 2}'])
def test_a_note_that_is_damaged_or_does_not_fit_is_none(unknown: str, note: str) -> None:
    save_layer_choice(find_checkpoint(unknown), 2, {})
    assert resolve_layer("auto", find_checkpoint(unknown)) == 2
    layer_choice_path(find_checkpoint(unknown)).write_text(note)
    with pytest.warns(UserWarning, match=r"the best layer of .* is not known"):
        assert resolve_layer("auto", find_checkpoint(unknown)) == 4


@pytest.mark.model
def test_a_table_of_the_user_s_will_do(tmp_path: Path) -> None:
    data = rated(6)
    rows = [
        {
            "system": system,
            "segment": segment,
            "candidate": data.candidates[i][j],
            "references": list(data.references[j]),
            "rating": float(data.ratings[i, j]),
        }
        for i, system in enumerate(data.systems)
        for j, segment in enumerate(data.segments)
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = choose_layer(path, "f_disc", folds=2, store=False)
    assert (found.layer, found.subsets) == (6, ("mine",))


@pytest.mark.model
def test_it_prints_every_layer_and_the_metric_to_use() -> None:
    text = str(choose_layer([rated(2)], "f_disc", folds=3, store=False))
    assert text.splitlines()[0].split() == ["layer", "agreement", "held", "out", "chosen"]
    assert "layer 2 of minilm@" in text
    assert text.endswith("to use: align(vectors=transformer(layer=2), alignment=lsa)")


def empty() -> RatedSet:
    return RatedSet(
        "none",
        "",
        ("a",),
        ("1",),
        (("x",),),
        (("y",),),
        (None,),
        np.full((1, 1), np.nan),
        np.ones(1),
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metric": "chrf"}, "chrf has no layers"),
        ({"level": "system"}, "a layer is chosen by segments; use segment"),
        ({"data": [empty()]}, "none has no rated outputs with references to choose a layer by"),
        ({"data": []}, "an empty list has no rated outputs"),
    ],
)
def test_what_cannot_be_chosen_by_is_refused(given: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"data": [empty()], "metric": "f_disc"}
    with pytest.raises(em.InputError, match=message):
        choose_layer(**{**usual, **given})


@pytest.mark.model
def test_constant_ratings_are_refused() -> None:
    constant = dataclasses.replace(rated(2), ratings=np.ones((2, 6)))
    with pytest.raises(em.InputError, match="are constant or too few for a correlation"):
        choose_layer([constant], "f_disc", folds=2, store=False)
