"""The registry of parts: names, kinds, factories and the types of their settings.

`register` adds a part class or a function under a name; `names` and `find_entry` look names up.
Built-in parts and those of other packages are found through entry points and imported on first
use, and the modules named by EVENMATCH_PLUGINS when a name is in none of them. The second half
reads the settings of a factory from its signature and checks values, also those of arguments
(`check_arguments`).
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import math
import numbers
import os
import re
import sys
import types
import typing
import warnings
from collections import abc
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from functools import cache, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from evenmatch import protocols
from evenmatch.errors import InputError, MissingExtraError, UnknownNameError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_LARGEST_INTEGER = 2**53
ENTRY_POINT_GROUP = "evenmatch"
PLUGINS_VARIABLE = "EVENMATCH_PLUGINS"
_OWN_MODULES = "evenmatch."

KINDS: Mapping[str, type] = {
    "units": protocols.Splitter,
    "parser": protocols.Parser,
    "vectors": protocols.Encoder,
    "weighting": protocols.Weighting,
    "similarity": protocols.Similarity,
    "alignment": protocols.Solver,
    "scoring": protocols.Reducer,
    "metric": protocols.Metric,
}

_KIND_OF_PROTOCOL = {protocol: kind for kind, protocol in KINDS.items()}

Factory = TypeVar("Factory", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class RegistryEntry:
    """A registered name: its kind, and the class or function that creates the part."""

    name: str
    kind: str
    factory: Callable[..., Any]


_entries: dict[str, RegistryEntry] = {}


def register(kind: str, name: str) -> Callable[[Factory], Factory]:
    """Register a part class, or a function that returns a part, under a name for use in specs."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"there is no kind of part called {kind!r}; known: {', '.join(KINDS)}")
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"the name of a part must be a plain identifier, not {name!r}")

    def decorate(factory: Factory) -> Factory:
        # The instances of other classes cannot be compared, hashed or written as a spec.
        if isinstance(factory, type) and not (
            dataclasses.is_dataclass(factory) and issubclass(factory, Hashable)
        ):
            raise InputError(
                f"the class of {name!r} must be a frozen dataclass; "
                f"write @dataclass(frozen=True) above {factory.__name__}"
            )
        if owner := _other_owner(name, factory):
            raise InputError(
                f"the name {name!r} is taken by {owner}; "
                f"{factory.__module__} must choose another name"
            )
        _entries[name] = RegistryEntry(name, kind, factory)
        return factory

    return decorate


def names(kind: str | None = None) -> tuple[str, ...]:
    """Return all registered names, or those of one kind, sorted."""
    if kind is not None and (not isinstance(kind, str) or kind not in KINDS):
        near = suggest_name(kind.lower(), KINDS) if isinstance(kind, str) else ""
        raise UnknownNameError(f"there is no kind {kind!r}; {near}known: {', '.join(KINDS)}")
    for point in _entry_points():
        if failure := _load_entry_point(point):
            warnings.warn(failure, stacklevel=2)
    return tuple(sorted(n for n, e in _entries.items() if kind in (None, e.kind)))


def find_entry(name: str, kind: str | None = None) -> RegistryEntry:
    """Return the entry with that name in any case; its module is imported on first use.

    `kind` is the kind of part that is expected, for the message about an unknown name.
    """
    if name in _entries:
        return _entries[name]
    name = _match_case(name)
    point = _find_entry_point(name)
    if name not in _entries and point and (failure := _load_entry_point(point)):
        raise MissingExtraError(failure)
    if name not in _entries:
        known = names(kind)  # packages may register more names than they have entry points
        name = _match_case(name)
    if name not in _entries:
        if name in _UNAVAILABLE_NAMES:
            raise UnknownNameError(f"unknown {kind or 'name'} {name!r}; {_UNAVAILABLE_NAMES[name]}")
        if os.path.isdir(name):
            raise UnknownNameError(
                f"unknown {kind or 'name'} {name!r}; for the folder of that name, write './{name}'"
            )
        near = [n for n in known if _plain_name(n) == _plain_name(name)]
        near = _OTHER_NAMES.get(name.lower(), near)
        if point:  # with the name of something else than the parts in its module
            near = [n for n in known if _entries[n].factory.__module__ == _module_of(point)]
        plain = name.lower().replace("-", "_")
        near = near or difflib.get_close_matches(plain, known, n=3, cutoff=0.5)
        hint = f"known: {', '.join(known)}"
        if near:
            every = f"evenmatch list {kind}" if kind else "evenmatch list"
            hint = f"did you mean {' or '.join(map(repr, near))}? `{every}` shows all names"
        raise UnknownNameError(f"unknown {kind or 'name'} {name!r}; {hint}")
    return _entries[name]


# Names in other libraries and in papers that no spelling rule leads to.
_OTHER_NAMES: Mapping[str, list[str]] = {
    "chrf++": ["chrf(word_order=2)"],
    "sacrebleu": ["bleu"],
    "f1": ["f1_at_m", "sem_f1"],
}


# Names that stand for no part, and what to write instead.
_UNAVAILABLE_NAMES: Mapping[str, str] = {
    "all": "only `evenmatch score` takes all; name the metrics",
    "comet": "COMET is not included; for a metric fitted to ratings, use wmt_blend",
}


def _match_case(name: str) -> str:
    """Return the known name that equals `name` but for upper and lower case, or `name` itself."""
    # An entry point has no kind before it is imported, so a name of any kind may match.
    known = (*_entries, *(point.name for point in _entry_points()))
    return name if name in known else next((n for n in known if n.lower() == name.lower()), name)


def _plain_name(name: str) -> str:
    return re.sub(r"[-_+]", "", name.lower().replace("@", "at"))


def kind_of(part: Any) -> str | None:
    """Return the kind that a part is registered as, or None if it is not a registered part."""
    found = entry_of(part)
    return found.kind if found else None


def entry_of(part: Any) -> RegistryEntry | None:
    """Return the entry whose factory is the class of the part, or None if there is none."""
    return next((e for e in _entries.values() if e.factory is type(part)), None)


def part_settings(part: Any) -> dict[str, Any]:
    """Return all settings of a part by name."""
    return {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if f.init}


@cache
def setting_types(factory: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the settings of a factory and their declared types."""
    parameters = inspect.signature(factory, eval_str=True).parameters
    return {k: Any if p.annotation is p.empty else p.annotation for k, p in parameters.items()}


def check_settings(part: Any) -> None:
    """Raise InputError if a setting of a part has the wrong type.

    For parts created in Python; settings in a spec are checked when it is read. A part among them
    need not be registered.
    """
    factory: Callable[..., Any] = type(part)
    hints = setting_types(factory)
    plain = {k: h for k, h in hints.items() if h not in KINDS.values()}
    check_values(type(part).__name__, {key: getattr(part, key) for key in plain}, plain)
    for key in hints.keys() - plain.keys():
        value = getattr(part, key)
        if isinstance(value, type) or not callable(value):
            raise InputError(
                f"{type(part).__name__}'s {key} takes a part, got {value!r:.60}; "
                "create an instance, or use em.build('NAME')"
            )


def check_values(
    owner: str,
    given: Mapping[str, Any],
    hints: Mapping[str, Any],
    *,
    others: Iterable[str] = (),
    show: Callable[[Any], str] = repr,
) -> None:
    """Raise InputError if `given` has a name without a type in `hints`, or a value of another type.

    The checker of specs, TOML tables and run settings, which `owner` names in the message. `others`
    are names that the caller reads itself; `show` formats a wrong value.
    """
    for key, value in given.items():
        if key not in hints:
            near = suggest_name(key, (*hints, *others))
            known = ", ".join((*hints, *others)) or "none"
            raise InputError(f"{owner} has no setting {key!r}; {near}known: {known}")
        if not matches_type(value, hints[key]):
            alone = isinstance(value, str) and matches_type([value], hints[key])
            how = f"; write [{value!r}]" if alone else ""
            raise InputError(
                f"{owner}'s {key} takes {describe_type(hints[key])}, got {show(value)}{how}"
            )
        if _is_number(value, numbers.Integral) and abs(value) > _LARGEST_INTEGER:
            raise InputError(f"{owner}'s {key} must be between -2**53 and 2**53, got {show(value)}")


def check_arguments(function: Factory) -> Factory:
    """Decorate a public function: raise InputError if an argument is not of its declared type.

    Parts and names are left to the function: it accepts specs, and knows which names there are.
    """
    signature = inspect.signature(function)
    catch_all = {name for name, p in signature.parameters.items() if p.kind is p.VAR_KEYWORD}

    @cache
    def argument_types() -> Mapping[str, Any]:
        hints = setting_types(function)
        return {key: _argument_type(hint) for key, hint in hints.items() if key not in catch_all}

    @wraps(function)
    def checked_call(*args: Any, **kwargs: Any) -> Any:
        given: Mapping[str, Any] = {}
        with suppress(TypeError):  # of a missing or unknown argument; the call below raises it
            given = signature.bind(*args, **kwargs).arguments
        own = {key: value for key, value in given.items() if key not in catch_all}
        for key in [key for name in catch_all for key in given.get(name, {})]:
            # A misspelt argument would be refused as an unknown run setting.
            if near := difflib.get_close_matches(key, argument_types(), n=1, cutoff=0.85):
                raise InputError(
                    f"{function.__name__} has no argument {key!r}; did you mean {near[0]!r}?"
                )
        check_values(function.__name__, own, argument_types(), show=lambda value: f"{value!r:.60}")
        return function(*args, **kwargs)

    return typing.cast(Factory, checked_call)


def _argument_type(hint: Any) -> Any:
    """Return the type that `check_arguments` checks, given the declared one."""
    if typing.get_origin(hint) is typing.Literal:
        return str | hint
    return Any if _accepts_parts(hint) else hint


def _accepts_parts(hint: Any) -> bool:
    if typing.get_origin(hint) is abc.Mapping:  # whose values are not checked
        return False
    return hint in KINDS.values() or any(map(_accepts_parts, typing.get_args(hint)))


def check_at_least(least: float, **values: float) -> None:
    """Raise InputError if one of the values is below `least`.

    >>> check_at_least(1, epochs=3, batch=0)
    Traceback (most recent call last):
    evenmatch.errors.InputError: batch must be at least 1, got 0
    """
    for name, value in values.items():
        if not value >= least:
            raise InputError(f"{name} must be at least {least}, got {value}")


def check_at_most(most: float, **values: float) -> None:
    """Raise InputError if one of the values exceeds `most`."""
    for name, value in values.items():
        if not value <= most:
            raise InputError(f"{name} must be at most {most}, got {value}")


def check_positive(**values: float) -> None:
    """Raise InputError if one of the values is not above 0."""
    for name, value in values.items():
        if not value > 0:
            raise InputError(f"{name} must be above 0, got {value}")


# Settings of other libraries that have no counterpart of a similar name.
_FOREIGN_SETTINGS = {
    "lang": "the model decides the language, as in model='xlm-roberta-base'",
    "rescale_with_baseline": "`evenmatch baseline` prints a rescaled metric",
    **{
        name: f"the metric has it, as in {spec!r}"
        for names, spec in (
            (("model", "model_type"), "bertscore(model='roberta-large')"),
            (("layer", "num_layers"), "bertscore(layer=9)"),
            (("idf",), "bertscore(idf=True)"),
        )
        for name in names
    },
}


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return a question that names the closest known name, or '' if none is close.

    A name is close if it has almost the same letters, or if its words contain the other's words.

    >>> suggest_name("epoch", ["batch", "epochs"]), suggest_name("learning_rate", ["rate", "seed"])
    ("did you mean 'epochs'? ", "did you mean 'rate'? ")
    """
    if name in _FOREIGN_SETTINGS:
        return f"{_FOREIGN_SETTINGS[name]}; "
    names, words = list(known), set(name.split("_"))
    near = difflib.get_close_matches(name, names, n=1) or [
        each for each in names if words <= (own := set(each.split("_"))) or own <= words
    ]
    return f"did you mean {near[0]!r}? " if near else ""


_LIST_TYPES = (abc.Sequence, abc.Iterable, abc.Collection)


def matches_type(value: Any, hint: Any) -> bool:
    """Whether a setting declared as `hint` accepts the value."""
    origin = typing.get_origin(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(matches_type(value, option) for option in typing.get_args(hint))
    if origin is typing.Literal:
        return any(type(value) is type(o) and value == o for o in typing.get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(
            matches_type(item, typing.get_args(hint)[0]) for item in value
        )
    if origin in _LIST_TYPES:
        item = typing.get_args(hint)[0]
        # Columns of data frames are no sequences, but collections.
        unordered = origin is not abc.Collection and isinstance(value, abc.Set)
        if unordered or isinstance(value, (str, bytes, abc.Mapping)):
            return False
        if isinstance(value, abc.Collection):
            return all(matches_type(each, item) for each in value)
        return origin is abc.Iterable and isinstance(value, abc.Iterable)
    if origin is abc.Callable:
        return callable(value)
    if origin in (abc.Mapping, os.PathLike):
        return isinstance(value, origin)
    if hint in (None, types.NoneType):
        return value is None
    if hint is float:
        return _is_number(value, numbers.Real) and _is_finite(value)
    if hint is int:
        return _is_number(value, numbers.Integral)
    if hint in _KIND_OF_PROTOCOL:
        return kind_of(value) == _KIND_OF_PROTOCOL[hint]
    return isinstance(value, hint)


def kind_of_hint(hint: Any) -> str | None:
    """Return the kind of part that a setting declared as `hint` takes, alone or in a list."""
    options = {hint, *typing.get_args(hint)}
    return next((kind for kind, protocol in KINDS.items() if protocol in options), None)


def takes_text(hint: Any) -> bool:
    """Whether a setting declared as `hint` takes text, alone or among other values.

    >>> takes_text(int | typing.Literal["auto"]), takes_text(str), takes_text(float)
    (True, True, False)
    """
    return hint is str or isinstance(hint, str) or any(map(takes_text, typing.get_args(hint)))


def describe_type(hint: Any) -> str:
    """Describe a type in words, for error messages."""
    options = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(describe_type(option) for option in options)
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(repr(option) for option in options)
    if typing.get_origin(hint) in (tuple, *_LIST_TYPES):
        many = {str: "strings", int: "whole numbers", float: "numbers"}
        one = describe_type(options[0])
        shown = many.get(options[0], f"({one})" if typing.get_args(options[0]) else one)
        return f"a list of {shown}"
    named = {abc.Mapping: "a dictionary", abc.Callable: "a function", os.PathLike: "a path"}
    if typing.get_origin(hint) in named:
        return named[typing.get_origin(hint)]
    plain = {int: "a whole number", float: "a number", str: "a string", bool: "True or False"}
    if kind := _KIND_OF_PROTOCOL.get(hint):
        article = "an" if kind == "alignment" else "a"
        return f"{article} {kind} part ({', '.join(names(kind))})"
    return plain.get(hint, getattr(hint, "__name__", "nothing"))


def cast_setting(value: Any, hint: Any) -> Any:
    """Convert an integer to float if `hint` is float, so that equal parts have equal specs."""
    return float(value) if hint is float and isinstance(value, numbers.Integral) else value


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    """Return all entry points, own ones first, and one for each module of EVENMATCH_PLUGINS."""
    # Imported here because it takes a sixth of the time to import evenmatch.
    from importlib.metadata import EntryPoint, entry_points

    installed = entry_points(group=ENTRY_POINT_GROUP)
    modules = os.environ.get(PLUGINS_VARIABLE, "").replace(",", " ").split()
    return (
        *sorted(installed, key=lambda point: not point.value.startswith(_OWN_MODULES)),
        *(EntryPoint(module, module, ENTRY_POINT_GROUP) for module in modules),
    )


def _find_entry_point(name: str) -> EntryPoint | None:
    return next((point for point in _entry_points() if point.name == name), None)


def _module_of(point: EntryPoint) -> str:
    return point.value.partition(":")[0].strip()


@cache
def _load_entry_point(point: EntryPoint) -> str:
    """Import the module of an entry point; return why that failed, or '' if it did not."""
    before = set(_entries)
    try:
        import_module(_module_of(point))
    except Exception as error:  # noqa: BLE001  a module may raise anything when it is imported
        for name in _entries.keys() - before:
            # Python forgets a module that cannot be imported, so its parts are forgotten as well.
            if _entries[name].factory.__module__ not in sys.modules:
                del _entries[name]
        package = f"{point.dist.name} {point.dist.version}" if point.dist else PLUGINS_VARIABLE
        return (
            f"the plug-in {point.name!r} of {package} cannot be loaded: "
            f"{type(error).__name__}: {error}; repair or remove it"
        )
    return ""


def _other_owner(name: str, factory: Callable[..., Any]) -> str:
    """Return the module that owns the name, or '' if `factory` may be registered under it."""
    known, module = _entries.get(name), factory.__module__
    if known:
        # A reloaded module may register its own names again, but not those of another module.
        own = known.factory.__module__, known.factory.__qualname__
        return "" if own == (module, factory.__qualname__) else own[0]
    point = None if module.startswith(_OWN_MODULES) else _find_entry_point(name)
    owner = _module_of(point) if point else ""
    # The module of an entry point may register parts of other packages while it is imported.
    may_register = owner in sys.modules or owner.split(".")[0] == module.split(".")[0]
    return "" if may_register else owner


def _is_number(value: Any, numeric: type) -> bool:
    # numpy numbers are accepted, but True is not a number
    return isinstance(value, numeric) and not isinstance(value, bool)


def _is_finite(number: Any) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer too large for a float
        return False
