"""Models by name, folder and content; what is refused, and in which words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch import files
from evenmatch.errors import DataError, InputError, UnknownNameError
from evenmatch.files import models_dir
from evenmatch.models import backbone, checkpoints
from evenmatch.models.checkpoints import BEST_LAYERS
from evenmatch.vectors import transformer
from tests.support.model_families import BLOCKS, FolderOf


def score_with(model: object, **settings: object) -> em.Scores:
    given = "".join(f", {key}={value!r}" for key, value in settings.items())
    return em.score(["the cat"], ["the dog"], f"bertscore(model={str(model)!r}{given})")


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the embedded model, in a models folder of its own."""
    folder = tmp_path / "models" / "minilm"
    shutil.copytree(models_dir() / "minilm", folder)
    monkeypatch.setenv("EVENMATCH_MODELS", str(tmp_path / "models"))
    return folder


@pytest.mark.model
def test_damaged_weights_of_the_embedded_model_are_refused(copied: Path) -> None:
    weights = copied / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    for metric in ("bertscore", "align(vectors=lookup(model='minilm'))"):
        with pytest.raises(DataError, match="not the published ones; fetch them again with: even"):
            em.score(["a"], ["a"], metric)


def test_an_embedded_model_that_is_not_here_is_one_line_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENMATCH_MODELS", str(tmp_path))
    with pytest.raises(
        DataError, match=r"is not in .*; fetch it with: evenmatch models get minilm"
    ):
        em.score(["a"], ["a"])


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        ("bert-base-uncased", DataError, "not on this machine and cannot be downloaded"),
        ("no such/model/at all", UnknownNameError, "neither a folder here nor a Hugging Face name"),
        ("./nowhere", DataError, r"there is no folder \./nowhere"),
        ("/nowhere/at/all", DataError, "there is no folder /nowhere/at/all"),
        ("sha256:0123456789abcdef", DataError, "no model with the content sha256:0123456789abcdef"),
        ("", InputError, "a model must be named"),
    ],
)
def test_a_model_that_is_nowhere_is_refused_in_one_line(
    model: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        score_with(model)
    assert "\n" not in str(raised.value)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no config\.json; give the folder of a saved model"):
        score_with(tmp_path)


def test_a_folder_whose_model_cannot_be_read_is_refused(
    folder_of: FolderOf, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(folder_of("bert"), broken)
    (broken / "model.safetensors").write_bytes(b"no weights at all")
    with pytest.raises(DataError, match=r"cannot load the model in .*broken") as raised:
        score_with(broken, layer=1)
    assert "\n" not in str(raised.value)
    (broken / "config.json").write_text("{")
    with pytest.raises(DataError, match=r"cannot read .*config\.json"):
        score_with(broken, layer=1)


def test_a_folder_is_named_by_its_content_and_found_by_it(folder_of: FolderOf) -> None:
    folder = folder_of("bert")
    scores = score_with(folder, layer=2)
    assert str(folder) not in scores.signature
    assert "model='sha256:" in scores.signature
    again = em.score(["the cat"], ["the dog"], scores.signature.split(" · ")[0])
    assert again == scores


def test_equal_content_has_an_equal_signature_wherever_it_lies(
    folder_of: FolderOf, tmp_path: Path
) -> None:
    shutil.copytree(folder_of("bert"), tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "README.md").write_text("not what makes a model")
    assert score_with(tmp_path / "elsewhere", layer=2) == score_with(folder_of("bert"), layer=2)


def test_a_changed_model_is_another_model(folder_of: FolderOf, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folder_of("bert"), folder)
    before = score_with(folder, layer=2).signature
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 0.1}))
    assert score_with(folder, layer=2).signature != before
    with pytest.raises(DataError, match="no model with the content"):
        em.score(["a"], ["a"], before.split(" · ")[0])


def test_a_relative_folder_is_a_folder(
    folder_of: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder_of("bert"), tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    assert score_with("here", layer=2) == score_with(folder_of("bert"), layer=2)


OWN_CODE = """
from pathlib import Path
from transformers import BertConfig, BertModel

Path(__file__).with_name("it_ran").touch()
Path({marker!r}).touch()


class OwnConfig(BertConfig):
    model_type = "own"


class OwnModel(BertModel):
    config_class = OwnConfig
"""


def test_code_that_comes_with_a_model_runs_only_for_who_says_so(
    folder_of: FolderOf, tmp_path: Path
) -> None:
    folder, marker = tmp_path / "own", tmp_path / "it_ran"
    shutil.copytree(folder_of("bert"), folder)
    config = json.loads((folder / "config.json").read_text())
    own = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "own", "auto_map": own}))
    (folder / "own.py").write_text(OWN_CODE.format(marker=str(marker)))
    with pytest.raises(InputError, match="contains code that must be run; if you trust") as raised:
        score_with(folder, layer=2)
    assert "\n" not in str(raised.value)
    assert not marker.exists()
    trusted = score_with(folder, layer=2, trust_remote_code=True)
    assert marker.exists()
    assert trusted.mean == pytest.approx(score_with(folder_of("bert"), layer=2).mean)
    assert "trust_remote_code=True" in trusted.signature


def test_an_unknown_model_without_a_layer_gets_the_stated_rule_and_a_warning(
    folder_of: FolderOf,
) -> None:
    folder = folder_of("bert")
    with pytest.warns(UserWarning, match=rf"using 3 of {BLOCKS} \(three quarters\); set layer=3"):
        scores = score_with(folder)
    assert "layer=3" in scores.signature
    assert scores == score_with(folder, layer=3)


def test_the_last_layer_can_be_asked_for_by_name(folder_of: FolderOf) -> None:
    folder = folder_of("bert")
    assert score_with(folder, layer="last") == score_with(folder, layer=BLOCKS)


@pytest.mark.parametrize("layer", [-1, BLOCKS + 1])
def test_a_layer_that_a_model_lacks_is_refused(folder_of: FolderOf, layer: int) -> None:
    with pytest.raises(InputError, match=rf"has layers 0 to {BLOCKS}, got layer {layer}"):
        score_with(folder_of("bert"), layer=layer)


@pytest.mark.model
def test_a_known_model_gets_its_layer_without_a_word() -> None:
    scores = em.score(["the cat"], ["the dog"])
    assert f"layer={BEST_LAYERS['minilm']}" in scores.signature
    assert scores == em.score(["the cat"], ["the dog"], "bertscore(layer=4)")


def test_a_hub_model_may_be_pinned_by_revision(
    folder_of: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    home = tmp_path / "models--some--bert"
    commits = {"1" * 40: "main", "2" * 40: "older"}
    for commit, branch in commits.items():
        shutil.copytree(folder_of("bert"), home / "snapshots" / commit)
        (home / "refs").mkdir(exist_ok=True)
        (home / "refs" / branch).write_text(commit)
    config = home / "snapshots" / ("2" * 40) / "config.json"
    config.write_text(config.read_text() + " ")
    found = {
        given: checkpoints.find_checkpoint(given)
        for given in ("some/bert", "some/bert@older", f"some/bert@{'2' * 40}")
    }
    assert [each.folder.name[0] for each in found.values()] == ["1", "2", "2"]
    newest, older, same = found.values()
    assert newest.digest != older.digest == same.digest
    assert older.label == f"some/bert@older@{older.digest[:12]}"
    with pytest.raises(DataError, match="the model 'some/bert@none' is not on this machine"):
        checkpoints.find_checkpoint("some/bert@none")


def test_the_hash_of_a_model_is_not_computed_twice(
    folder_of: FolderOf, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_SETTLED_SECONDS", -1.0)
    folder = str(folder_of("bert"))
    first = checkpoints.find_checkpoint(folder)
    monkeypatch.setattr(files, "file_sha256", None)
    assert checkpoints.find_checkpoint(folder) == first


def test_one_call_looks_a_model_up_once_and_the_next_one_again(
    folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def find(model: str) -> checkpoints.Checkpoint:
        asked.append(model)
        return real(model)

    real = checkpoints.find_checkpoint
    for module in (backbone, transformer):
        monkeypatch.setattr(module, "find_checkpoint", find)
    folder = str(folder_of("bert"))
    metrics = [f"{name}(model={folder!r}, layer=2)" for name in ("bertscore", "f_cont")]
    em.score(["the cat"], ["the dog"], metrics)
    assert asked == [folder]
    em.score(["the cat"], ["the dog"], metrics)
    assert asked == [folder, folder]


def test_a_disk_that_cannot_be_written_costs_only_the_notes(
    folder_of: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("EVENMATCH_CACHE", str(tmp_path / "a file" / "no folder"))
    for idf in (False, True):
        metric = f"bertscore(model={str(folder_of('bert'))!r}, layer=2, idf={idf})"
        scores = em.score(["the cat", "rain"], ["the dog", "rain"], metric)
        assert scores.segments[1].value == pytest.approx(1.0, abs=1e-5)


def test_a_device_that_torch_lacks_is_refused(folder_of: FolderOf) -> None:
    metric = f"bertscore(model={str(folder_of('bert'))!r}, layer=2)"
    with pytest.raises(InputError, match="torch cannot use the device 'toaster'"):
        em.score(["a"], ["a"], metric, device="toaster")
