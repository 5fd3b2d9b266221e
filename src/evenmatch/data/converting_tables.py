"""Converters for sets that come as tables: CSV, TSV, JSONL and files of lines side by side."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenmatch.data.converting import Converted, json_lines, plain_lines


def crows(originals: Path) -> Iterator[Converted]:
    """CrowS-Pairs, from its CSV."""
    records = _csv_records(originals / "nyu-mll/crows-pairs/data/crows_pairs_anonymized.csv")
    yield (
        "crows_pairs.jsonl.gz",
        json_lines(
            {
                "id": number,
                "sent_more": record["sent_more"],
                "sent_less": record["sent_less"],
                "direction": record["stereo_antistereo"],
                "bias_type": record["bias_type"],
            }
            for number, record in enumerate(records)
        ),
    )


def menli(originals: Path) -> Iterator[Converted]:
    """MENLI's adversarial candidates, columns as they are."""
    folder = originals / "cyr19/MENLI/experiments/datasets/adv_datasets/wmt20_google/de"
    yield "wmt20_de.jsonl.gz", json_lines(_csv_records(folder / "data_fixed_strict.csv"))


def stsb(originals: Path) -> Iterator[Converted]:
    """STS-B in English, from CSV without a header."""
    for part in ("train", "dev", "test"):
        rows = _csv(originals / f"PhilipMay/stsb-multi-mt/data/stsb-en-{part}.csv")
        yield (
            f"{part}.jsonl.gz",
            json_lines({"s1": one, "s2": other, "score": float(s)} for one, other, s in rows),
        )


def _csv(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.reader(file)


def _csv_records(path: Path) -> Iterator[dict[str, str]]:
    header, *rows = _csv(path)
    return (dict(zip(header, row, strict=True)) for row in rows)


def sick(originals: Path) -> Iterator[Converted]:
    """SICK, from its tables with a header."""
    folder = originals / "brmson/dataset-sts/data/sts/sick2014"
    for part, name in (("train", "train"), ("trial", "trial"), ("test", "test_annotated")):
        _, *rows = _cells(folder / f"SICK_{name}.txt")
        yield (
            f"{part}.jsonl.gz",
            json_lines(
                {"id": id_, "s1": one, "s2": other, "relatedness": float(r), "entailment": label}
                for id_, one, other, r, label in rows
            ),
        )


def fairness(originals: Path) -> Iterator[Converted]:
    """The pairs of Metric-Fairness; two rows that follow each other are one."""
    folder = originals / "txsun1997/Metric-Fairness/measuring_bias/data"
    for path in sorted(folder.glob("*.tsv")):
        yield f"{path.stem}.jsonl.gz", json_lines(_fair_pairs(path))


def _fair_pairs(path: Path) -> Iterator[dict[str, Any]]:
    header, *rows = _cells(path)
    metrics = [name for name in header[2:] if name]
    if len(rows) % 2:
        raise ValueError(f"{path.name} has {len(rows)} rows, which are no pairs")
    for number, (first, second) in enumerate(zip(rows[::2], rows[1::2], strict=True)):
        texts = dict(
            zip(("cand_a", "ref_a", "cand_b", "ref_b"), first[:2] + second[:2], strict=True)
        )
        scores = [
            dict(zip(metrics, map(float, row[2 : 2 + len(metrics)]), strict=True))
            for row in (first, second)
        ]
        yield {"pair": number, **texts, "scores_a": scores[0], "scores_b": scores[1]}


def _cells(path: Path) -> Iterator[list[str]]:
    return (line.split("\t") for line in plain_lines(path))


def snli(originals: Path) -> Iterator[Converted]:
    """SNLI, without the pairs that have no gold label."""
    for part in ("dev", "test"):
        path = originals / f"Deltaus/sBiMPM/snli_1.0/snli_1.0_{part}.jsonl"
        records = (json.loads(line) for line in plain_lines(path))
        yield (
            f"{part}.jsonl.gz",
            json_lines(
                {"s1": r["sentence1"], "s2": r["sentence2"], "label": r["gold_label"]}
                for r in records
                if r["gold_label"] != "-"
            ),
        )


def kp20k(originals: Path) -> Iterator[Converted]:
    """Documents of KP20k: title and abstract in one file, keyphrases in the other."""
    folder = originals / "jiacheng-ye/kg_one2set/data/kp20k_small"
    for part in ("train", "valid", "test"):
        texts = plain_lines(folder / f"{part}_src.txt")
        phrases = plain_lines(folder / f"{part}_trg.txt")
        rows = enumerate(zip(texts, phrases, strict=True))
        yield f"{part}.jsonl.gz", json_lines(_document(n, text, row) for n, (text, row) in rows)


def _document(number: int, text: str, phrases: str) -> dict[str, Any]:
    title, _, abstract = text.partition("<eos>")
    document = {"id": number, "title": title.strip(), "abstract": abstract.strip()}
    present, mark, absent = phrases.partition("<peos>")
    if not mark:
        return {**document, "keyphrases": _phrases(phrases)}
    return {**document, "present": _phrases(present), "absent": _phrases(absent)}


def _phrases(text: str) -> list[str]:
    return [phrase for phrase in text.split(";") if phrase]
