"""Cost of rewards: within a training step, and in the batch sizes that trainers use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import evenmatch as em
from benchmarks import texts
from benchmarks.clock import median, ratio, take_turns
from evenmatch.data.catalogue.catalogue import data_set
from evenmatch.data.graphs import GraphText, LinearisedGraph
from evenmatch.training.generator.loss import TuneBatch, mixed_loss, policy_reward
from evenmatch.training.generator.policy import Policy, make_policy
from evenmatch.training.generator.tune import TuneExamples
from evenmatch.training.generator.tune_settings import T5Shape, TuneSettings
from evenmatch.training.rewards.rewards import Reward

THREADS, REPEATS = 1, 7
BATCH, STEPS, LONGEST = 16, 4, (120, 40)
# With a small model the reward takes a large share of a step; real T5 models are much larger.
SHAPE = T5Shape(words=3000, width=128, layers=2, heads=4, inner=256)
PROMPTS, GENERATIONS, PORTION = 64, 8, 32  # completions per call of the reward


def run() -> dict[str, Any]:
    import torch

    torch.set_num_threads(THREADS)
    return {"threads": THREADS, "training step": _step(), "in portions": _portions()}


def _step() -> dict[str, Any]:
    """A step of cross-entropy mixed with a reward, against one whose reward costs nothing."""
    graphs = _graphs()
    settings = TuneSettings("", "", "", batch=BATCH, every_text=False)
    examples = TuneExamples(graphs, settings)
    read = [*examples.sources, *(t for some in examples.references for t in some)]
    policy = make_policy(SHAPE, read, seed=0)
    optimizer = _optimizer(policy)
    batches = [examples(number) for number in range(STEPS)]

    def steps(reward: Reward) -> Callable[[], None]:
        return lambda: _take(policy, optimizer, batches, reward)

    rewards = {
        name: policy_reward(name, policy, own_embeddings=True)
        for name in ("f_disc", "f_cont", "bertscore")
    }
    rivals = {name: steps(reward) for name, reward in rewards.items()}
    seconds = take_turns({"none": steps(Reward(0.0)), **rivals}, REPEATS)
    return {
        "texts": "WebNLG v2" if data_set("webnlg-v2").present else "the bundled sample",
        "batch": BATCH,
        "pieces written at most": LONGEST[1],
        "width": SHAPE.width,
        "layers": SHAPE.layers,
        "milliseconds without a reward": round(1000 * median(seconds["none"]) / STEPS, 1),
        "added": {name: round(ratio(seconds[name], seconds["none"]) - 1, 3) for name in rivals},
    }


def _optimizer(policy: Policy) -> Any:
    """Adam at a rate so low that all rivals find the same weights."""
    import torch

    return torch.optim.Adam(policy.model.parameters(), lr=1e-12)


def _take(policy: Policy, optimizer: Any, batches: Sequence[TuneBatch], reward: Reward) -> None:
    import torch

    draw = torch.Generator().manual_seed(0)
    for batch in batches:
        loss, _ = mixed_loss(
            policy, batch, rl_weight=0.3, reward=reward, generator=draw, longest=LONGEST
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _graphs() -> list[GraphText]:
    if data_set("webnlg-v2").present:
        return em.read_graphs("webnlg-v2/train.jsonl.gz")[::20]
    candidates, references, _ = texts.pairs(400)
    return [
        GraphText(LinearisedGraph(c), (r,)) for c, r in zip(candidates, references, strict=True)
    ]


def _portions() -> dict[str, Any]:
    """f_disc as TRL asks for it, a few prompts' completions at a time, against all at once."""
    candidates, references, source = texts.pairs(PROMPTS * GENERATIONS)
    targets = [reference for reference in references[::GENERATIONS] for _ in range(GENERATIONS)]
    function = em.for_trl(em.reward("f_disc"), references="target")

    def asked() -> None:
        for start in range(0, len(candidates), PORTION):
            part = slice(start, start + PORTION)
            prompts = ["say it"] * PORTION
            function(completions=candidates[part], prompts=prompts, target=targets[part])

    seconds = take_turns(
        {"raw": lambda: em.score(candidates, targets, "f_disc"), "asked": asked}, REPEATS
    )
    return {
        "texts": source,
        "pairs": len(candidates),
        "pairs at a time": PORTION,
        "completions a prompt": GENERATIONS,
        "pairs per second, all at once": round(len(candidates) / median(seconds["raw"]), 1),
        "pairs per second, as TRL asks": round(len(candidates) / median(seconds["asked"]), 1),
        "share of raw speed": round(1 / ratio(seconds["asked"], seconds["raw"]), 3),
    }


def page_section(r: dict[str, Any]) -> list[str]:
    """Return the Markdown lines for the page on speed."""
    step, portions = r["training step"], r["in portions"]
    return [
        "## Rewards",
        "",
        "A step of cross-entropy mixed with a reward on the policy's own embeddings",
        f"({step['texts']}, batch {step['batch']}, a T5 of width {step['width']} and "
        f"{step['layers']} layers,",
        f"one sampled and one greedy text, up to {step['pieces written at most']} tokens) takes",
        f"{step['milliseconds without a reward']} ms without a reward. Rewards add:",
        "",
        "| reward | added to the step |",
        "|---|--:|",
        *(f"| `{name}` | {100 * share:.1f} % |" for name, share in step["added"].items()),
        "",
        f'`em.for_trl(em.reward("f_disc"))`, called with {portions["pairs at a time"]} completions',
        f"at a time, {portions['completions a prompt']} per prompt, scores "
        f"{portions['pairs per second, as TRL asks']} pairs per second:",
        f"{portions['share of raw speed']} of `em.score` on all {portions['pairs']} at once.",
        "",
    ]
