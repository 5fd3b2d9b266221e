"""Damaged files of the cache and of runs: right scores or one error, never a wrong score.

Each case damages one file in one way (flip, truncate, zero or swap bytes) by a seed of its own.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import evenmatch as em
from evenmatch import files
from evenmatch.distributed.run import score_files
from evenmatch.vectors import weighting
from tests.distributed.conftest import METRICS, Here, read_jsonl, records, write_jsonl
from tests.support.damage import DAMAGES, damage_file
from tests.support.model_families import FolderOf
from tests.support.parses import BY, HAVING, write_conllu

CANDIDATES = ["the cat sat on the mat", "rain tomorrow", "a quick brown dog", "", "pack my box"]
REFERENCES = ["a cat sat on a mat", "rain is expected", "the lazy dog", "box", "five dozen jugs"]
IDF = "align(vectors=hashed(weights=idf))"
QUICK, FULL = 4, 84  # cases of each kind; six kinds, 504 cases in full

Result: TypeAlias = list[Any]


@dataclass(frozen=True)
class Kind:
    """A kind of stored file: the files by pattern, and what is computed from them."""

    pattern: str
    compute: Callable[[Path], Result]


def scores(metric: str, **run: Any) -> Result:
    found = em.score(CANDIDATES, REFERENCES, metric, **run)
    return [found.signature, *(s.value for s in found.segments)]


def trees(cache: Path) -> Result:
    parser = f"parse_file(path={write_conllu(cache.parent)!r})"
    metric = f"align(units=subtrees(parser={parser}), vectors=hashed, alignment=lsa)"
    return [s.value for s in em.score([BY, HAVING], [HAVING, BY], metric).segments]


def idf(cache: Path) -> Result:
    weighting._load_stored.cache_clear()
    first = scores(IDF)
    weighting._load_stored.cache_clear()
    # The table named by its content hash, as from a signature.
    pinned = em.score(CANDIDATES, REFERENCES, first[0].partition(" · ")[0])
    return [*first, *(s.value for s in pinned.segments)]


def large_run(cache: Path) -> Result:
    source = write_jsonl(cache.parent / "in.jsonl", records(12))
    out = cache / "out.jsonl"
    result = score_files(str(source), str(out), METRICS, on=Here(), resume=True, shard_rows=3)
    return [*read_jsonl(out), dict(result.tallies), result.rows]


@pytest.fixture
def kinds(folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch) -> dict[str, Kind]:
    monkeypatch.setattr(files, "_SETTLED_SECONDS", -1.0)  # keep the hashes of new files
    bert = f"bertscore(model={str(folder_of('bert'))!r}, layer=2)"
    return {
        "vectors": Kind("states/0*", lambda _: scores(bert, cache=True)),
        "parses": Kind("parses/0*", trees),
        "digests": Kind("digests/*", lambda _: scores(bert)),
        "idf": Kind("idf/0*", idf),
        "manifest": Kind("out.jsonl.parts/manifest.jsonl", large_run),
        "parts": Kind("out.jsonl.parts/part-*", large_run),
    }


def check_cases(kind: Kind, name: str, count: int, folder: Path, patch: pytest.MonkeyPatch) -> None:
    pristine = folder / "pristine"
    patch.setenv("EVENMATCH_CACHE", str(pristine))
    pristine.mkdir()
    expected = kind.compute(pristine)
    assert kind.compute(pristine) == expected
    refused = 0
    for case in range(count):
        draw = random.Random(f"{name} {case}")
        damaged = folder / str(case)
        shutil.copytree(pristine, damaged)
        patch.setenv("EVENMATCH_CACHE", str(damaged))
        file = draw.choice(sorted(damaged.glob(kind.pattern)))
        damage_file(file, DAMAGES[case % len(DAMAGES)], draw)
        found = said = None
        try:
            found = kind.compute(damaged)
        except em.EvenmatchError as error:
            said = str(error)
        if said is None:
            assert found == expected, case
            assert kind.compute(damaged) == expected, case  # repaired for good
        else:  # the header of a manifest cannot be repaired
            assert name == "manifest", said
            assert "\n" not in said
            refused += 1
        shutil.rmtree(damaged)
    assert refused < count


@pytest.mark.parametrize("name", ["vectors", "parses", "digests", "idf", "manifest", "parts"])
@pytest.mark.parametrize("count", [QUICK, pytest.param(FULL, marks=pytest.mark.slow)])
def test_damage_gives_right_scores_or_one_error(
    kinds: dict[str, Kind],
    name: str,
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_cases(kinds[name], name, count, tmp_path, monkeypatch)
