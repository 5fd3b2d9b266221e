"""A tour on the sample that comes along: python -m evenmatch.cli.demo."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from evenmatch.cli.align import draw
from evenmatch.cli.output import say
from evenmatch.cli.trouble import one_line_trouble
from evenmatch.data.everyday import read_everyday
from evenmatch.data.tables import as_text, number
from evenmatch.scoring.ask import align, score
from evenmatch.types import Pair, Score

METRICS = ("bertscore", "f_disc", "f_cont")
FOLDER = Path("demo-out")
STUTTER, PLAIN = "the the the cat", "the cat"

_NEXT = """What to try next

  evenmatch score {folder}/good.jsonl -m f_disc --segments
  evenmatch score {folder}/wrong.jsonl -m bertscore -m f_cont --format latex
  evenmatch align "the the the cat" "the cat" -m bertscore --plot {folder}/mine.svg
  evenmatch list metric
  evenmatch explain "bertscore(idf=True)\""""


def main() -> None:
    """Score the sample, show what repetition earns, draw it, and say how to go on."""
    FOLDER.mkdir(exist_ok=True)
    systems = read_everyday()
    say("Four systems, twelve sentences, two or three references each (means of the best)\n")
    say(as_text(system_table(systems)) + "\n")
    say(
        "The repetitive system says little and says it often. Under bertscore every repeated\n"
        "word finds its partner again; one-to-one alignment (f_disc) pays for it once, and\n"
        "transport (f_cont) pays for as much as the reference has of it.\n"
    )
    for metric in METRICS:
        say(f"{metric}: {STUTTER!r} against {PLAIN!r}\n{align(STUTTER, PLAIN, metric)}\n")
    written = [*write_systems(systems), *draw_stutter()]
    say("Wrote " + ", ".join(map(str, written)) + "\n")
    say(_NEXT.format(folder=FOLDER))


def system_table(systems: Mapping[str, Sequence[Pair]]) -> list[list[str]]:
    """A row per system, a column per metric; all in one call, so each reference is read once."""
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
        rows.append([system, *(number(mean(found[m].segments[own])) for m in METRICS)])
        start = own.stop
    return rows


def mean(segments: Sequence[Score]) -> float:
    """The mean score of one system."""
    return sum(segment.value for segment in segments) / len(segments)


def write_systems(systems: Mapping[str, Sequence[Pair]]) -> Iterable[Path]:
    """Each system as a file that `evenmatch score` reads."""
    for system, pairs in systems.items():
        path = FOLDER / f"{system}.jsonl"
        records = ({"candidate": p.candidate, "references": list(p.references)} for p in pairs)
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
        yield path


def draw_stutter() -> Iterable[Path]:
    """A picture of the repeated word under each metric."""
    for metric in METRICS:
        path = FOLDER / f"{metric}.svg"
        draw(align(STUTTER, PLAIN, metric), str(path))
        yield path


if __name__ == "__main__":
    with one_line_trouble():
        main()
