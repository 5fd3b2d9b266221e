"""Converters for sets that come as pickles of plain Python values."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from evenmatch.data.converting import Converted, json_lines

_BARTSCORE = "neulab/BARTScore"
# What the numbers of numpy in a pickle are made with; nothing else may be called.
_ALLOWED = {("multiarray", "scalar"), ("numpy", "dtype")}


# Subclassing is the one way pickle has to say what may be called.
class _Plain(pickle.Unpickler):
    """Reads strings, numbers, lists and dictionaries, and refuses to call anything."""

    def find_class(self, module: str, name: str) -> Any:
        if (module.rpartition(".")[2], name) not in _ALLOWED or not module.startswith("numpy"):
            raise pickle.UnpicklingError(f"it wants to call {module}.{name}")
        return getattr(
            import_module("numpy" if name == "dtype" else "numpy._core.multiarray"), name
        )


def read_pickle(path: Path) -> Any:
    """What a pickle of plain values holds; it cannot run code."""
    with path.open("rb") as file:
        try:
            return _Plain(file).load()
        except (pickle.UnpicklingError, EOFError) as error:
            raise ValueError(f"{path.name} is no pickle of plain values: {error}") from None


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
