"""Groups of options that a command takes as one value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from inspect import Parameter
from typing import Any, TypeAlias

Command: TypeAlias = Callable[..., None]


def takes_option_groups(**defaults: object) -> Callable[[Command], Command]:
    """A command each group of which is spelt out as its options.

    A group is a parameter whose type is a dataclass of options. The command line is read off a
    function's signature; so the wrapper shows the options there, in the place of their group, and
    hands them on as one value. `defaults` replace the groups' own.
    """

    def take(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters
        groups = {name: _options(p) for name, p in own.items() if is_dataclass(p.annotation)}

        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            for name, options in groups.items():
                given[name] = own[name].annotation(**{o: given.pop(o) for o in options})
            command(**given)

        options = _spelt_out(own, groups)
        for name, value in defaults.items():
            options[name] = options[name].replace(default=value)
        shown = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in options.values()]
        with_options.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in shown}
        return with_options

    return take


def _options(group: Parameter) -> Mapping[str, Parameter]:
    return inspect.signature(group.annotation, eval_str=True).parameters


def _spelt_out(
    own: Mapping[str, Parameter], groups: Mapping[str, Mapping[str, Parameter]]
) -> dict[str, Parameter]:
    return {o: p for name in own for o, p in groups.get(name, {name: own[name]}).items()}
