"""Adapters on tiny models of every family that has a place for one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import evenmatch as em
from evenmatch.errors import DataError, InputError, UnknownNameError
from evenmatch.models.adapters import Adapter, find_adapter, load_adapter, new_adapter, save_adapter
from evenmatch.models.backbone import PretrainedBackbone, load_blocks
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.types import Array, Cache
from tests.support.model_families import BLOCKS, FolderOf

TEXTS = ["the cat sat on the mat", "rain"]
ADAPTED = pytest.mark.parametrize(
    "family", ["bert", "roberta", "deberta-v2", "distilbert", "bart", "t5"]
)


def large(dim: int = 16, blocks: int = BLOCKS) -> Adapter:
    """An adapter that plainly changes what comes out."""
    fresh = new_adapter(dim, blocks, factor=4, seed=3)
    return Adapter({name: weight.detach() * 30 for name, weight in fresh.weights.items()})


def saved(folder: Path, adapter: Adapter | None = None) -> str:
    save_adapter(adapter or large(), folder, {"attribute": "gender"})
    return str(folder)


def states(model: Path, adapter: str = "", layer: int = BLOCKS) -> list[Array]:
    found = PretrainedBackbone(str(model), adapter=adapter).open().encode(TEXTS, [layer])
    return [each.layers[layer] for each in found]


@ADAPTED
def test_an_adapter_changes_the_states_and_leaves_no_trace(
    family: str, folder_of: FolderOf, tmp_path: Path
) -> None:
    model = folder_of(family)
    before = states(model)
    adapted = states(model, saved(tmp_path))
    after = states(model)
    for one, two, three in zip(before, adapted, after, strict=True):
        assert np.abs(one - two).max() > 1e-3
        assert np.array_equal(one, three)  # bit by bit


@ADAPTED
def test_an_adapter_of_nothing_but_zeros_changes_nothing(
    family: str, folder_of: FolderOf, tmp_path: Path
) -> None:
    zeros = Adapter({name: weight * 0 for name, weight in large().weights.items()})
    model = folder_of(family)
    for one, two in zip(states(model), states(model, saved(tmp_path, zeros)), strict=True):
        assert one == pytest.approx(two, abs=1e-6)


def test_a_bottleneck_stands_between_two_norms(folder_of: FolderOf, tmp_path: Path) -> None:
    """LN(z + up(relu(down(LN(z))))) where z is the input of the last norm (Sun et al., 2022)."""
    import torch

    model = folder_of("bert")
    blocks = load_blocks(find_checkpoint(str(model)), False, "cpu")
    norm, given = blocks.stack[0].output.LayerNorm, []
    hook = norm.register_forward_hook(lambda _, args, __: given.append(args[0]))
    plain = states(model, layer=1)
    hook.remove()
    weights = large().weights
    z = given[0][: len(plain[0])]  # the longest text lies first
    with torch.no_grad():
        h = norm(z)
        down = torch.relu(h @ weights["0.down.weight"].T + weights["0.down.bias"])
        wanted = norm(z + down @ weights["0.up.weight"].T + weights["0.up.bias"]).numpy()
    found = states(model, saved(tmp_path), layer=1)[0]
    assert found == pytest.approx(wanted, abs=1e-5)


def test_the_bottleneck_is_sixteen_times_narrower() -> None:
    adapter = new_adapter(384, 4)
    assert adapter.weights["3.down.weight"].shape == (24, 384)
    assert (adapter.dim, adapter.num_blocks) == (384, 4)
    assert not adapter.weights["0.up.bias"].any()


def test_seeds_make_adapters() -> None:
    same, other = (new_adapter(32, 1, seed=s).weights["0.up.weight"] for s in (1, 2))
    assert not (same == other).all()
    assert (new_adapter(32, 1, seed=1).weights["0.up.weight"] == same).all()


def test_saved_weights_come_back(tmp_path: Path) -> None:
    adapter = large()
    back = load_adapter(find_adapter(saved(tmp_path, adapter)))
    assert back.weights.keys() == adapter.weights.keys()
    assert all((back.weights[n] == w).all() for n, w in adapter.weights.items())


def test_a_signature_names_the_adapter_by_content(folder_of: FolderOf, tmp_path: Path) -> None:
    adapter = saved(tmp_path / "mine")
    metric = em.build(f"bertscore(model='{folder_of('bert')}', layer=2, adapter='{adapter}')")
    scores = em.score(["the cat"], ["a cat"], metric)
    assert str(tmp_path) not in scores.signature
    assert f"adapter {find_adapter(adapter).digest[:16]}@" in scores.signature
    again = em.build(scores.signature.split(" · ")[0])
    assert em.score(["the cat"], ["a cat"], again).mean == scores.mean
    plain = dataclasses.replace(metric, vectors=dataclasses.replace(metric.vectors, adapter=""))
    assert em.score(["the cat"], ["a cat"], plain).mean != scores.mean


@pytest.mark.usefixtures("empty_cache")
def test_the_cache_keeps_adapted_vectors_apart(folder_of: FolderOf, tmp_path: Path) -> None:
    cache = Cache(exact=True)
    model, adapter = folder_of("bert"), saved(tmp_path / "mine")
    specs = [
        f"bertscore(model='{model}', layer=2{more}" for more in (")", f", adapter='{adapter}')")
    ]
    first = [em.score(["the cat"], ["a dog"], spec, cache=cache).mean for spec in specs]
    again = [em.score(["the cat"], ["a dog"], spec, cache=cache).mean for spec in specs]
    assert first == again
    assert first[0] != first[1]


def test_metrics_with_and_without_an_adapter_share_a_call(
    folder_of: FolderOf, tmp_path: Path
) -> None:
    model, adapter = folder_of("bert"), saved(tmp_path)
    specs = [f"f_disc(model='{model}', layer=2{more}" for more in (")", f", adapter='{adapter}')")]
    together = em.score(["the cat"], ["a dog"], specs)
    for spec in specs:
        assert together[spec].mean == em.score(["the cat"], ["a dog"], spec).mean


def test_a_model_without_a_place_for_an_adapter_is_refused(
    folder_of: FolderOf, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="models of type 'albert' do not support adapters"):
        states(folder_of("albert"), saved(tmp_path))


def test_an_adapter_of_another_model_is_refused(folder_of: FolderOf, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="for 4 blocks of hidden size 32, and this model has 4 of"):
        states(folder_of("bert"), saved(tmp_path, large(32)))


def test_an_adapter_that_is_not_there_or_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="there is no adapter 'nowhere'; give a folder"):
        find_adapter("nowhere")
    with pytest.raises(DataError, match="no adapter with the content sha256:00 has been used"):
        find_adapter("sha256:00")
    (tmp_path / "x.safetensors").write_bytes(b"no weights")
    with pytest.raises(DataError, match="is not an adapter"):
        load_adapter(find_adapter(str(tmp_path / "x.safetensors")))
    with pytest.raises(InputError, match="hidden size of 8 cannot be made 16 times narrower"):
        new_adapter(8, 1)
