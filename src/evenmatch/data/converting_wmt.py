"""Converters for the WMT sets: files with one segment a line, and tables of human scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evenmatch.data.converting import Converted, json_lines, plain_lines
from evenmatch.data.plain_pickles import read_pickle

_AIPHES = "AIPHES/ACL20-Reference-Free-MT-Evaluation"
_PAIRS = {
    15: "cs-en de-en fi-en ru-en",
    16: "cs-en de-en fi-en ro-en ru-en tr-en",
    18: "cs-en de-en et-en fi-en ru-en tr-en zh-en en-de",
    19: "de-en fi-en gu-en kk-en lt-en ru-en zh-en en-de",
}
_RANKED = ("gu-en", "kk-en", "lt-en")


def daseg(originals: Path) -> Iterator[Converted]:
    """WMT15 and WMT16 segments: sources, references, outputs and scores side by side."""
    for year in (15, 16):
        folder = originals / f"cyr19/MENLI/experiments/datasets/DAseg-wmt-newstest20{year}"
        for pair in _PAIRS[year].split():
            kinds = ("source", "reference", "mt-system", "human")
            # some names of 2016 begin with dots where others say which test set it is
            files = [path for kind in kinds for path in folder.glob(f"*.{kind}.{pair}")]
            rows = zip(*(plain_lines(file) for file in files), strict=True)
            yield (
                f"wmt{year}.{pair}.jsonl.gz",
                json_lines({"src": s, "ref": r, "out": o, "z": float(z)} for s, r, o, z in rows),
            )


def wmt18(originals: Path) -> Iterator[Converted]:
    """WMT18: every system's output of every segment, and the systems' scores."""
    yield from _year(originals, 18)


def wmt19(originals: Path) -> Iterator[Converted]:
    """WMT19: as WMT18, and relative ranks of three pairs."""
    yield from _year(originals, 19)
    for pair in _RANKED:
        ranks = read_pickle(originals / f"neulab/BARTScore/WMT/{pair}/data.pkl")
        yield f"{pair}.rr.tsv.gz", _ranks(ranks.values(), list(_segments(originals, 19, pair)))


def _year(originals: Path, year: int) -> Iterator[Converted]:
    for pair in _PAIRS[year].split():
        yield f"{pair}.jsonl.gz", json_lines(_segments(originals, year, pair))
    yield "system_scores.tsv", _system_scores(originals, year)


def _segments(originals: Path, year: int, pair: str) -> Iterator[dict[str, Any]]:
    folder, test = originals / _AIPHES / f"WMT{year}", f"newstest20{year}"
    source, target = pair.split("-")
    start = f"{test}-{source}{target}"
    outputs = {
        path.name.removeprefix(f"{test}.").removesuffix(f".{pair}"): plain_lines(path)
        for path in sorted((folder / "system-outputs" / pair).iterdir())
    }
    rows = zip(
        plain_lines(folder / "source" / f"{start}-src.{source}"),
        plain_lines(folder / "references" / f"{start}-ref.{target}"),
        *outputs.values(),
        strict=True,
    )
    for number, (src, ref, *texts) in enumerate(rows, 1):
        out = dict(zip(outputs, texts, strict=True))
        yield {"sid": number, "src": src, "ref": ref, "out": out}


def _system_scores(originals: Path, year: int) -> Iterator[str]:
    yield "lp\tsystem\tz\n"
    rows = [
        line.split() for line in plain_lines(originals / _AIPHES / f"WMT{year}/DA-syslevel.csv")
    ]
    for wanted in _PAIRS[year].split():
        yield from (f"{pair}\t{system}\t{z}\n" for pair, z, system in rows if pair == wanted)


def _ranks(ranks: Iterable[Any], segments: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "sid\tbetter\tworse\n"
    by_source: dict[str, list[dict[str, Any]]] = {}
    for segment in segments:
        by_source.setdefault(segment["src"].strip(), []).append(segment)
    for rank in ranks:
        names = [rank[side]["sys_name"] for side in ("better", "worse")]
        texts = [rank[side]["sys"].strip() for side in ("better", "worse")]
        # a source may occur twice in a test set; the outputs tell which segment is meant
        sids = [
            segment["sid"]
            for segment in by_source[rank["src"].strip()]
            if [segment["out"][name].strip() for name in names] == texts
        ]
        yield f"{sids[0]}\t{names[0]}\t{names[1]}\n"
