"""Weights from files: over a model's own, by content, and never by running what a file says."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.scoring.metric_contract import check_metric
from tests.support.small_models import save, save_causal

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("bart"), "bart", "AutoModelForSeq2SeqLM")


def changed(bart: Path) -> dict[str, Any]:
    from transformers import AutoModelForSeq2SeqLM

    model = AutoModelForSeq2SeqLM.from_pretrained(bart)
    return {name: tensor * 1.5 for name, tensor in model.state_dict().items()}


class Harmful:
    """What runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("harm"),))


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_weights_from_a_file_replace_the_model_s_own(
    bart: Path, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"other{suffix}"
    if suffix == ".pth":
        torch.save(changed(bart), file)
    else:
        from safetensors.torch import save_file

        save_file({n: t.contiguous().clone() for n, t in changed(bart).items()}, file)
    spec = f"bartscore(model={str(bart)!r}, weights={str(file)!r})"
    found = em.score(["rain"], ["a cat"], [spec, f"bartscore(model={str(bart)!r})"])
    with_file, without = found.values()
    assert abs(with_file.mean - without.mean) > 1e-3
    assert str(tmp_path) not in with_file.signature
    again = em.build(with_file.signature.split(" · ")[0])
    assert em.score(["rain"], ["a cat"], again).mean == pytest.approx(with_file.mean, abs=1e-6)


def test_a_pickle_that_would_run_code_is_not_loaded(
    bart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": Harmful()}, "bad.pth")
    with pytest.raises(em.DataError, match=r"bad\.pth contains more than weights"):
        em.score(["a"], ["a"], f"bartscore(model={str(bart)!r}, weights='bad.pth')")
    assert not Path("harm").exists()


def test_a_model_that_is_such_a_pickle_is_not_loaded(
    bart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in bart.iterdir():
        if path.suffix != ".safetensors":
            Path(path.name).write_bytes(path.read_bytes())
    torch.save({"weight": Harmful()}, "pytorch_model.bin")
    with pytest.raises(em.DataError, match="contains more than weights and is not loaded"):
        em.score(["a"], ["a"], f"bartscore(model={str(tmp_path)!r})")
    assert not Path("harm").exists()


def test_a_model_that_is_a_pickle_of_weights_is_loaded(bart: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM

    for path in bart.iterdir():
        if path.suffix != ".safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    state = AutoModelForSeq2SeqLM.from_pretrained(bart).state_dict()
    torch.save(state, tmp_path / "pytorch_model.bin")
    names = [f"bartscore(model={str(folder)!r})" for folder in (bart, tmp_path)]
    one, other = em.score(["rain"], ["a cat"], names).values()
    assert one.mean == pytest.approx(other.mean, abs=1e-6)


def test_weights_of_another_model_are_refused(bart: Path, tmp_path: Path) -> None:
    file = tmp_path / "other.pth"
    torch.save({"something": torch.zeros(2)}, file)
    with pytest.raises(em.DataError, match="do not fit the model"):
        em.score(["a"], ["a"], f"bartscore(model={str(bart)!r}, weights={str(file)!r})")


def test_missing_and_unreadable_weights_are_refused(bart: Path, tmp_path: Path) -> None:
    with pytest.raises(em.DataError, match=r"there is no weights file nowhere\.pth"):
        em.score(["a"], ["a"], f"bartscore(model={str(bart)!r}, weights='nowhere.pth')")
    file = tmp_path / "empty.safetensors"
    file.write_bytes(b"")
    with pytest.raises(em.DataError, match="cannot read the weights in"):
        em.score(["a"], ["a"], f"bartscore(model={str(bart)!r}, weights={str(file)!r})")


def test_weights_that_changed_are_not_taken_for_those_of_a_signature(
    bart: Path, tmp_path: Path
) -> None:
    file = tmp_path / "other.pth"
    torch.save(changed(bart), file)
    metric = em.build(f"bartscore(model={str(bart)!r}, weights={str(file)!r})")
    spec = metric.signature.split(" · ")[0]
    file.write_bytes(pickle.dumps(0))
    with pytest.raises(em.DataError, match="no longer holds the weights sha256:"):
        em.score(["a"], ["a"], spec)


@pytest.mark.model
def test_a_model_without_the_head_is_refused() -> None:
    with pytest.raises(em.DataError, match="minilm was not trained to predict text: it lacks"):
        em.score(["a"], ["a"], "bartscore(model='minilm')")


def test_a_likelihood_metric_passes_the_published_check(bart: Path, tmp_path: Path) -> None:
    check_metric(em.build(f"bartscore(model={str(bart)!r})"))
    check_metric(em.build(f"likelihood(model={str(save_causal(tmp_path))!r})"))
