"""Mutation testing: run a seeded sample of mutants of the formulas, and print the survivors.

    python -m tools.mutants --size 300 --seed 0

mutmut changes one expression of a formula at a time and runs the tests that reach it; what to
change and which tests to run is in `[tool.mutmut]` of `pyproject.toml`. Results are kept in the
folder `mutants`, so that an interrupted run goes on where it stopped. Survivors are run again, to
see whether new tests kill them. Those that cannot be killed are listed with a reason in
`tools/mutants.toml`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tomllib
from pathlib import Path

_FOLDER = Path("mutants")
_REASONS = Path("tools/mutants.toml")
# Testing one mutant writes all mutants, and finds out which tests reach which function.
_ANY = "evenmatch.similarity.strings.x__phrase_similarity__mutmut_1"
# mutmut's exit codes of a mutant that passes its tests, and of one that no test reaches.
_SURVIVED = (0, 5, 33)


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
        todo = [name for name, code in sample.items() if code is None or code in _SURVIVED]
        _run_mutmut(todo)
        sample = _draw_sample(given.size, given.seed)
    print(_summary(sample))


def _run_mutmut(names: list[str]) -> None:
    if names:
        command = [str(Path(sys.executable).parent / "mutmut"), "run", "--max-children", "1"]
        subprocess.run([*command, *names], check=True)


def _draw_sample(size: int, seed: int) -> dict[str, int | None]:
    """Return mutants and their results so far; None for one that has not been run."""
    codes: dict[str, int | None] = {}
    for path in _FOLDER.rglob("*.meta"):
        codes |= json.loads(path.read_text())["exit_code_by_key"]
    names = random.Random(seed).sample(sorted(codes), min(size, len(codes)))
    return {name: codes[name] for name in names}


def _summary(sample: dict[str, int | None]) -> str:
    reasons: dict[str, str] = tomllib.loads(_REASONS.read_text())["survivors"]
    done = {name: code for name, code in sample.items() if code is not None}
    survivors = sorted(name for name, code in done.items() if code in _SURVIVED)
    killed = len(done) - len(survivors)
    lines = [f"{name}: {reasons.get(name, 'unexplained')}" for name in survivors]
    share = f", {killed / len(done):.1%} killed" if done else ""
    return "\n".join([*lines, f"{len(done)} of {len(sample)} mutants run{share}"])


if __name__ == "__main__":
    main()
