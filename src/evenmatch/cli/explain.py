"""evenmatch explain: what a spec means, setting by setting."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from evenmatch.cli.names import first_line
from evenmatch.cli.options import Json
from evenmatch.cli.output import line_width, say_either
from evenmatch.data.tables import as_text
from evenmatch.errors import EvenmatchError
from evenmatch.registry import build, entry, pinned, settings, signature, spec
from evenmatch.registry.entries import Entry, entry_of

_NAME = re.compile(r"\s*(\w+)")
_SENTENCE_END = re.compile(r"(?<=\.)\s+")


@dataclass(frozen=True)
class Setting:
    """One setting of a part, or of a part inside it."""

    path: str
    value: str
    resolved: str | None  # what 'auto' and the like stand for here, where that differs
    about: str


@dataclass(frozen=True)
class Explanation:
    """A spec taken apart."""

    spec: str
    kind: str
    about: str
    settings: tuple[Setting, ...]
    signature: str | None
    unresolved: str | None  # why there is no signature on this machine

    def __str__(self) -> str:
        rows = [
            ["  " * s.path.count(".") + s.path.split(".")[-1], _arrow(s), s.about]
            for s in self.settings
        ]
        parts = [f"{self.spec}\n{self.about}"]
        table = [["setting", "value", "what it means"], *rows]
        parts += [as_text(table, width=line_width())] if rows else []
        if self.signature:
            parts.append(f"signature: {self.signature}")
        else:
            parts.append(f"no signature on this machine: {self.unresolved}")
        return "\n\n".join(parts)


def explain(
    part: Annotated[str, typer.Argument(metavar="SPEC", help="A name, or a name with settings.")],
    json: Json = False,
) -> None:
    """Explain a spec: every setting, defaults resolved, parts inside parts."""
    explanation = explained(part)
    say_either(explanation, asdict(explanation), json=json)


def explained(text: str) -> Explanation:
    """What a spec means."""
    part = build(text)
    own = entry(re.match(_NAME, text)[1])  # type: ignore[index]  # it was built, so it has a name
    here, signed, why = part, None, None
    try:
        here, signed = pinned(part), signature(part)
    except EvenmatchError as error:
        why = str(error)
    about = " ".join((inspect.getdoc(own.make) or "").split())
    return Explanation(spec(part), own.kind, about, tuple(_settings(part, here, "")), signed, why)


def _settings(part: Any, here: Any, path: str) -> Iterator[Setting]:
    """The settings of a part and of the parts inside it; `here` is the same part, pinned."""
    made_by = entry_of(part)
    resolved = settings(here)
    for name, value in settings(part).items():
        inner = entry_of(value)
        about = first_line(inner.make.__doc__) if inner else _said(made_by, name)
        shown, now = _shown(value, inner), _shown(resolved[name], inner)
        yield Setting(path + name, shown, now if now != shown else None, about)
        if inner:
            yield from _settings(value, resolved[name], f"{path}{name}.")


def _shown(value: Any, made_by: Entry | None) -> str:
    if made_by:
        return made_by.name
    if isinstance(value, tuple):
        return f"[{', '.join(_shown(item, entry_of(item)) for item in value)}]"
    return repr(value)


def _said(made_by: Entry | None, setting: str) -> str:
    """What the docstring of a part says of one of its settings."""
    text = " ".join((inspect.getdoc(made_by.make) or "").split()) if made_by else ""
    return " ".join(s for s in _SENTENCE_END.split(text) if f"`{setting}`" in s)


def _arrow(setting: Setting) -> str:
    return f"{setting.value} → {setting.resolved}" if setting.resolved else setting.value
