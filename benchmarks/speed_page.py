"""Write the documentation page on speed, with a chart, from the stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.results import load
from benchmarks.serve import requests as serve
from benchmarks.speed import static
from benchmarks.training import reward

PAGE = Path(__file__).parent.parent / "docs" / "results" / "speed.md"
CHART = PAGE.with_name("speed.svg")


def write_page() -> None:
    """Write docs/results/speed.md from the results that exist."""
    found = {n: r for n in _WRITERS if (r := load(n)) is not None and "skipped" not in r}
    if not found:
        return
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    machine = next(iter(found.values()))["machine"]
    lines = [
        "# Speed",
        "",
        f"Measured by `make bench` on {machine['cores']} cores ({machine['processor']}).",
        "The programs under comparison alternate within one run and the table shows medians over",
        "rounds, because the machine is noisy. Ratios transfer to other machines better than",
        "absolute rates. The benchmarks were run on different days, on processors of different",
        "speed, and some beside other work, so compare numbers within a table only.",
        "`results/benchmarks/` holds each result as JSON.",
        "",
    ]
    if "peers" in found:
        _draw(found["peers"])
        lines += ["![pairs per second against peers](speed.svg)", ""]
    for name, result in found.items():
        lines += [*_WRITERS[name](result), f"Command: `{result['command']}`", ""]
    PAGE.write_text("\n".join(lines), "utf-8")


def _peers(r: dict[str, Any]) -> list[str]:
    rates = r["pairs per second"]
    return [
        "## Against peers",
        "",
        f"BERTScore on {r['pairs']} pairs ({r['texts']}), {r['threads']} threads,",
        "the same MiniLM at layer 4 for all.",
        "",
        "| | pairs per second | speed-up of evenmatch | largest score difference |",
        "|---|--:|--:|--:|",
        f"| evenmatch | {rates['evenmatch']} | | |",
        f"| bert_score | {rates['bert_score']} | {r['times bert_score']}× | "
        f"{r['largest difference from bert_score at batch size 64']} (batch size 1: "
        f"{r['largest difference from bert_score at batch size 1']}) |",
        f"| torchmetrics | {rates['torchmetrics']} | {r['times torchmetrics']}× | "
        f"{r['largest difference from torchmetrics']} |",
        "",
        f"bert_score computes {r['padding factor of bert_score']} tokens per real token because of "
        f"padding; evenmatch pads no text and computes {r['filling factor of evenmatch']}.",
        "The line in the chart is an upper bound: the plain matrix products of the model's shapes "
        "over these texts,",
        f"each text once, nothing else: "
        f"{r['pairs per second of plain products']} pairs per second, "
        f"{r['plain products, times bert_score']}× bert_score.",
        "",
    ]


def _static(r: dict[str, Any]) -> list[str]:
    return [
        "## Without a forward pass",
        "",
        f"`f_static` on {r['pairs']} pairs ({r['texts']}), against `bertscore` with as many",
        "threads. A second thread makes `bertscore` faster and `f_static` hardly.",
        "",
        "| | `f_static`, pairs per second | `bertscore` | ratio | by round |",
        "|---|--:|--:|--:|---|",
        *(
            f"| {name} | {r[name]['pairs per second']['f_static']} | "
            f"{r[name]['pairs per second']['bertscore']} | {r[name]['times bertscore']}× | "
            f"{', '.join(map(str, r[name]['times bertscore, round by round']))} |"
            for name in static.THREADS
        ),
        "",
    ]


def _shapes(r: dict[str, Any]) -> list[str]:
    return [
        "## Other models",
        "",
        "BERTScore with random weights of the shapes of other models, against bert_score. DeBERTa",
        "runs by transformers in both programs; the others are packed without padding. The padding",
        "factor is how many tokens bert_score computes per real token; the more pairs, the fewer.",
        "`python -m benchmarks peers --shape NAME` measures one of them.",
        "",
        "| shape | layer | pairs | padding factor | pairs per second | of bert_score | "
        "speed-up of evenmatch | largest score difference |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
        *(
            f"| {name} | {v['layer']} | {v['pairs']} | {v['padding factor of bert_score']} | "
            f"{v['pairs per second']['evenmatch']} | "
            f"{v['pairs per second']['bert_score']} | {v['times bert_score']}× | "
            f"{v['largest difference at batch size 1']} |"
            for name, v in r["by shape"].items()
        ),
        "",
    ]


def _products(r: dict[str, Any]) -> list[str]:
    share = r["share of the products' rate"]
    return [
        "## Against the upper bound",
        "",
        f"On one thread the encoder runs at {share:.0%} of the rate that plain matrix products of",
        f"its own shapes reach ({r['tokens']} tokens, nothing else computed).",
        "",
    ]


def _sharing(r: dict[str, Any]) -> list[str]:
    shares = r["share of the encoder's time, by its threads"]
    sizes = r["microseconds per pair by size"]
    heads = list(next(iter(sizes.values())))
    return [
        "## Many metrics in one pass",
        "",
        f"{', '.join(f'`{m}`' for m in r['metrics'])} together take {_by_threads(r, 'exact')} "
        "the time of `bertscore` alone,",
        f"and with {', '.join(f'`{m}`' for m in r['approximations'])} as well "
        f"{_by_threads(r, 'all')}.",
        f"At the last layer, so that {' and '.join(f'`{m}`' for m in r['last layer only'])} can "
        f"join them, all take {_by_threads(r, 'last')}.",
        "Encoding, optimal transport and the LiSAScore solvers use the second thread; the rest",
        "does not. The LiSAScore solvers are compiled here; a process compiles them after a",
        "quarter of a second of solving.",
        "",
        "Cost of alignment as a share of encoding the same texts on one thread (two threads): "
        + ", ".join(f"{name} {by['1']:.2%} ({by['2']:.2%})" for name, by in shares.items())
        + ".",
        "",
        "Microseconds to align one pair with n units per side:",
        "",
        f"| n | {' | '.join(heads)} |",
        f"|---|{'--:|' * len(heads)}",
        *(
            f"| {name} | {' | '.join(str(v) for v in row.values())} |"
            for name, row in sizes.items()
        ),
        "",
    ]


def _by_threads(r: dict[str, Any], which: str) -> str:
    one, two = (r["together over bertscore alone, by threads"][n][which] for n in ("1", "2"))
    return f"{one}× (one thread) and {two}× (two threads)"


def _job(r: dict[str, Any]) -> list[str]:
    return [
        "## A typical job",
        "",
        f"{r['texts']}, all alignment metrics: {r['times faster']}× faster than bert_score per",
        "system plus a moverscore-style loop (padded batches, one pair at a time) for one-to-one",
        "and transport.",
        "",
    ]


def _caching(r: dict[str, Any]) -> list[str]:
    return [
        "## A warm cache",
        "",
        f"`{r['metric']}`, end to end, each run in a fresh process on two threads, cold and warm",
        "runs alternating; medians. A process takes a third of a second to start, which matters",
        "less with more pairs.",
        "",
        "| pairs | form | cold over warm | warm, seconds | largest difference from no cache |",
        "|--:|---|--:|--:|--:|",
        *(
            f"| {count} | {form} | {v['cold over warm']}× | {v['warm seconds']} | "
            f"{v['largest difference from no cache']:.1e} |"
            for count, forms in r["by number of pairs"].items()
            for form, v in forms.items()
        ),
        "",
    ]


def _growth(r: dict[str, Any]) -> list[str]:
    counts, lengths = r["by number of pairs"], r["times bert_score by tokens per text"]
    return [
        "## Growth of time and memory",
        "",
        "| pairs | pairs per second | peak memory, MB |",
        "|--:|--:|--:|",
        *(f"| {n} | {v['pairs per second']} | {v['peak MB']} |" for n, v in counts.items()),
        "",
        f"Four times the pairs take {r['memory of 4000 pairs over 1000']}× and then "
        f"{r['memory of 16000 pairs over 4000']}× the memory.",
        "",
        f"| tokens per text | {' | '.join(lengths)} |",
        f"|---|{'--:|' * len(lengths)}",
        f"| times bert_score | {' | '.join(f'{v}×' for v in lengths.values())} |",
        "",
    ]


def _stream(r: dict[str, Any]) -> list[str]:
    return [
        "## A file larger than memory",
        "",
        f"{r['pairs']:,} pairs from JSONL to Parquet with `{r['metric']}`: "
        f"{r['pairs per second']} pairs per second, {r['peak MB']} MB at most.",
        "",
    ]


def _structure(r: dict[str, Any]) -> list[str]:
    times, rates, filters = (
        r[k] for k in ("times bertscore", "pairs per second", "microseconds of same_label")
    )
    return [
        "## Structure alignment",
        "",
        f"{r['pairs']} pairs ({r['texts']}), {r['threads']} threads, all texts parsed beforehand.",
        "",
        "| | pairs per second | times the cost of `bertscore` |",
        "|---|--:|--:|",
        f"| `bertscore` | {rates['bertscore']} | 1 |",
        *(f"| `{name}` | {rates[name]} | {times[name]} |" for name in times),
        "",
        "Parsing, in texts per second:",
        "",
        "| | first time | from the cache |",
        "|---|--:|--:|",
        *(
            f"| {name} | {' | '.join(str(v) for v in own.values())} |"
            for name, own in r["parsing"].items()
        ),
        "",
        "Similarity with the filter, in microseconds per pair: "
        + ", ".join(f"{name} {value}" for name, value in filters.items())
        + ". The whole matrix is therefore computed.",
        "",
    ]


def _phrases(r: dict[str, Any]) -> list[str]:
    return [
        "## Phrase trees derived from dependencies",
        "",
        f"Against the trees of `{r['texts']}` on gold tokens: F1 of multi-word phrases,",
        "excluding the root.",
        "",
        "| genre | sentences | labelled | unlabelled |",
        "|---|--:|--:|--:|",
        *(
            f"| {genre} | {v['sentences']} | {v['labelled']} | {v['unlabelled']} |"
            for genre, v in r["genres"].items()
        ),
        "",
    ]


_WRITERS = {
    "peers": _peers,
    "shapes": _shapes,
    "products": _products,
    "sharing": _sharing,
    "static": _static,
    "job": _job,
    "caching": _caching,
    "growth": _growth,
    "stream": _stream,
    "structure": _structure,
    "phrases": _phrases,
    "reward": reward.page_section,
    "serve": serve.page_section,
}


def _draw(result: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rates = dict(sorted(result["pairs per second"].items(), key=lambda item: item[1]))
    figure, axes = pyplot.subplots(figsize=(6, 1.8), layout="constrained")
    colours = ["#2a6f97" if name == "evenmatch" else "#6c757d" for name in rates]
    bars = axes.barh(list(rates), list(rates.values()), color=colours)
    axes.bar_label(bars, label_type="center", fmt="%.0f", color="white")
    bound = result["pairs per second of plain products"]
    axes.axvline(bound, color="#c1121f", linestyle="--", linewidth=1)
    axes.annotate(
        f"plain products {bound:.0f}",
        (bound, 0),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        color="#c1121f",
        fontsize=8,
    )
    axes.set_xlabel("pairs per second (more is better)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.12)
    figure.savefig(CHART, metadata={"Date": None})
    pyplot.close(figure)
