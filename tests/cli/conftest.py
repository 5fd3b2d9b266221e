from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from evenmatch.cli.main import main


@dataclass(frozen=True)
class Outcome:
    code: object
    out: str
    err: str


Command: TypeAlias = Callable[..., Outcome]


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Command:
    """Runs one command in a folder of its own and gives its exit code and what it said."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, given: str | bytes = "") -> Outcome:
        raw = given.encode() if isinstance(given, str) else given
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), "utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(arguments)
        said = capsys.readouterr()
        return Outcome(end.value.code, said.out, said.err)

    return run
