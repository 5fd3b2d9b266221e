"""Groups of options: where they are shown, what the command gets, and whose defaults hold."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import pytest

from evenmatch.cli.options import Command, count, expand_option_groups


@dataclass(frozen=True)
class Size:
    width: int = count(2, "Width.")
    height: int = count(3, "Height.")


def framed(got: list[object], **defaults: object) -> Command:
    @expand_option_groups(**defaults)
    def frame(title: str = "", *, size: Size, colour: str = "red") -> None:
        got.append((title, size, colour))

    return frame


def test_the_options_of_a_group_stand_in_its_place() -> None:
    shown = inspect.signature(framed([])).parameters
    assert list(shown) == ["title", "width", "height", "colour"]
    assert [shown[name].default.default for name in ("width", "height")] == [2, 3]


def test_a_command_gets_its_group_as_one_value() -> None:
    got: list[object] = []
    framed(got)(title="a", width=4, height=5, colour="blue")
    assert got == [("a", Size(4, 5), "blue")]


def test_a_command_may_have_its_own_default_for_an_option_of_a_group() -> None:
    assert inspect.signature(framed([], height=9)).parameters["height"].default.default == 9


def test_a_default_for_an_option_there_is_not_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="depth"):
        framed([], depth=1)
