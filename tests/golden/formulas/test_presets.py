"""A preset of this test: which setting of which part each of its options changes.

Presets are registered when their module is imported; here one is registered while tests run.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

import evenmatch as em
from evenmatch.metrics.presets import Preset, register_preset
from evenmatch.vectors.transformer import Transformer
from evenmatch.vectors.weighting import Idf, Norm, Uniform

METRIC = em.AlignMetric(em.Pieces(), Transformer(layer=3), alignment=em.TopK(4, 2.0))
OPTIONS = "marks model layer idf include_padding iterations factor solver mass"


@pytest.fixture
def preset(registry: None) -> Preset:
    found = Preset(
        "mine",
        em.spec(METRIC),
        OPTIONS,
        "A metric.\n\n    More about it.",
        {"mass": "vectors.mass"},
    )
    register_preset(found)
    return found


def test_without_options_a_preset_is_its_metric(preset: Preset) -> None:
    assert em.build("mine") == METRIC


@pytest.mark.parametrize(
    ("spec", "part", "setting", "value"),
    [
        ("mine(marks=True)", "units", "marks", True),
        ("mine(model='other')", "vectors", "model", "other"),
        ("mine(layer=5)", "vectors", "layer", 5),
        ("mine(include_padding=64)", "vectors", "pad_to", 64),
        ("mine(idf=True)", "vectors", "weights", Idf()),
        ("mine(idf='table.json')", "vectors", "weights", Idf("table.json")),
        ("mine(idf=False)", "vectors", "weights", Uniform()),
        ("mine(mass=norm)", "vectors", "mass", Norm()),
        ("mine(iterations=7)", "alignment", "iterations", 7),
        ("mine(factor=3.0)", "alignment", "factor", 3.0),
    ],
)
def test_an_option_changes_one_setting_of_one_part(
    preset: Preset, spec: str, part: str, setting: str, value: Any
) -> None:
    changed = dataclasses.replace(getattr(METRIC, part), **{setting: value})
    assert em.build(spec) == dataclasses.replace(METRIC, **{part: changed})


def test_options_are_combined_and_a_solver_replaces_the_alignment(preset: Preset) -> None:
    expected = dataclasses.replace(
        METRIC, vectors=Transformer(layer=2, weights=Idf()), alignment=em.Lsa()
    )
    assert em.build("mine(layer=2, idf=True, solver=lsa)") == expected


def test_options_have_the_defaults_of_their_settings(preset: Preset) -> None:
    from evenmatch.registry.parts import find_entry

    make = find_entry("mine").factory
    parameters = inspect.signature(make).parameters
    assert list(parameters) == OPTIONS.split()
    defaults = (False, "minilm", 3, False, 0, 4, 2.0, em.TopK(4, 2.0), Uniform())
    assert tuple(p.default for p in parameters.values()) == defaults
    assert parameters["iterations"].annotation is int
    assert (make.__name__, make.__doc__) == ("mine", "A metric.\n\nMore about it.")
    counted = Preset("counted", "align(vectors=transformer(weights=idf))", "idf", "Counted.")
    register_preset(counted)
    table = Preset(
        "table", "align(vectors=transformer(weights=idf(table='t.json')))", "idf", "By a table."
    )
    register_preset(table)
    for name, default in (("counted", True), ("table", "t.json")):
        assert inspect.signature(find_entry(name).factory).parameters["idf"].default == default
