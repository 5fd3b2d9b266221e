"""A short demonstration on the included sample: python -m evenmatch.cli.demo."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from evenmatch.api import align, score
from evenmatch.cli.console import print_output, report_errors
from evenmatch.cli.inspect import write_picture
from evenmatch.data.pairs import read_everyday_sample
from evenmatch.data.tables import format_number, table_to_text
from evenmatch.types import Pair

METRICS = ("bertscore", "f_disc", "f_cont")
FOLDER = Path("demo-out")
REPETITIVE, PLAIN = "the the the cat", "the cat"

_NEXT_STEPS = """Next steps

  evenmatch score {folder}/good.jsonl -m f_disc --segments
  evenmatch score {folder}/wrong.jsonl -m bertscore -m f_cont --format latex
  evenmatch align "the the the cat" "the cat" -m bertscore --plot {folder}/mine.svg
  evenmatch list metric
  evenmatch explain "bertscore(idf=True)\""""


def main() -> None:
    """Score the sample, show and plot the effect of repetition, and list next steps."""
    FOLDER.mkdir(exist_ok=True)
    systems = read_everyday_sample()
    print_output(
        "Mean scores of four systems on twelve sentences (best of two or three references)\n"
    )
    print_output(table_to_text(system_table(systems)) + "\n")
    print_output(
        "The repetitive system repeats a few words. bertscore matches every repetition to the\n"
        "same reference word and rewards it; one-to-one alignment (f_disc) matches it only once,\n"
        "and optimal transport (f_cont) matches only as much of it as the reference contains.\n"
    )
    for metric in METRICS:
        print_output(
            f"{metric}: {REPETITIVE!r} against {PLAIN!r}\n{align(REPETITIVE, PLAIN, metric)}\n"
        )
    written = [*write_systems(systems), *draw_repetition()]
    print_output("Wrote " + ", ".join(map(str, written)) + "\n")
    print_output(_NEXT_STEPS.format(folder=FOLDER))


def system_table(systems: Mapping[str, Sequence[Pair]]) -> list[list[str]]:
    """Return a row per system and a column per metric, scored in one call."""
    every = [pair for pairs in systems.values() for pair in pairs]
    found = score(
        [pair.candidate for pair in every],
        [list(pair.references) for pair in every],
        list(METRICS),
        threads=1,
    )
    rows, start = [["system", *METRICS]], 0
    for system, pairs in systems.items():
        own = slice(start, start + len(pairs))
        means = (fmean(each.value for each in found[m].segments[own]) for m in METRICS)
        rows.append([system, *map(format_number, means)])
        start = own.stop
    return rows


def write_systems(systems: Mapping[str, Sequence[Pair]]) -> Iterable[Path]:
    """Write each system as a file for `evenmatch score`, and yield the paths."""
    for system, pairs in systems.items():
        path = FOLDER / f"{system}.jsonl"
        records = ({"candidate": p.candidate, "references": list(p.references)} for p in pairs)
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
        yield path


def draw_repetition() -> Iterable[Path]:
    """Plot the alignment of the repeated word by each metric, and yield the paths."""
    for metric in METRICS:
        path = FOLDER / f"{metric}.svg"
        write_picture(align(REPETITIVE, PLAIN, metric), str(path))
        yield path


if __name__ == "__main__":
    with report_errors():
        main()
