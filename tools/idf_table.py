"""Count the idf table that comes with evenmatch: document frequencies of BERT's English tokens.

    python -m tools.idf_table

Reads from EVENMATCH_DATA the references of WMT15 and WMT16, the sentences of UD English EWT and
those of the training part of STS-B. Only the counts are written. No text of a set that metrics are
evaluated on is among them. Prints the content hash, which belongs in `SHIPPED_TABLES`.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.models.tokenizer import load_model_tokenizer
from evenmatch.vectors import weighting


def sentences(data: Path) -> Iterator[str]:
    """Yield the sentences to count."""
    for path in sorted(data.glob("wmt1516-daseg/*.jsonl.gz")):
        yield from (json.loads(line)["ref"] for line in _lines(path))
    for path in sorted(data.glob("ud-english-ewt/*.conllu.gz")):
        yield from (line[9:].strip() for line in _lines(path) if line.startswith("# text = "))
    for line in _lines(data / "sts-b" / "train.jsonl.gz"):
        record = json.loads(line)
        yield from (record["s1"], record["s2"])


def _lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from file


def main() -> None:
    """Count, write the table beside the code that reads it, and print its hash."""
    distinct = list(dict.fromkeys(sentences(Path(os.environ["EVENMATCH_DATA"]))))
    tokenizer = load_model_tokenizer(find_checkpoint("minilm"), trust_remote_code=False)
    table = weighting.count_documents(tokenizer.token_ids(distinct))
    path = Path(weighting.__file__).parent / "data" / "english.json.gz"
    path.write_bytes(gzip.compress(table.to_json().encode(), 9, mtime=0))
    name = weighting.store_idf_table(table)
    print(f"{name}: {table.documents} sentences, {len(table.keys)} tokens")
    print(f"{path.stat().st_size} bytes in {path}")


if __name__ == "__main__":
    main()
