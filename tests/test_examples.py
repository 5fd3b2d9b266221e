from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("repetition", "wrote repetition-f_cont.svg", marks=pytest.mark.model),
        pytest.param("compare_systems", "lowest f_disc", marks=pytest.mark.model),
        pytest.param("own_parts", "performances"),
    ],
)
def test_an_example_runs(
    name: str,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(FOLDER))
    # Run as a module by name, so that classes defined in an example can be pickled.
    runpy.run_module(name, run_name=name, alter_sys=True)
    assert expected in capsys.readouterr().out


def test_every_example_is_run() -> None:
    ran = {"repetition", "compare_systems", "own_parts"}
    assert {path.stem for path in FOLDER.glob("*.py")} == ran
