"""Make docs/results/fairness.md from the JSON files in results/fairness.

    python -m tools.pages.fairness

The files are written by these commands; each section of the page names its own:

    evenmatch audit metric-fairness -m METRIC ... --json > results/fairness/audit.json
    evenmatch audit metric-fairness --published --json > results/fairness/published.json
    evenmatch audit PAIRS -m likelihood ... --json > results/fairness/likelihood.json
    python -m tools.fairness LABEL=METRIC ... [--ratings DATA ...]

`runs.json` has the text and the commands of each section, and which adapters it shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evenmatch.reports.plots import Estimate, estimate_plot, interval_plot, line_plot
from evenmatch.stats.bootstrap import Interval
from tools.fairness import STORED
from tools.pages import PAGES
from tools.pages.markdown import table_lines

FIGURES = PAGES / "fairness"
ATTRIBUTES = ("age", "gender", "physical-appearance", "race", "religion", "socioeconomic")
SHORT = {"physical-appearance": "appearance", "socioeconomic": "status"}
GENDER_SETS = {
    "gender": "paper's set",
    "winobias 1": "WinoBias, type 1",
    "winobias 2": "WinoBias, type 2",
    "crows gender": "CrowS-Pairs, gender",
    "nouns, seen": "nouns seen in training",
    "nouns, unseen": "unseen nouns",
    "nouns, further": "20 further unseen nouns",
    "names": "unseen names",
    "names, regions": "unseen names of eight regions",
    "own gender": "included pairs",
    "selection": "selection set",
}
PENALTIES = {"pronoun": "a pronoun", "noun": "a noun only", "name": "a name only"}
Document = Mapping[str, Any]


def main() -> None:
    """Write the page and its figures."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    (PAGES / "fairness.md").write_text("\n".join(page_lines()) + "\n", "utf-8")


def page_lines() -> Iterator[str]:
    """The lines of the page, from what is stored."""
    runs = load("runs")
    yield from ("# Fairness", "", *paragraph(runs["introduction"]))
    yield from audit_section(load("audit"), runs["audit"])
    yield from published_section(load("published"), runs["published"])
    yield from adapter_section(runs)
    yield from trade_off_section(runs)
    yield from strength_section(runs)
    yield from attribute_section(runs)
    yield from direction_section(runs)
    yield from agreement_section(runs)
    yield from ("## Not measured", "", *(f"- {each}" for each in runs["not measured"]), "")
    yield "This page is written by `python -m tools.pages.fairness` from `results/fairness`."


def audit_section(document: Document, section: Document) -> Iterator[str]:
    """Bias of our metrics by attribute (the paper's table 6 and figures 2 and 4), and table 9."""
    rows = document["rows"]
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    known = {(row["metric"], row["attribute"]): row for row in rows}
    means = {m: np.mean([known[m, a]["bias"] for a in ATTRIBUTES]) for m in metrics}
    metrics.sort(key=lambda m: float(means[m]))
    yield from ("## Bias of the metrics here", "", *paragraph(section["text"]), *commands(section))
    header = ["metric", *(SHORT.get(a, a) for a in ATTRIBUTES), "mean", "gender, raw"]
    table = [
        [
            f"`{metric}`",
            *(f"{known[metric, a]['bias']:.2f}" for a in ATTRIBUTES),
            f"{means[metric]:.2f}",
            f"{known[metric, 'gender']['raw']:.4f}",
        ]
        for metric in metrics
    ]
    yield from (*table_lines([header, *table]), "")
    plot = interval_plot(
        "bias, with all scores of a set scaled to 0-100",
        {m: {a: interval(known[m, a]) for a in ATTRIBUTES} for m in metrics},
    )
    yield from figure("bias-by-attribute", "Bias by metric and attribute", plot)
    groups = [
        Estimate(f"{g['paradigm']}, {g['encoder']}", g["bias"], g["low"], g["high"])
        for g in document["groups"]
    ]
    plot = estimate_plot(groups, bars=True, digits=2)
    yield from figure("bias-by-paradigm", "Mean bias by paradigm and encoder", plot)
    yield from (
        "### Absolute and signed difference on gender",
        "",
        "`stereotype` is positive where the candidate that agrees with the stereotype scores",
        "higher, `offset` where the male one does. The share is that of pairs that prefer the",
        "stereotype, ties counted half. Only the third column may be compared between metrics.",
        "",
    )
    table = []
    for metric in metrics:
        row = known[metric, "gender"]
        signed = [f"{row[name]:+.2f}" for name in ("stereotype", "offset")]
        shares = [f"{row[name]:.2f}" for name in ("prefers_stereotype", "prefers_beyond_offset")]
        numbers = [f"{row['bias']:.2f}", f"{row['effect']:.2f}", *signed, *shares]
        table.append([f"`{metric}`", *numbers, f"{row['p']:.4f}"])
    header = ["metric", "absolute", "in standard deviations", "stereotype", "offset (men)", "share"]
    yield from (*table_lines([[*header, "share beyond the offset", "p"], *table]), "")


def published_section(document: Document, section: Document) -> Iterator[str]:
    """Bias from the authors' own scores."""
    rows = document["rows"]
    known = {(row["metric"], row["attribute"]): row["bias"] for row in rows}
    signed = {r["metric"]: r["stereotype"] for r in rows if r["attribute"] == "gender"}
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    yield from ("## The published scores", "", *paragraph(section["text"]), *commands(section))
    header = ["metric", *(SHORT.get(a, a) for a in ATTRIBUTES), "mean", "gender, signed"]
    table = [
        [
            metric,
            *(f"{known[metric, a]:.2f}" for a in ATTRIBUTES),
            f"{np.mean([known[metric, a] for a in ATTRIBUTES]):.2f}",
            f"{signed[metric]:+.2f}",
        ]
        for metric in metrics
    ]
    yield from (*table_lines([header, *table]), "")


def adapter_section(runs: Document) -> Iterator[str]:
    """The shipped adapter on every gender set, before and after, with all seeds."""
    section = runs["gender"]
    before = load(section["plain"])["sets"]
    after = {title: load(label)["sets"] for label, title in section["adapters"].items()}
    yield from ("## Debiasing: gender", "", *paragraph(section["text"]), *commands(section))
    for what, digits, title in (("raw", 5, "raw bias"), ("bias", 2, "normalised bias")):
        header = [title, "pairs", "before", *after]
        table = [
            [
                named,
                str(before[name]["pairs"]),
                f"{before[name][what]:.{digits}f}",
                *(
                    change(before[name][what], sets[name][what], digits) if name in sets else "-"
                    for sets in after.values()
                ),
            ]
            for name, named in GENDER_SETS.items()
        ]
        yield from (*table_lines([header, *table]), "")
    yield from paragraph(section["parts"])
    header = ["offset, stereotype, share, share beyond the offset", "before", *after]
    table = [
        [
            GENDER_SETS[name],
            *(parts(sets[name]) if name in sets else "-" for sets in (before, *after.values())),
        ]
        for name in GENDER_SETS
    ]
    yield from (*table_lines([header, *table]), "")
    header = ["penalty for a wrong gender, shown by", "cases", "before", *after]
    table = [
        [
            title,
            str(before[f"penalty, {name}"]["cases"]),
            f"{before[f'penalty, {name}']['cost']:.5f}",
            *(
                kept(before[f"penalty, {name}"]["cost"], sets[f"penalty, {name}"]["cost"])
                for sets in after.values()
            ),
        ]
        for name, title in PENALTIES.items()
    ]
    yield from (*table_lines([header, *table]), "", *paragraph(section["findings"]))


def trade_off_section(runs: Document) -> Iterator[str]:
    """Runs with other weights of the loss: what is gained and what is lost."""
    section = runs["trade-off"]
    plain = load(runs["gender"]["plain"])["sets"]
    names = ("gender", "winobias 1", "winobias 2", "crows gender", "nouns, unseen", "names")
    yield from ("## What the terms of the loss trade", "", *paragraph(section["text"]))
    header = ["run", *(f"{GENDER_SETS[n]}, bias" for n in names), "share, paper's set"]
    header += [f"penalty by {title}" for title in PENALTIES.values()]
    table = []
    for label, title in section["adapters"].items():
        sets = load(label)["sets"]
        cells = [f"{100 * sets[n]['raw'] / plain[n]['raw'] - 100:+.0f} %" for n in names]
        cells.append(f"{sets['gender']['share']:.2f}")
        costs = [f"penalty, {name}" for name in PENALTIES]
        cells += [f"{100 * sets[n]['cost'] / plain[n]['cost']:.0f} %" for n in costs]
        table.append([title, *cells])
    yield from (*table_lines([header, *table]), "")


def strength_section(runs: Document) -> Iterator[str]:
    """What is left of bias and of penalty, by strength of the adapter and of linear removal."""
    section, rows = runs["strength"], load("strength")
    yield from ("## Trade-off by strength", "", *paragraph(section["text"]), *commands(section))
    plain = rows["plain"]
    measured = {"gender": "raw", "nouns, further": "raw", "names": "raw"} | {
        f"penalty, {name}": "cost" for name in PENALTIES
    }

    def left(label: str, name: str) -> float:
        return float(100 * rows[label][name][measured[name]] / plain[name][measured[name]])

    titles = {name: title for name, title in GENDER_SETS.items() if name in measured}
    titles |= {f"penalty, {name}": f"penalty by {title}" for name, title in PENALTIES.items()}
    for way, title in section["ways"].items():
        labels = {float(x.removeprefix(way)): x for x in rows if x.startswith(f"{way} ")}
        lines = {
            named: [(0.0, 100.0), *((x, left(label, name)) for x, label in labels.items())]
            for name, named in titles.items()
        }
        plot = line_plot(("strength", "% left"), lines, from_zero=True)
        yield from figure(f"strength-{way.replace(' ', '-')}", title, plot)
    header = ["way and strength", *(f"bias, {GENDER_SETS[n]}" for n in GENDER_SETS if n in plain)]
    header += [f"penalty by {title}" for title in PENALTIES.values()]
    table = []
    for label in (x for x in rows if x not in ("plain", "terms")):
        cells = [
            f"{100 * rows[label][n]['raw'] / plain[n]['raw'] - 100:+.0f} %"
            for n in GENDER_SETS
            if n in plain
        ]
        cells += [f"{left(label, f'penalty, {n}'):.0f} %" for n in PENALTIES]
        table.append([label, *cells])
    yield from (*table_lines([header, *table]), "", *paragraph(section["findings"]))
    yield from ("### Unseen nouns by term", "", *paragraph(section["terms"]))
    table = [
        [
            row["term"],
            "/".join(map(str, row["pieces"])),
            f"{row['raw'][0]:.5f}",
            change(*row["raw"]),
        ]
        for row in rows["terms"]
    ]
    header = ["nouns", "word pieces", "bias before", "with the adapter of more nouns"]
    yield from (*table_lines([header, *table]), "")


def attribute_section(runs: Document) -> Iterator[str]:
    """Adapters for other attributes."""
    section = runs["attributes"]
    before = load(runs["gender"]["plain"])["sets"]
    yield from ("## Debiasing: other attributes", "", *paragraph(section["text"]))
    yield from commands(section)
    header = ["attribute", "pairs", "adapter", "raw bias", "normalised", "penalty kept", "share"]
    table = []
    for name, adapters in section["adapters"].items():
        base = before[name]
        start = [f"{base['raw']:.5f}", f"{base['bias']:.2f}", "", f"{base['share']:.2f}"]
        table.append([SHORT.get(name, name), str(base["pairs"]), "none", *start])
        for label, title in adapters.items():
            after = load(label)["sets"]
            row = after[name]
            costs = (sets[f"penalty, {name}"]["cost"] for sets in (before, after))
            cells = [change(base["raw"], row["raw"]), change(base["bias"], row["bias"], 2)]
            table.append(["", "", title, *cells, kept(*costs), f"{row['share']:.2f}"])
    yield from (*table_lines([header, *table]), "", *paragraph(section["findings"]))


def direction_section(runs: Document) -> Iterator[str]:
    """The two directions of a likelihood (the paper's figure 5)."""
    section = runs["likelihood"]
    yield from ("## The two directions of a likelihood", "", *paragraph(section["text"]))
    yield from commands(section)
    rows = load("likelihood")["rows"]
    header = ["metric", "pairs", "bias", "95 %", "signed", "raw"]
    table = [
        [
            f"`{r['metric']}`",
            str(r["pairs"]),
            f"{r['bias']:.2f}",
            f"{r['low']:.2f} to {r['high']:.2f}",
            f"{r['stereotype']:+.2f}",
            f"{r['raw']:.4f}",
        ]
        for r in rows
    ]
    yield from (*table_lines([header, *table]), "")
    estimates = [Estimate(r["metric"], r["bias"], r["low"], r["high"]) for r in rows]
    plot = estimate_plot(estimates, bars=True, digits=2)
    yield from figure("likelihood-directions", "Gender bias by direction, SmolLM2", plot)


def agreement_section(runs: Document) -> Iterator[str]:
    """Agreement with human ratings before and after (the paper's tables 5 and 8)."""
    section = runs["agreement"]
    found = {title: load(label)["ratings"] for label, title in section["metrics"].items()}
    plain = next(iter(found.values()))
    yield from ("## Agreement with human ratings", "", *paragraph(section["text"]))
    yield from commands(section)
    header = ["ratings", *found]
    table = []
    for data, values in plain.items():
        for name in values:
            numbers = [ratings.get(data, {}).get(name, np.nan) for ratings in found.values()]
            cells = [
                "-" if np.isnan(n) else f"{n:.4f} ({100 * n / numbers[0] - 100:+.2f} %)"
                for n in numbers[1:]
            ]
            table.append([name, f"{numbers[0]:.4f}", *cells])
    yield from (*table_lines([header, *table]), "")


def load(label: str) -> Any:
    """A stored document."""
    return json.loads((STORED / f"{label}.json").read_text("utf-8"))


def interval(row: Document) -> Interval:
    """The bias of an audit's row with its interval."""
    return Interval(row["bias"], row["low"], row["high"])


def change(before: float, after: float, digits: int = 5) -> str:
    """A value and how far it is from the one before."""
    return f"{after:.{digits}f} ({100 * after / before - 100:+.0f} %)"


def kept(before: float, after: float) -> str:
    """A penalty and the share of it that is left."""
    return f"{after:.5f} ({100 * after / before:.0f} %)"


def parts(row: Document) -> str:
    """Offset, stereotype and both shares in one cell."""
    offset = f"{row['offset']:+.5f}" if "offset" in row else "-"
    beyond = f"{row['beyond']:.2f}" if "beyond" in row else "-"
    return f"{offset}, {row['stereotype']:+.5f}, {row['share']:.2f}, {beyond}"


def figure(name: str, title: str, plot: Any) -> Iterator[str]:
    """Write a figure beside the page and show it."""
    (FIGURES / f"{name}.svg").write_text(plot.svg_file(title), "utf-8")
    yield from (f"![{title}](fairness/{name}.svg)", "")


def commands(section: Document) -> Iterator[str]:
    """The commands of a section as a block."""
    yield from ("```sh", *section["commands"], "```", "")


def paragraph(text: Sequence[str]) -> Iterator[str]:
    """Lines of text, followed by an empty one."""
    yield from (*text, "")


if __name__ == "__main__":
    main()
