from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.graphs import read_graphs
from evenmatch.training.generator import tune as module
from evenmatch.training.generator.decoding import decode_texts, generate_tokens
from evenmatch.training.generator.policy import load_policy
from evenmatch.training.generator.tune import tune
from evenmatch.training.generator.tune_settings import TuneSettings
from evenmatch.training.loop import training_threads
from tests.support.tuning import save_tiny_llama, tiny, write_examples

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("tensorboard", reason="tensorboard is not installed")

REWARD = "chrf"


def sampled_reward(model: Path, settings: TuneSettings) -> float:
    """The mean reward of texts sampled for the validation inputs."""
    policy, graphs = load_policy(str(model), settings.decoding), read_graphs(settings.valid)
    with torch.no_grad():
        inputs = policy.encode([each.graph.line for each in graphs], settings.longest_source)
        tokens = generate_tokens(
            policy,
            inputs,
            longest=settings.longest_target,
            samples=8,
            greedy=False,
            generator=torch.Generator().manual_seed(0),
        )
    texts = decode_texts(policy, *tokens)
    references = [each.references for each in graphs] * 8
    pairs = [em.Pair(t, r) for t, r in zip(texts, references, strict=True)]
    return float(np.mean(em.reward(REWARD)(pairs)))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_reward_raises_itself_beyond_cross_entropy_and_only_with_the_right_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A causal model: a start by cross-entropy, then three arms from it on the same examples."""
    common: dict[str, Any] = {
        "train": write_examples(tmp_path / "examples.jsonl", 64, seed=1),
        "valid": write_examples(tmp_path / "others.jsonl", 32, seed=2),
        "batch": 8,
        "epochs": 99,
        "patience": 99,
        "look_every": 1000,
        "keep_last": True,
        "longest_target": 16,
        "every_text": False,
    }

    def arm(name: str, **changed: Any) -> float:
        settings = tiny(tmp_path, name, **{**common, **changed})
        return sampled_reward(tune(settings).last, settings)

    with training_threads(1):
        start = arm(
            "start", model=save_tiny_llama(tmp_path / "llama"), rl_weight=0.0, steps=150, rate=1e-2
        )
        after = {"model": str(tmp_path / "start" / "last"), "steps": 100, "rate": 2e-3}
        plain = arm("plain", **after, rl_weight=0.0)
        mixed = {**after, "rl_weight": 0.9, "reward": REWARD, "samples": 4}
        rewarded = arm("rewarded", **mixed, baseline="leave_one_out")
        monkeypatch.setattr(
            module, "policy_reward", lambda spec, policy, own_embeddings: 1 - em.reward(spec)
        )
        flipped = arm("flipped", **mixed, baseline="leave_one_out")
    assert start < plain < rewarded - 0.03
    assert flipped < plain - 0.03
