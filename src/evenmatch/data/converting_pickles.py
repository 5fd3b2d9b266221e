"""Converters for sets that come as pickles of plain Python values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenmatch.data.converting import Converted, json_lines
from evenmatch.data.plain_pickles import read_pickle

_BARTSCORE = "neulab/BARTScore"


def realsumm(originals: Path) -> Iterator[Converted]:
    """REALSumm: one reference, one criterion."""
    documents = read_pickle(originals / _BARTSCORE / "SUM/REALSumm/data.pkl")
    records = (
        _summaries(name, document, [document["ref_summ"]], ["litepyramid_recall"])
        for name, document in documents.items()
    )
    yield "data.jsonl.gz", json_lines(records)


def summeval(originals: Path) -> Iterator[Converted]:
    """SummEval: eleven references, four criteria."""
    criteria = ["coherence", "consistency", "fluency", "relevance"]
    documents = read_pickle(originals / _BARTSCORE / "SUM/SummEval/data.pkl")
    records = (
        _summaries(name, document, document["ref_summs"], criteria)
        for name, document in documents.items()
    )
    yield "data.jsonl.gz", json_lines(records)


def _summaries(
    name: Any, document: dict[str, Any], references: list[str], criteria: list[str]
) -> dict[str, Any]:
    outputs = {
        system: {"text": output["sys_summ"], "human": _human(output["scores"], criteria)}
        for system, output in document["sys_summs"].items()
    }
    return {"id": str(name), "src": document["src"], "refs": references, "out": outputs}


def data_to_text(originals: Path) -> Iterator[Converted]:
    """BAGEL, SFHOT and SFRES, each reference once."""
    for name in ("BAGEL", "SFHOT", "SFRES"):
        outputs = read_pickle(originals / _BARTSCORE / f"D2T/{name}/data.pkl")
        records = (_output(number, output) for number, output in outputs.items())
        yield f"{name.lower()}.jsonl.gz", json_lines(records)


def _output(number: Any, output: dict[str, Any]) -> dict[str, Any]:
    references = output["ref_summs"]
    return {
        "id": str(number),
        "src": output["src"],
        "out": output["sys_summ"],
        "human": _human(output["scores"], ["informativeness", "naturalness", "quality"]),
        "refs": list(dict.fromkeys(references)),
        "n_refs_with_repeats": len(references),
    }


def _human(scores: dict[str, Any], criteria: list[str]) -> dict[str, float]:
    return {criterion: float(scores[criterion]) for criterion in criteria}
