"""Report pages of studies and training runs.

A `StudyReport` writes itself as a folder of tables (TSV), figures (SVG), `result.json` and an HTML
page. The functions below it return the page of one kind of JSON document.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from evenmatch.data.tables import TextTable, table_to_tsv
from evenmatch.reports.page import (
    SORT_HINT,
    bullet_list,
    record_table,
    render_page,
    section,
    sortable_table,
    write_page,
)
from evenmatch.reports.plots import Estimate, estimate_plot, figures_section, line_plot
from evenmatch.viewer.page import scroll_region

# Caption, and by name of the line the field of an evaluation.
_CURVES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("BLEU and chrF on the validation set", {"BLEU": "bleu", "chrF": "chrf"}),
    ("Cross-entropy of the training texts", {"cross-entropy": "cross_entropy"}),
    (
        "Reward of sampled texts, and the baseline: the reward of greedy texts or other samples",
        {"sampled": "reward", "baseline": "baseline"},
    ),
    ("Length of sampled texts, in tokens", {"sampled": "length"}),
    ("Length of greedy validation texts, in words", {"greedy": "greedy_length"}),
    (
        "Share of bigrams that occurred earlier in the text",
        {"sampled": "repetition", "greedy": "greedy_repetition"},
    ),
)


@dataclass(frozen=True, slots=True)
class StudyReport:
    """Results of a study: findings (sentences), tables and SVG figures by name, and notes."""

    title: str
    findings: Sequence[str]
    tables: Mapping[str, TextTable]
    figures: Mapping[str, str]
    notes: Sequence[str]

    @property
    def document(self) -> dict[str, Any]:
        """The report as a JSON document."""
        return {
            "title": self.title,
            "findings": list(self.findings),
            "tables": {name: [list(row) for row in table] for name, table in self.tables.items()},
            "figures": dict(self.figures),
            "notes": list(self.notes),
        }

    def write(self, folder: Path) -> Path:
        """Write the report into a folder and return the path of its page."""
        for name, table in self.tables.items():
            (folder / f"{name}.tsv").write_text(table_to_tsv(table) + "\n", "utf-8")
        for name, figure in self.figures.items():
            (folder / f"{name}.svg").write_text(figure, "utf-8")
        (folder / "result.json").write_text(json.dumps(self.document, indent=1), "utf-8")
        return write_page(study_page(self.document), folder / "index.html")


def lisa_page(document: Mapping[str, Any]) -> str:
    """Return the page of `study lisa`: effect of alignment method and padding on scores."""
    rows = document["rows"]
    by_condition: dict[str, list[Estimate]] = {}
    for row in rows:
        if row.get("group"):
            continue
        padding = f"padded to {row['length']}" if row["length"] else "no padding"
        padding += ", counted" if row.get("counted") else ""
        condition = f"{row['encoder']}, {padding}, {row.get('negatives', 'shuffled')} negatives"
        estimate = Estimate(row["algorithm"], **row["effect"])
        by_condition.setdefault(condition, []).append(estimate)
    figures = [
        estimate_plot(estimates, digits=2).figure(condition)
        for condition, estimates in by_condition.items()
    ]
    text = (
        "Cohen's d between the scores of true pairs and of negatives, in-batch (shuffled) or hard; "
        "lines are confidence intervals."
    )
    table = sortable_table(record_table(rows), "Results by encoder, padded length and algorithm")
    parts = (
        section("Findings", "", bullet_list(document["claims"])),
        figures_section("Effect sizes", text, figures),
        section("All values", SORT_HINT, table),
    )
    known = [name for name in ("data", "pairs", "seed", "seconds") if name in document]
    return render_page(
        "LiSAScore: assignment, padding and negatives",
        parts,
        [f"{name}: {document[name]}" for name in known],
        document.get("command", ""),
    )


def lisa_quality_page(document: Mapping[str, Any]) -> str:
    """Return the page of `study lisa-quality`: quality, agreement and speed of approximations."""
    named = {f"Quality, {kind}": rows for kind, rows in document["qualities"].items()}
    named |= {"Agreement with human ratings": document.get("agreements", [])}
    named |= {"Speed": document["speeds"]}
    parts = [
        section(name, "", sortable_table(record_table(rows), name))
        for name, rows in named.items()
        if rows
    ]
    title = "LiSAScore: quality and speed of approximate assignment"
    notes = [f"{document['sentences']} sentence pairs"]
    return render_page(title, parts, notes, document.get("command", ""))


def lisa_gradient_page(document: Mapping[str, Any]) -> str:
    """Return the page of `study lisa-gradient`: training through the metric, by method."""
    evaluations = {_run_name(each["lesson"]): each["held_out"] for each in document["curves"]}
    figures = []
    for caption, name in (
        ("Loss on held-out pairs", "loss"),
        ("Accuracy on held-out pairs", "right"),
    ):
        curves = {
            method: [(row["step"], row[name]) for row in rows]
            for method, rows in evaluations.items()
        }
        figures.append(line_plot(("step", caption.lower()), curves).figure(caption))
    text = "Accuracy is the share of candidates whose own reference scores highest in the batch."
    last = record_table([{"method": name, **rows[-1]} for name, rows in evaluations.items()])
    settings = record_table([each["lesson"] for each in document["curves"]])
    parts = (
        figures_section("Learning curves", text, figures),
        section("Final results", "", sortable_table(last, "Last evaluation of each method")),
        section("Settings", "", sortable_table(settings, "Settings of each method")),
    )
    title = "LiSAScore: training through the metric"
    return render_page(title, parts, (), document.get("command", ""))


def _run_name(settings: Mapping[str, Any]) -> str:
    padding = f", padded to {settings['pad_to']}" if settings.get("pad_to") else ""
    return f"{settings['method']}{padding}, seed {settings.get('seed', 0)}"


def study_page(document: Mapping[str, Any]) -> str:
    """Return the page of a study report: findings, figures, tables and notes."""
    tables = [sortable_table(table, name) for name, table in document["tables"].items()]
    figures = [_figure_image(name, figure) for name, figure in document.get("figures", {}).items()]
    parts = (
        section("Findings", "", bullet_list(document["findings"])),
        section("Figures", "", "\n".join(figures)),
        section("Tables", SORT_HINT, "\n".join(tables)),
    )
    return render_page(
        document["title"], parts, document.get("notes", ()), document.get("command", "")
    )


def _figure_image(name: str, figure: str) -> str:
    """Embed an SVG figure as an image, so that scripts in it cannot run."""
    data = b64encode(figure.encode()).decode()
    image = f'<img alt="{escape(name, quote=True)}" src="data:image/svg+xml;base64,{data}">'
    return f"<figure>{scroll_region(image, name)}</figure>"


def tune_page(document: Mapping[str, Any]) -> str:
    """Return the page of a tuning run: scores, rewards and form at each evaluation, and texts."""
    evaluations, best = document["looks"], document["best"]
    figures = []
    for caption, names in _CURVES:
        lines = {
            line: [(row["step"], row[name]) for row in evaluations]
            for line, name in names.items()
            if evaluations and name in evaluations[0]
        }
        if lines:
            figures.append(line_plot(("step", ", ".join(lines)), lines).figure(caption))
    text = "Cross-entropy and rewards are means over the steps since the previous evaluation."
    table = sortable_table(record_table(evaluations), "Evaluations") if evaluations else ""
    parts = [
        figures_section("Learning curves", "", figures),
        section("All evaluations", text, table),
    ]
    if examples := document.get("examples"):
        order = sorted(examples, key=lambda each: (each["source"], each["step"]))
        parts.insert(
            1,
            section(
                "Texts over time",
                "Greedy texts for some validation inputs, at each evaluation.",
                sortable_table(record_table(order), "Validation texts"),
            ),
        )
    notes = [
        f"{document['steps']} steps, {'finished' if document['ended'] else 'not finished'}",
        f"best: BLEU {best['bleu']:.4f} at step {best['step']}" if best else "no evaluation yet",
    ]
    if given := document.get("settings"):
        shown = ", ".join(f"{name} = {value}" for name, value in _flat_settings(given))
        notes.append(f"settings, apart from defaults: {shown}")
    return render_page("Fine-tuning with a reward", parts, notes, document.get("command", ""))


def _flat_settings(given: Mapping[str, Any], table: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if isinstance(value, Mapping):
            yield from _flat_settings(value, f"{table}{name}.")
        else:
            yield f"{table}{name}", value
