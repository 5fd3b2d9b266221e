"""Make docs/results/lisa.md from the studies of LiSAScore.

    python -m tools.pages.lisa [STUDY ...] [--out FOLDER]

Runs the studies that are named, in a folder each below FOLDER, where they are resumed, and writes
their results to results/lisa. Then writes the page from all results there and the text in
lisa_page.md. In that text, {{table NAME}} is a table of `TABLES`, {{command STUDY}} a command,
and {{STUDY FIELD key=value ...}} a number of the row of that study with these values.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evenmatch.data.ratings.reading import read_ratings
from evenmatch.data.tables import TextTable
from evenmatch.stats.bootstrap import Interval
from evenmatch.studies.experiment import format_interval, make_study_folder
from evenmatch.studies.lisa.findings import (
    ALPHA,
    grid_document,
    grid_figures,
    identify_encoders,
    padding_label,
    summarize_grid,
)
from evenmatch.studies.lisa.gradient import (
    GradientSettings,
    gradient_findings,
    gradient_report,
    train_through_metric,
)
from evenmatch.studies.lisa.grid import (
    ALGORITHMS,
    BASELINE,
    GREEDY,
    HARD,
    SHUFFLED,
    Grid,
    run_lisa_grid,
)
from evenmatch.studies.lisa.trade_off import TradeOffSettings, measure_trade_off, trade_off_report
from evenmatch.studies.sentences import ADVERSARIAL, WMT17, load_sentence_pairs
from evenmatch.vectors.transformer import Transformer
from tools.pages import PAGES, RESULTS
from tools.pages.markdown import table_lines

STORED = RESULTS / "lisa"
FIGURES = PAGES / "lisa"
_DIGITS = 5  # of stored numbers
_SIDES = {SHUFFLED: "in-batch", HARD: "hard"}
_FEW = (GREEDY, "lsa", "recursive", "recursive(legacy=True)")
Row = Mapping[str, Any]
Results = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class GridRun:
    """A run of `evenmatch study lisa`, and the figures of it that the page shows."""

    pairs: int
    lengths: tuple[int, ...] = (0, 128)
    models: tuple[str, ...] = ("minilm",)
    data: str = ""
    sources: bool = False
    human: bool = False
    languages: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = _FEW
    figures: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command with the same settings."""
        flags = ["--sources"] * self.sources + ["--human"] * self.human
        options: dict[str, Sequence[object]] = {
            "language": self.languages,
            "pairs": (self.pairs,),
            "length": self.lengths,
        }
        if self.sources or self.models != ("minilm",):
            options["model"] = self.models
        if self.algorithms != ALGORITHMS:
            options["algorithm"] = self.algorithms
        named = [
            f"--{name} {shlex.quote(str(v))}" for name, values in options.items() for v in values
        ]
        return " ".join(["evenmatch study lisa", *filter(None, [self.data]), *flags, *named])

    def __call__(self, folder: Path) -> dict[str, Any]:
        """Run what the folder does not have yet, and return rows, figures and identification."""
        sentences = load_sentence_pairs(
            self.data,
            self.pairs,
            0,
            sources=self.sources,
            human=self.human,
            languages=self.languages,
            hard=True,
        )
        grid = Grid(self.models, lengths=self.lengths, algorithms=self.algorithms)
        runs = run_lisa_grid(sentences, grid, folder)
        rows = summarize_grid(runs)
        figures = grid_figures(runs, rows)
        found = grid_document(runs, rows) | {"figures": {n: figures[n] for n in self.figures}}
        if len(runs.encoders) > 2:
            found["identification"] = [asdict(each) for each in identify_encoders(runs)]
        return found


@dataclass(frozen=True)
class GradientRun:
    """A run of `evenmatch study lisa-gradient --encoder`."""

    pairs: int
    words: int
    steps: int
    batch: int
    rate: float
    methods: tuple[str, ...]
    lengths: tuple[int, ...]
    seeds: tuple[int, ...]

    @property
    def command(self) -> str:
        """The command with the same settings."""
        options: dict[str, Sequence[object]] = {
            "pairs": (self.pairs,),
            "words": (self.words,),
            "steps": (self.steps,),
            "batch": (self.batch,),
            "rate": (self.rate,),
            "method": self.methods,
            "length": self.lengths,
            "seed": self.seeds,
        }
        named = [
            f"--{name} {shlex.quote(str(v))}" for name, values in options.items() for v in values
        ]
        start = "evenmatch study lisa-gradient --encoder --sources --language de"
        return " ".join([start, *named])

    def __call__(self, folder: Path) -> dict[str, Any]:
        """Train what the folder does not have yet, and return curves, table and figure."""
        settings = [
            GradientSettings(
                method,
                steps=self.steps,
                batch=self.batch,
                rate=self.rate,
                look_every=max(1, self.steps // 2),
                seed=seed,
                encoder=True,
                pad_to=length,
            )
            for length in self.lengths
            for method in self.methods
            for seed in self.seeds
        ]
        sentences = load_sentence_pairs(
            "", self.pairs, 0, sources=True, languages=("de",), max_words=self.words
        )
        curves = train_through_metric(sentences, Transformer(), settings, folder, log=print)
        report = gradient_report(curves, sentences)
        return {
            "curves": [curve.to_dict() for curve in curves],
            "findings": gradient_findings(curves),
            "table": report.tables["losses"],
            "notes": report.notes,
            "figures": dict(report.figures),
        }


@dataclass(frozen=True)
class QualityRun:
    """A run of `evenmatch study lisa-quality`."""

    pairs: int = 1000
    command: str = "evenmatch study lisa-quality"

    def __call__(self, folder: Path) -> dict[str, Any]:
        """Measure what the folder does not have yet, and return the report's tables."""
        sentences = load_sentence_pairs("", self.pairs, 0)
        measured = measure_trade_off(
            sentences, read_ratings(WMT17), Transformer(), folder, TradeOffSettings()
        )
        report = trade_off_report(measured)
        return {**asdict(measured), "tables": report.tables, "findings": report.findings}


STUDIES: Mapping[str, GridRun | GradientRun | QualityRun] = {
    "german": GridRun(
        300,
        sources=True,
        languages=("de",),
        algorithms=ALGORITHMS,
        figures=("separation-1-128", "effects-1", "effects-1-hard"),
    ),
    "references": GridRun(
        100,
        (0,),
        models=("minilm", "smollm2"),
        algorithms=ALGORITHMS,
        figures=("baseline", "models", "algorithms"),
    ),
    "adversarial": GridRun(240, (0,), data=ADVERSARIAL),
    "german-smollm2": GridRun(30, models=("smollm2",), sources=True, languages=("de",)),
    "languages": GridRun(30, sources=True),
    "padding": GridRun(40, (0, 384), figures=("padding-1",)),
    "german-human": GridRun(60, sources=True, human=True, languages=("de",)),
    "gradient": GradientRun(
        320,
        12,
        8,
        8,
        1e-4,
        ("held_lsa", "straight_through", "f_cont"),
        (0, 48),
        (0, 1, 2),
    ),
    "quality": QualityRun(),
}


def main() -> None:
    """Run the studies that are named, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("study", nargs="*", choices=[*STUDIES, []])
    parser.add_argument("--out", type=Path, default=Path("lisa-studies"), metavar="FOLDER")
    given = parser.parse_args()
    for name in given.study:
        run = STUDIES[name]
        found = {"command": run.command, **run(make_study_folder(given.out / name))}
        write_result(name, found)
    if missing := [name for name in STUDIES if not (STORED / f"{name}.json").exists()]:
        parser.error(f"the page needs results of {', '.join(missing)}; run these studies first")
    (PAGES / "lisa.md").write_text(fill_page(read_results()), "utf-8")


def write_result(name: str, found: Mapping[str, Any]) -> None:
    """Write a result with one row per line; figures become files beside the page."""
    STORED.mkdir(parents=True, exist_ok=True)
    FIGURES.mkdir(parents=True, exist_ok=True)
    for figure, svg in found.get("figures", {}).items():
        (FIGURES / f"{name}-{figure}.svg").write_text(svg, "utf-8")
    kept = _shorten({key: value for key, value in found.items() if key != "figures"})
    fields = []
    for key, value in kept.items():
        if isinstance(value, list):
            inner = ",\n".join("  " + json.dumps(each, ensure_ascii=False) for each in value)
            text = f"[\n{inner}\n ]"
        else:
            text = json.dumps(value, ensure_ascii=False)
        fields.append(f" {json.dumps(key)}: {text}")
    (STORED / f"{name}.json").write_text("{\n" + ",\n".join(fields) + "\n}\n", "utf-8")


def _shorten(value: Any) -> Any:
    """Round numbers and leave out what is None."""
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, Mapping):
        return {key: _shorten(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_shorten(each) for each in value]
    return value


def read_results() -> Results:
    """Read the results of all studies."""
    return {name: json.loads((STORED / f"{name}.json").read_text("utf-8")) for name in STUDIES}


def fill_page(found: Results) -> str:
    """Return the page: the template with its places filled."""
    template = Path(__file__).with_name("lisa_page.md").read_text("utf-8")
    return re.sub(r"\{\{(.*?)\}\}", lambda match: fill(match[1], found), template, flags=re.DOTALL)


def fill(place: str, found: Results) -> str:
    """Return the text for a place of the template."""
    what, name, *rest = shlex.split(place)
    if what == "table":
        return "\n".join(table_lines(TABLES[name](found)))
    if what == "command":
        return f"```text\n{found[name]['command']}\n```"
    if not rest:
        return str(found[what][name])
    settings = dict(each.split("=", 1) for each in rest)
    plain = {"true", "false"}  # besides numbers; other values are strings
    wanted = {
        key: json.loads(value) if value[0].isdigit() or value in plain else value
        for key, value in settings.items()
    }
    return show(pick(found[what]["rows"], **wanted), name)


def pick(rows: Sequence[Row], **wanted: Any) -> Row:
    """Return the row with these values; of all pairs, in-batch and not counted unless said."""
    wanted = {"group": "", "negatives": SHUFFLED, "counted": False, **wanted}
    return next(row for row in rows if all(row[key] == value for key, value in wanted.items()))


def show(row: Row, name: str) -> str:
    """Return a number of a row as text; nothing if the row does not have it."""
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, Mapping):
        return f"{value:.3f}" if isinstance(value, float) else str(value)
    signed = name not in ("effect", "wins")
    places = 2 if name in ("effect", "beyond_greedy") else 3
    text = format_interval(Interval(**value), places=places, signed=signed)
    return f"{text}*" if name == "beyond_greedy" and row["p"] < ALPHA else text


def label(algorithm: str) -> str:
    """Return the name of a method in a table."""
    known = {"lsa": "exact (`lsa`)", GREEDY: GREEDY}
    known["recursive(legacy=True)"] = "`recursive`, as released"
    return known.get(algorithm, f"`{algorithm}`")


def effect_table(
    rows: Sequence[Row], algorithms: Sequence[str] = (BASELINE, *ALGORITHMS)
) -> TextTable:
    """Return effect sizes, differences from greedy and wins, by kind of negatives."""
    table = [["encoder", "padded to", "method", "mean of pairs"]]
    for side in _SIDES.values():
        table[0] += [f"{side}: effect size", "minus greedy", "wins"]
    shown = dict.fromkeys((r["encoder"], r["length"], r["algorithm"]) for r in rows)
    for encoder, length, algorithm in shown:
        if algorithm in algorithms:
            want = {"encoder": encoder, "length": length, "algorithm": algorithm}
            both = [pick(rows, **want, negatives=side) for side in _SIDES]
            line = [encoder, padding_label(length), label(algorithm), show(both[0], "aligned")]
            for row in both:
                line += [show(row, "effect"), show(row, "beyond_greedy")]
                line.append(f"{row['wins']['value']:.3f}")
            table.append(line)
    return table


def language_table(rows: Sequence[Row]) -> TextTable:
    """Return what each method adds to greedy's effect size, by language."""
    table = [["source", "pairs"]]
    for side in _SIDES.values():
        table[0] += [f"{side}: greedy", *map(label, _FEW[1:])]
    for group in [*dict.fromkeys(row["group"] for row in rows if row["group"]), ""]:
        want = {"encoder": "minilm layer 4", "length": 128, "group": group}
        line = [group or "all", show(pick(rows, **want, algorithm=GREEDY), "pairs")]
        for side in _SIDES:
            own = {a: pick(rows, **want, algorithm=a, negatives=side) for a in _FEW}
            line.append(f"{own[GREEDY]['effect']['value']:.2f}")
            line += [show(own[a], "beyond_greedy") for a in _FEW[1:]]
        table.append(line)
    return table


def language_counts(rows: Sequence[Row]) -> TextTable:
    """Return in how many languages each method is above greedy, by layer, padding, negatives."""
    groups = dict.fromkeys(row["group"] for row in rows if row["group"])
    table = [["encoder", "padded to", "negatives", *map(label, _FEW[1:])]]
    for encoder, length in dict.fromkeys((r["encoder"], r["length"]) for r in rows):
        for side, name in _SIDES.items():
            line = [encoder, padding_label(length), name]
            for algorithm in _FEW[1:]:
                want = {"encoder": encoder, "length": length, "algorithm": algorithm}
                own = [pick(rows, **want, negatives=side, group=group) for group in groups]
                above = sum(row["beyond_greedy"]["value"] > 0 for row in own)
                line.append(f"{above} of {len(own)}")
            table.append(line)
    return table


def padding_table(rows: Sequence[Row]) -> TextTable:
    """Return the means of pairs and negatives without and with padding, counted or not."""
    header = ["encoder", "padding counted", "method"]
    for name in ("pairs", "negatives"):
        header += [f"{name}, no padding", "padded", "raised by"]
    table = [[*header, "effect size, no padding", "padded"]]
    longest = max(row["length"] for row in rows)
    for encoder in dict.fromkeys(row["encoder"] for row in rows):
        for counted in (False, True):
            for algorithm in _FEW:
                want = {"encoder": encoder, "counted": counted, "algorithm": algorithm}
                plain, padded = (pick(rows, **want, length=n) for n in (0, longest))
                line = [encoder, "yes" if counted else "no", label(algorithm)]
                for mean, raised in (("aligned", "inflated"), ("negative", "inflated_negative")):
                    line += [show(plain, mean), show(padded, mean), show(padded, raised)]
                table.append([*line, show(plain, "effect"), show(padded, "effect")])
    return table


def adversarial_table(rows: Sequence[Row]) -> TextTable:
    """Return the share of paraphrases that score above the text with an error, by kind."""
    groups = ["", *dict.fromkeys(row["group"] for row in rows if row["group"])]
    table = [["encoder", "padded to", "method"]]
    table[0] += [group.replace("_", " ") or "all" for group in groups]
    shown = dict.fromkeys((r["encoder"], r["length"], r["algorithm"]) for r in rows)
    for encoder, length, algorithm in shown:
        want = {"encoder": encoder, "length": length, "algorithm": algorithm, "negatives": HARD}
        own = [pick(rows, **want, group=group) for group in groups]
        line = [encoder, padding_label(length), label(algorithm), show(own[0], "wins")]
        table.append([*line, *(f"{row['wins']['value']:.2f}" for row in own[1:])])
    return table


def identification_table(rows: Sequence[Row]) -> TextTable:
    """Return how often the encoder of a batch is identified, and the peaks of all scores."""
    lines = [
        [label(r["algorithm"]), str(r["peaks"]), format_interval(Interval(**r["right"]), places=2)]
        for r in rows
    ]
    return [["method", "peaks", "encoder identified"], *lines]


TABLES: Mapping[str, Callable[[Results], TextTable]] = {
    "german": lambda found: effect_table(found["german"]["rows"]),
    "german-human": lambda found: effect_table(found["german-human"]["rows"], _FEW),
    "german-smollm2": lambda found: effect_table(found["german-smollm2"]["rows"]),
    "references": lambda found: effect_table(found["references"]["rows"], (BASELINE, *_FEW)),
    "languages": lambda found: language_table(found["languages"]["rows"]),
    "language-counts": lambda found: language_counts(found["languages"]["rows"]),
    "padding": lambda found: padding_table(found["padding"]["rows"]),
    "adversarial": lambda found: adversarial_table(found["adversarial"]["rows"]),
    "identification": lambda found: identification_table(found["references"]["identification"]),
    "quality": lambda found: found["quality"]["tables"]["quality"],
    "agreement": lambda found: found["quality"]["tables"]["agreement"],
    "speed": lambda found: found["quality"]["tables"]["speed"],
    "gradient": lambda found: found["gradient"]["table"],
}


if __name__ == "__main__":
    main()
