"""Mutation testing: run a seeded sample of mutants of the formulas, and print the survivors.

    python -m tools.mutants --size 300 --seed 0

mutmut changes one expression of a formula at a time and runs the tests that reach it; what to
change and which tests to run is in `[tool.mutmut]` of `pyproject.toml`. Results are kept in the
folder `mutants`, so that an interrupted run goes on where it stopped. Survivors are run again, to
see whether new tests kill them. Those that cannot be killed are listed with a reason in
`tools/mutants.toml`.

The sample is drawn by a hash of seed and name, so that a change of one function leaves the mutants
of the others in it. As a plugin of pytest, this module runs the tests of formulas first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

_FOLDER = Path("mutants")
_REASONS = Path("tools/mutants.toml")
# Testing one mutant writes all mutants, and finds out which tests reach which function.
_ANY = "evenmatch.similarity.strings.x__phrase_similarity__mutmut_1"
# Exit code of a process that ran out of time (SIGXCPU).
_TIMED_OUT = -24
# Exit codes of pytest when a test fails, cannot be collected or breaks pytest; then mutmut's for a
# test file that cannot be imported, and those of a process that ran out of time, was ended
# (SIGKILL) or crashed (SIGSEGV).
_KILLED = (1, 2, 3, 255, _TIMED_OUT, -9, -11)
# mutmut's exit code of a mutant that no test reaches.
_UNREACHED = 33


def main() -> None:
    """Run the sample and print the share killed and the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tools.mutants")
    parser.add_argument("--size", type=int, default=300, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--report", action="store_true", help="only print the results so far")
    given = parser.parse_args()
    if not given.report:
        os.nice(10)
        if not any(_FOLDER.rglob("*.meta")):
            _run_mutmut([_ANY])
    sample = _draw_sample(given.size, given.seed)
    if not given.report:
        _run_mutmut([name for name, code in sample.items() if code not in _KILLED])
        sample = _draw_sample(given.size, given.seed)
    print(_summary(sample))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run quick tests that kill most mutants first; mutmut gives tests in no order."""
    items.sort(key=lambda item: ("golden/formulas" not in item.nodeid, item.location))


def _run_mutmut(names: list[str]) -> None:
    if names:
        command = [str(Path(sys.executable).parent / "mutmut"), "run", "--max-children", "1"]
        found_here = {"PYTEST_PLUGINS": __spec__.name, "PYTHONPATH": os.getcwd()}
        subprocess.run([*command, *names], check=True, env=os.environ | found_here)


def _draw_sample(size: int, seed: int) -> dict[str, int | None]:
    """Return mutants and their results so far; None for one that has not been run."""
    codes: dict[str, int | None] = {}
    for path in _FOLDER.rglob("*.meta"):
        codes |= json.loads(path.read_text())["exit_code_by_key"]
    names = sorted(codes, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest())
    return {name: codes[name] for name in names[:size]}


def _summary(sample: dict[str, int | None]) -> str:
    reasons: dict[str, str] = tomllib.loads(_REASONS.read_text("utf-8"))["survivors"]
    done = {name: code for name, code in sample.items() if code is not None}
    survivors = {name: code for name, code in sorted(done.items()) if code not in _KILLED}
    lines = [
        f"{name}: " + ("no test reaches it" if code == _UNREACHED else reasons.get(name, "?"))
        for name, code in survivors.items()
    ]
    killed = len(done) - len(survivors)
    late = sum(code == _TIMED_OUT for code in done.values())
    share = f", {killed / len(done):.1%} killed ({late} by running out of time)" if done else ""
    return "\n".join([*lines, f"{len(done)} of {len(sample)} mutants run{share}"])


if __name__ == "__main__":
    main()
