from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from tests.support.tuning import save_tiny_llama

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


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.filterwarnings("ignore")  # TRL's and its libraries' own
def test_the_example_of_grpo_trains_with_each_reward(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("trl", reason="trl is not installed")
    grpo = runpy.run_path(str(FOLDER / "grpo.py"))
    model = save_tiny_llama(tmp_path / "llama")
    decoding = '{"longest_target": 8}'
    (tmp_path / "llama" / "decoding.json").write_text(decoding)
    grpo["SETTINGS"].update(
        max_steps=2, per_device_train_batch_size=4, num_generations=4, max_completion_length=8,
        bf16=False,
    )  # fmt: skip
    grpo["main"](model, str(tmp_path / "out.json"))
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["validation graphs"] == 48
    for name in ("f_disc", "bleu"):
        steps = found[name]["steps"]
        assert len(steps) == 2
        assert set(steps[0]) == {"f_disc", "bleu", "repetition", "tokens"}
        assert all(0 <= step["f_disc"] <= 1 for step in steps)
        assert found[name]["chrf"] >= 0
    # The same seed and start: the runs see the same prompts and sample the same first texts.
    assert found["f_disc"]["steps"][0] == found["bleu"]["steps"][0]


def test_every_example_is_run() -> None:
    ran = {"repetition", "compare_systems", "own_parts", "grpo"}
    assert {path.stem for path in FOLDER.glob("*.py")} == ran
