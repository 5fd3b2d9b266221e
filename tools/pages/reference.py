"""Write the generated pages of the reference: options of commands, public names, tune settings.

    python -m tools.pages.reference

A test compares the pages with the code.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

import evenmatch as em
from evenmatch.cli.main import COMMANDS, build_app
from evenmatch.registry.parts import describe_type, setting_types
from evenmatch.training.generator.tune_settings import T5Shape, TuneSettings
from tools.pages import ROOT
from tools.pages.markdown import table_lines

FOLDER = ROOT / "docs" / "reference"
_WRITTEN = "This page is written by `python -m tools.pages.reference`."
_REMARKS = re.compile(r"\s*\[(default: [^\[\]]*|required)[^\[\]]*\]$")
_ENTRY = re.compile(r"^    (\w+): (.*(?:\n {6,}.*)*)", re.MULTILINE)


def options_page() -> str:
    """Return the page of every command with its arguments and options."""
    lines = [
        "# Options of every command",
        "",
        "As `evenmatch COMMAND --help` prints them. [Command line](command-line.md) is an "
        f"overview. {_WRITTEN}",
    ]
    app: Any = get_command(build_app(list(COMMANDS)))
    for name, command in app.commands.items():
        for full, each in _leaves(f"evenmatch {name}", command):
            lines += ["", f"## {full}", "", *_command_lines(full, each)]
    return "\n".join(lines) + "\n"


def _leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(command, TyperGroup):
        for part, each in command.commands.items():
            yield from _leaves(f"{name} {part}", each)
    else:
        yield name, command


def _command_lines(name: str, command: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=name)
    yield inspect.cleandoc(command.help)
    yield ""
    yield f"`{command.get_usage(context).removeprefix('Usage: ')}`"
    yield ""
    rows = [["", "meaning", "default"]]
    for parameter in command.get_params(context):
        form, text = parameter.get_help_record(context)
        if not form.endswith("--help"):
            remark = _REMARKS.search(text)
            default = remark[1].removeprefix("default: ").strip("()") if remark else ""
            default = re.sub(r"\)?; x>=.*", "", default)
            form = form.removesuffix(" <str>")
            rows.append([f"`{form}`", _REMARKS.sub("", text), default])
    yield from table_lines(rows)


def names_page() -> str:
    """Return the page of every public name, with the page that describes it."""
    lines = [
        "# Public names",
        "",
        f"Everything that `import evenmatch as em` provides. {_WRITTEN}",
        "",
    ]
    places = reference_places()
    rows = [["name", "kind", "what it is or does"]]
    for name in em.__all__:
        thing = getattr(em, name)
        if name == "__version__":
            rows.append(["`__version__`", "string", "The version."])
            continue
        summary = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
        link = f"[`{name}`]({places[name]}#evenmatch.{name})"
        rows.append([link, "class" if inspect.isclass(thing) else "function", summary])
    return "\n".join([*lines, *table_lines(rows)]) + "\n"


def reference_places() -> dict[str, str]:
    """Return the reference page of each public name."""
    return {
        name: path.name
        for path in sorted(FOLDER.glob("*.md"))
        for name in re.findall(r"^::: evenmatch\.(\w+)$", path.read_text("utf-8"), re.MULTILINE)
    }


def tune_page() -> str:
    """Return the page of every field of a tuning run's TOML file."""
    lines = [
        "# Settings of `evenmatch tune`",
        "",
        "The fields of the TOML file of [a tuning run](../how-to/tune-a-generator.md), which are "
        f"those of `em.TuneSettings`. An unknown field is an error. {_WRITTEN}",
        "",
        *_field_table(TuneSettings),
        "",
        "## `[shape]`",
        "",
        "The size of the T5 that is made if `model` is empty.",
        "",
        *_field_table(T5Shape),
    ]
    return "\n".join(lines) + "\n"


def _field_table(settings: Any) -> Iterator[str]:
    types, meanings = setting_types(settings), field_meanings(settings)
    rows = [["field", "type", "default", "meaning"]]
    for field in dataclasses.fields(settings):
        if dataclasses.is_dataclass(types[field.name]):
            continue  # a table of its own
        required = field.default is dataclasses.MISSING
        default = "required" if required else f"`{_toml(field.default)}`"
        kind = describe_type(types[field.name])
        rows.append([f"`{field.name}`", kind, default, meanings[field.name]])
    yield from table_lines(rows)


def field_meanings(settings: Any) -> dict[str, str]:
    """Return the meaning of each field, from the section Attributes of the docstring."""
    _, _, section = (inspect.getdoc(settings) or "").partition("Attributes:\n")
    return {name: " ".join(text.split()) for name, text in _ENTRY.findall(section)}


def _toml(value: object) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)


PAGES: Mapping[str, Callable[[], str]] = {
    "options.md": options_page,
    "names.md": names_page,
    "tune-settings.md": tune_page,
}


def main(folder: Path = FOLDER) -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (folder / name).write_text(page(), "utf-8")
        print(f"wrote {folder / name}")


if __name__ == "__main__":
    main()
