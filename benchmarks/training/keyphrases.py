"""How long `evenmatch keyphrases` takes on as many documents as KP20k's test set has.

    python -m benchmarks.training.keyphrases [--documents 20000] [--systems 1] [--keep FILE]

The documents are those of the public keyphrase sets in EVENMATCH_DATA, again and again with every
tenth word changed, so that the number of different words grows as it would with new ones. A
system's phrases are taken from titles, abstracts and gold phrases, about nine a document.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from evenmatch.data.catalogue.catalogue import find_data_set
from evenmatch.data.files import read_json_records

FILES = {
    "kp20k-small": ("train", "valid", "test"),
    "kp-inspec": ("train", "valid", "test"),
    "kp-krapivin": ("test",),
}


def documents() -> Iterator[dict[str, Any]]:
    for name, files in FILES.items():
        for file in files:
            for _, record in read_json_records(str(find_data_set(name) / f"{file}.jsonl.gz")):
                gold = record.get("keyphrases", []) or [
                    *record.get("present", []),
                    *record.get("absent", []),
                ]
                yield {
                    "title": record["title"],
                    "abstract": record["abstract"],
                    "keyphrases": gold,
                }


def changed(text: str, chance: random.Random) -> str:
    words = text.split(" ")
    return " ".join(w + chance.choice("abcdefgh") if chance.random() < 0.1 else w for w in words)


def predicted(record: dict[str, Any], chance: random.Random) -> list[str]:
    words = f"{record['title']} {record['abstract']}".split()
    gold = [k for k in record["keyphrases"] if chance.random() < 0.4]
    found = []
    for _ in range(chance.randint(3, 10)):
        start = chance.randrange(max(1, len(words) - 3))
        found.append(" ".join(words[start : start + chance.randint(1, 3)]))
    chance.shuffle(found := found + gold)
    return found


def write(path: Path, count: int, systems: int) -> None:
    chance = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for record in islice(cycle(list(documents())), count):
            new = {**record, "abstract": changed(record["abstract"], chance)}
            pred = {f"system{n}": predicted(new, chance) for n in range(systems)}
            file.write(json.dumps({**new, "pred": pred}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--systems", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.keep or Path(folder) / "documents.jsonl"
        write(path, given.documents, given.systems)
        metrics = ("fg", "f1_at_5", "f1_at_m", "keyphrase_f1(k='G')", "keyphrase_f1(k='O')")
        command = [sys.executable, "-m", "evenmatch", "keyphrases", str(path)]
        start = time.perf_counter()
        subprocess.run([*command, *(f"-m{m}" for m in metrics)], check=True)
        seconds = time.perf_counter() - start
    print(f"{given.documents} documents, {given.systems} systems: {seconds:.1f} s")


if __name__ == "__main__":
    main()
