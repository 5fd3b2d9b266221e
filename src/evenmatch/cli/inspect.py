"""Commands that show how metrics work: align, explain, list.

align shows the alignment of one candidate with one reference, explain the settings of a spec, and
list the registered names.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from evenmatch.api import align as align_pair
from evenmatch.cli import options as opt
from evenmatch.cli.console import print_message, print_text_or_json, terminal_width
from evenmatch.data.scores import replace_file, score_to_record
from evenmatch.data.tables import table_to_text
from evenmatch.errors import EvenmatchError
from evenmatch.registry import (
    KINDS,
    build,
    find_entry,
    make_signature,
    names,
    part_settings,
    resolve,
    spec,
)
from evenmatch.registry.opening import StandsFor
from evenmatch.registry.parts import RegistryEntry, entry_of
from evenmatch.scoring.aligned import Aligned
from evenmatch.scoring.metric import as_metric
from evenmatch.viewer.page import align_all, alignment_page, alternative_metrics, metric_trees

if TYPE_CHECKING:
    from evenmatch.viewer.trees import TreePair

_PLOT_SUFFIXES = (".svg", ".png", ".pdf", ".html")
_SPEC_NAME = re.compile(r"\s*(\w+)")
_SENTENCE_END = re.compile(r"(?<=\.)\s+")


def align(
    candidate: str = opt.argument(opt.REQUIRED, "CANDIDATE", "Text to score."),
    reference: str = opt.argument(opt.REQUIRED, "REFERENCE", "Text to align it with."),
    metric: str = opt.metric(
        "f_disc",
        "Name or spec of an alignment metric. The default is one-to-one: each unit has at most one "
        "partner, and those without one are visible.",
    ),
    plot: str = opt.value("", "FILE", "Also plot the alignment: a .svg, .png, .pdf or .html file."),
    also: list[str] | None = opt.value(
        None,
        "METRIC",
        "With --plot FILE.html: another metric to switch to; may be given several times.",
    ),
    against: str = opt.value(
        "", "TEXT", "With --plot FILE.html: a second candidate to show next to the first."
    ),
    json: bool = opt.JSON,
) -> None:
    """Show how a candidate aligns with a reference.

    Prints the units of both texts (sub-words, words or subtrees, depending on the metric), the
    matched pairs and the score. Put -- before a text that begins with a dash.
    """
    if plot and not plot.lower().endswith(_PLOT_SUFFIXES):
        raise typer.BadParameter(
            f"cannot plot to {plot}; the suffix must be one of {', '.join(_PLOT_SUFFIXES)}"
        )
    if (also or against) and not plot.lower().endswith(".html"):
        raise typer.BadParameter("--also and --against need --plot FILE.html")
    for text in (candidate, reference):
        if os.path.isfile(text):
            print_message(
                f"{text} is aligned as a text, not read as a file; for files: evenmatch score"
            )
    part = as_metric(metric)
    aligned = align_pair(candidate, reference, part)
    if plot.lower().endswith(".html"):
        others = [(name, as_metric(name)) for name in dict.fromkeys(also or ())]
        candidates = [candidate, against] if against else [candidate]
        every = [(metric, part), *others, *alternative_metrics(part)]
        trees = metric_trees(part, candidate, reference, aligned)
        shown = align_all(every, candidates, reference)
        replace_file(plot, alignment_page(aligned, trees, also=shown))
    elif plot:
        write_picture(aligned, plot, metric_trees(part, candidate, reference, aligned))
    if plot:
        print_message(f"wrote {plot}")
    print_text_or_json(f"{aligned}\n{aligned.signature}", alignment_document(aligned), json=json)


def alignment_document(aligned: Aligned) -> dict[str, Any]:
    """Return an alignment as a JSON document."""
    return {
        "candidate_units": aligned.candidate_units,
        "reference_units": aligned.reference_units,
        "similarity": [[float(s) for s in row] for row in aligned.similarity],
        "pairs": [list(pair) for pair in aligned.pairs],
        "score": score_to_record(aligned.score),
        "signature": aligned.signature,
    }


def write_picture(aligned: Aligned, path: str, trees: TreePair | None = None) -> None:
    """Plot an alignment to an SVG, PNG or PDF file: linked trees if given, else a heat map."""
    suffix = Path(path).suffix.lower()
    if trees and suffix == ".svg":
        from evenmatch.viewer.trees import tree_svg_file

        replace_file(path, tree_svg_file(trees, f"score {aligned.score.value:.4f}"))
    elif trees:
        from evenmatch.reports.heatmap import draw_trees

        draw_trees(trees, aligned, path)
    else:
        from evenmatch.reports.heatmap import draw_alignment

        draw_alignment(aligned, path)


@dataclass(frozen=True)
class Setting:
    """One setting of a part, or of a part inside it."""

    path: str
    value: str
    resolved: str | None  # the value that 'auto' resolves to here, if different
    about: str


@dataclass(frozen=True)
class Explanation:
    """A spec with all its settings."""

    spec: str
    kind: str
    about: str
    settings: tuple[Setting, ...]
    signature: str | None
    unresolved: str | None  # reason why there is no signature on this machine

    def __str__(self) -> str:
        table = [["setting", "value", "meaning"]]
        for each in self.settings:
            name = "  " * each.path.count(".") + each.path.split(".")[-1]
            value = f"{each.value} → {each.resolved}" if each.resolved else each.value
            table.append([name, value, each.about])
        parts = [f"{self.spec}\n{self.about}"]
        if self.settings:
            parts.append(table_to_text(table, width=terminal_width()))
        if self.signature:
            parts.append(f"signature: {self.signature}")
        else:
            parts.append(f"no signature on this machine: {self.unresolved}")
        return "\n\n".join(parts)


def explain(
    part: str = opt.argument(
        opt.REQUIRED,
        "SPEC",
        "Name of a metric or part, optionally with settings: name(setting=value).",
    ),
    json: bool = opt.JSON,
) -> None:
    """Show every setting of a metric or part.

    Defaults such as layer='auto' are resolved, and the settings of nested parts are included.
    """
    explanation = explain_spec(part)
    print_text_or_json(explanation, asdict(explanation), json=json)


def explain_spec(text: str) -> Explanation:
    """Return the settings and the signature of a spec."""
    part = build(text)
    own = find_entry(re.match(_SPEC_NAME, text)[1])  # type: ignore[index]  # a spec that builds has a name
    shown = part.meant if isinstance(part, StandsFor) else part
    here, signed, why = shown, None, None
    try:
        here, signed = resolve(shown)[0], make_signature(part)
    except EvenmatchError as error:
        why = str(error)
    about = " ".join((inspect.getdoc(own.factory) or "").split())
    return Explanation(spec(part), own.kind, about, tuple(_settings(shown, here, "")), signed, why)


def _settings(part: Any, here: Any, path: str) -> Iterator[Setting]:
    """Yield the settings of a part and of its nested parts; `here` is the part, pinned."""
    made_by = entry_of(part)
    resolved = part_settings(here)
    for name, value in part_settings(part).items():
        inner = entry_of(value)
        about = first_line(inner.factory.__doc__) if inner else _setting_help(made_by, name)
        shown, now = _format_value(value, inner), _format_value(resolved[name], inner)
        yield Setting(path + name, shown, now if now != shown else None, about)
        if inner:
            yield from _settings(value, resolved[name], f"{path}{name}.")
        elif _has_parts(value):
            for number, item in enumerate(value, 1):
                yield Setting(f"{path}{name}.{number}", spec(item), None, "")


def _has_parts(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(map(entry_of, value))


def _format_value(value: Any, made_by: RegistryEntry | None) -> str:
    if made_by:
        return made_by.name
    if _has_parts(value):
        return f"{len(value)} parts"
    return f"[{', '.join(map(repr, value))}]" if isinstance(value, tuple) else repr(value)


def _setting_help(made_by: RegistryEntry | None, setting: str) -> str:
    """Return the sentences of a part's docstring that mention the setting."""
    text = " ".join((inspect.getdoc(made_by.factory) or "").split()) if made_by else ""
    return " ".join(s for s in _SENTENCE_END.split(text) if f"`{setting}`" in s)


def list_names(
    kind: str | None = typer.Argument(
        None, metavar="KIND", help=f"List only one kind: {', '.join(KINDS)}.", show_default=False
    ),
    json: bool = opt.JSON,
) -> None:
    """List the metrics and the parts that metrics are built from."""
    found = [find_entry(name) for name in names(kind)]
    found.sort(key=lambda e: (list(KINDS).index(e.kind), e.name))
    rows = [[e.name, e.kind, first_line(e.factory.__doc__)] for e in found]
    keys = ("name", "kind", "about")
    document = {"parts": [dict(zip(keys, row, strict=True)) for row in rows]}
    table = [["name", "kind", "description"], *rows]
    print_text_or_json(table_to_text(table, width=terminal_width()), document, json=json)


def first_line(docstring: str | None) -> str:
    """Return the first line of a docstring."""
    return (docstring or "").strip().split("\n", 1)[0]
