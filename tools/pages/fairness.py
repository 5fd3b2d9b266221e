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
import math
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
PARTS = {"offset": "+.5f", "stereotype": "+.5f", "share": ".2f", "beyond": ".2f"}
PENALTIES = {"pronoun": "a pronoun", "noun": "a noun only", "name": "a name only"}
Z = 1.959964  # the 97.5 % quantile of the normal distribution
Document = Mapping[str, Any]


def main() -> None:
    """Write the page and its figures."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    (PAGES / "fairness.md").write_text("\n".join(page_lines()) + "\n", "utf-8")


def page_lines() -> Iterator[str]:
    """The lines of the page, from what is stored."""
    runs = load("runs")
    yield from ("# Fairness", "", *paragraph(runs["introduction"]))
    yield from mean_section(runs)
    yield from summary_section(runs)
    yield from adapter_section(runs)
    yield from attribute_section(runs)
    yield from agreement_section(runs)
    yield from direction_section(runs)
    yield from audit_section(load("audit"), runs["audit"])
    yield from published_section(load("published"), runs["published"])
    yield from trade_off_section(runs)
    yield from strength_section(runs)
    yield from ("## Not measured", "", *(f"- {each}" for each in runs["not measured"]), "")
    yield "This page is written by `python -m tools.pages.fairness` from `results/fairness`."


def mean_section(runs: Document) -> Iterator[str]:
    """What averaging over groups removes and keeps, of `bertscore` and of other metrics."""
    section = runs["mean"]
    yield from ("## Averaging over groups", "", *paragraph(section["text"]))
    yield from commands(section)
    header = ["attributes", "set", "pairs", *_CHANGES]
    table = [[row["attributes"], *summary_cells(row, runs)] for row in section["rows"]]
    yield from (*table_lines([header, *table]), "", *paragraph(section["findings"]))
    sets = {name: title for name, title in GENDER_SETS.items() if name in section["metrics sets"]}
    table = [["metric", *(f"{title}, {how}" for title in sets.values() for how in _MEASURES)]]
    for metric in section["metrics"]:
        plain, mean = (load(f"{which}-{metric}")["sets"] for which in ("plain", "mean"))
        cells = [removed(plain[n][how], mean[n][how]) for n in sets for how in _MEASURES.values()]
        table.append([f"`{metric}`", *cells])
    yield from (*paragraph(section["metrics text"]), *table_lines(table), "")


_CHANGES = ("raw bias", "normalised", "stereotype, raw", "share", "penalty kept")
_MEASURES = {"raw": "raw", "normalised": "bias"}


def summary_section(runs: Document) -> Iterator[str]:
    """What each shipped adapter removes and keeps, a line for each set."""
    section = runs["summary"]
    yield from ("## Adapters in short", "", *paragraph(section["text"]))
    table = [["adapter", "set", "pairs", *_CHANGES]]
    for row in section["rows"]:
        name = f"`{row['adapter']}`" if row["shipped"] else f"({row['adapter']})"
        table.append([name, *summary_cells(row, runs)])
    yield from (*table_lines(table), "", *paragraph(section["findings"]))


def summary_cells(row: Document, runs: Document) -> Iterator[str]:
    """The title of a set, its size, and what a metric removes and keeps there."""
    before, after = (load(label)["sets"] for label in (runs["gender"]["plain"], row["label"]))
    plain, left = before[row["set"]], after[row["set"]]
    penalty = f"penalty, {row['penalty']}"
    yield from (row["title"], str(plain["pairs"]))
    yield from (removed(plain[how], left[how]) for how in ("raw", "bias"))
    yield f"{plain['stereotype']:+.4f} → {left['stereotype']:+.4f}"
    yield f"{plain['share']:.2f} → {left['share']:.2f}"
    yield f"{100 * after[penalty]['cost'] / before[penalty]['cost']:.0f} %"


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
    yield from paragraph(section["parts"])
    header = ["metric", "in standard deviations", "stereotype", "offset (men)", "share"]
    table = [[*header, "share beyond the offset", "p"]]
    for metric in metrics:
        row = known[metric, "gender"]
        cells = [f"{row[name]:+.2f}" for name in ("stereotype", "offset")]
        cells += [f"{row[name]:.2f}" for name in ("prefers_stereotype", "prefers_beyond_offset")]
        table.append([f"`{metric}`", f"{row['effect']:.2f}", *cells, f"{row['p']:.4f}"])
    yield from (*table_lines(table), "")


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
    groups = {
        title: [load(label)["sets"] for label in labels]
        for title, labels in section["adapters"].items()
    }
    shipped = next(iter(groups.values()))[0]
    yield from ("## Gender", "", *paragraph(section["text"]), *commands(section))
    table = [["set", "pairs", "raw bias", *groups, "normalised", *groups]]
    for name, named in GENDER_SETS.items():
        cells = [named, str(before[name]["pairs"])]
        for what, digits in (("raw", 5), ("bias", 2)):
            cells += [f"{before[name][what]:.{digits}f}"]
            cells += [
                removed(before[name][what], *(sets[name][what] for sets in seeds if name in sets))
                for seeds in groups.values()
            ]
        table.append(cells)
    yield from (*table_lines(table), "", *paragraph(section["parts"]))
    table = [["set", "offset", "stereotype", "share", "share beyond the offset"]]
    for name, named in GENDER_SETS.items():
        cells = [
            f"{before[name][what]:{form}} → {shipped[name][what]:{form}}"
            for what, form in PARTS.items()
        ]
        table.append([named, *cells])
    yield from (*table_lines(table), "")
    table = [["penalty for a wrong gender, shown by", "cases", "before", *groups]]
    for name, title in PENALTIES.items():
        plain = before[f"penalty, {name}"]
        costs = [
            share_kept(plain["cost"], *(sets[f"penalty, {name}"]["cost"] for sets in seeds))
            for seeds in groups.values()
        ]
        table.append([title, str(plain["cases"]), f"{plain['cost']:.5f}", *costs])
    yield from (*table_lines(table), "", *paragraph(section["findings"]))


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
    shown = [name for name in GENDER_SETS if name in section["sets"]]
    header = ["way and strength", *(f"bias, {GENDER_SETS[name]}" for name in shown)]
    header += [f"penalty by {title}" for title in PENALTIES.values()]
    table = []
    for label in (x for x in rows if x not in ("plain", "terms")):
        cells = [removed(plain[name]["raw"], rows[label][name]["raw"]) for name in shown]
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
    """Adapters for other attributes, each with its guards."""
    section = runs["attributes"]
    before = load(runs["gender"]["plain"])["sets"]
    yield from ("## Other attributes", "", *paragraph(section["text"]))
    yield from commands(section)
    header = ["attribute", "pairs", "adapter", "raw bias", "normalised", "stereotype, raw"]
    table = [[*header, "share", "pairs that turn", "penalty"]]
    for name, adapters in section["adapters"].items():
        base = before[name]
        start = [f"{base['raw']:.5f}", f"{base['bias']:.2f}", stereotype(base), share(base)]
        table.append([SHORT.get(name, name), str(base["pairs"]), "none", *start, "", ""])
        for label, title in adapters.items():
            after = load(label)["sets"]
            row, penalty = after[name], f"penalty, {name}"
            cells = [change(base["raw"], row["raw"]), change(base["bias"], row["bias"], 2)]
            cells += [stereotype(row), share(row), p_of_flips(base, row)]
            cells.append(share_kept(before[penalty]["cost"], after[penalty]["cost"]))
            table.append(["", "", title, *cells])
    yield from (*table_lines(table), "", *paragraph(section["findings"]))


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


def change(before: float, after: float, digits: int = 5, decimals: int = 0) -> str:
    """A value and how far it is from the one before."""
    return f"{after:.{digits}f} ({100 * after / before - 100:+.{decimals}f} %)"


def removed(before: float, *after: float) -> str:
    """How far one or more values are from the one before."""
    changes = ", ".join(f"{100 * value / before - 100:+.0f}" for value in after)
    return f"{changes} %" if changes else "-"


def share_kept(before: float, *after: float) -> str:
    """The share of a penalty that is left, for one or more seeds."""
    return f"{', '.join(f'{100 * value / before:.0f}' for value in after)} %"


def stereotype(row: Document) -> str:
    """The preference for the stereotype, with its 95 % interval where it is stored."""
    low, high = (row.get(f"stereotype_{end}") for end in ("low", "high"))
    interval = "" if low is None else f" ({low:+.4f} to {high:+.4f})"
    return f"{row['stereotype']:+.4f}{interval}"


def share(row: Document) -> str:
    """The share of pairs that prefer the stereotype, with Wilson's 95 % interval."""
    low, high = wilson_interval(row["share"], row["pairs"])
    return f"{row['share']:.2f} ({low:.2f} to {high:.2f})"


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """95 % interval of a binomial share (Wilson, 1927)."""
    spread = Z**2 / count
    centre = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return centre - half, centre + half


def p_of_flips(before: Document, after: Document) -> str:
    """How many pairs turn to the stereotype and away from it, with McNemar's exact p-value."""
    if "prefers" not in after:
        return "-"
    both = list(zip(before["prefers"], after["prefers"], strict=True))
    turned = [sum(pair == way for pair in both) for way in (("o", "s"), ("s", "o"))]
    count = sum(turned)
    tail = sum(math.comb(count, k) for k in range(min(turned) + 1)) / 2**count
    p = min(1.0, 2 * tail)
    shown = "p < .001" if p < 0.001 else f"p = {p:.3f}"
    return f"{turned[0]} to, {turned[1]} away ({shown})"


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
