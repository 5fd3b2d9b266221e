"""Cost of rewards: within a training step, and in the batch sizes that trainers use."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import evenmatch as em
from benchmarks import texts
from benchmarks.clock import median, ratio, take_turns
from evenmatch.data.catalogue.catalogue import data_set
from evenmatch.data.graphs import Triples
from evenmatch.training.generator.loss import StepMetrics, mixed_loss, policy_reward
from evenmatch.training.generator.policy import CausalPolicy, Policy
from evenmatch.training.generator.tune import TuneExamples, prepare_policy
from evenmatch.training.generator.tune_settings import TuneSettings
from evenmatch.training.rewards import Reward

THREADS, REPEATS = 1, 3
PROMPTS, GENERATIONS, PORTION = 64, 8, 32  # completions per call of the reward
MODEL, MAX_TRIPLES = "smollm2", 3
REWARDS = ("bleu(smoothing='add-k')", "bertscore", "f_cont", "f_disc")
# The model first learns to write texts; one that does not would sample up to the limit.
START_STEPS, STEPS, ROUNDS = 12, 3, 1
SETTINGS = TuneSettings(
    "", "", "", model=MODEL, batch=16, bf16=True, every_text=False, rate=2e-4,
    longest_source=120, longest_target=60,
)  # fmt: skip


def run() -> dict[str, Any]:
    import torch

    torch.set_num_threads(THREADS)
    return {"threads": THREADS, "training step": _step(), "in portions": _portions()}


def _step() -> dict[str, Any]:
    """A step of cross-entropy mixed with a reward, against cross-entropy alone on the same batch.

    Times are CPU times of the only thread, which other programs disturb less.
    """
    import torch

    if not data_set("webnlg-v2").present:
        return {"skipped": data_set("webnlg-v2").missing_message}
    graphs = [
        each
        for each in em.read_graphs("webnlg-v2/train.jsonl.gz")
        if isinstance(each.graph, Triples) and len(each.graph.triples) <= MAX_TRIPLES
    ]
    policy = prepare_policy(SETTINGS, graphs)
    policy.model.train()
    examples = TuneExamples(graphs, SETTINGS, policy.tokenizer)
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=SETTINGS.rate, fused=True)
    exact = dataclasses.replace(cast(CausalPolicy, policy), bf16=False)
    timed = _TimedReward(policy_reward("f_disc", policy, own_embeddings=True))

    def take(number: int, rl_weight: float, bf16: bool = True) -> tuple[float, StepMetrics]:
        start = time.process_time()
        loss, metrics = mixed_loss(
            policy if bf16 else exact,
            examples(number),
            rl_weight=rl_weight,
            reward=cast(Reward, timed),
            generator=torch.Generator().manual_seed(number),
            longest=(SETTINGS.longest_source, SETTINGS.longest_target),
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return time.process_time() - start, metrics

    for number in range(START_STEPS):
        take(number, 0.0)
    optimizer.param_groups[0]["lr"] = 1e-12  # from here on all steps find the same weights
    plain, mixed, padding, lengths, shares = [], [], [], [], []
    for number in [START_STEPS + i for _ in range(ROUNDS) for i in range(STEPS)]:
        plain.append(take(number, 0.0)[0])
        timed.seconds = 0.0
        seconds, metrics = take(number, 0.3)
        mixed.append(seconds)
        shares.append(timed.seconds / seconds)
        padding.append(metrics.padding)
        lengths.append(metrics.length)
    full = [take(START_STEPS + i, 0.0, bf16=False)[0] for i in range(STEPS)]
    return {
        "texts": f"WebNLG v2, up to {MAX_TRIPLES} triples",
        "model": MODEL,
        "batch": SETTINGS.batch,
        "steps of cross-entropy first": START_STEPS,
        "tokens of a sampled text": round(sum(lengths) / len(lengths), 1),
        "seconds of a cross-entropy step": round(median(plain), 2),
        "seconds of a step with a reward": round(median(mixed), 2),
        "times a cross-entropy step": ratio(mixed, plain),
        "float32, times bfloat16": ratio(full, plain[:STEPS]),
        "padding": round(sum(padding) / len(padding), 3),
        "share of the reward f_disc": round(median(shares), 4),
        "microseconds a text": _reward_times(policy, timed.pairs),
    }


@dataclass
class _TimedReward:
    """A reward that measures the CPU time it takes, and remembers the last texts."""

    reward: Reward
    seconds: float = 0.0
    pairs: Sequence[em.Pair] = ()

    def __call__(self, pairs: Sequence[em.Pair]) -> list[float]:
        start = time.process_time()
        values = self.reward(pairs)
        self.seconds += time.process_time() - start
        self.pairs = pairs
        return values


def _reward_times(policy: Policy, pairs: Sequence[em.Pair]) -> dict[str, float]:
    """The CPU time of each reward for the texts of one step."""
    found = {}
    for name in REWARDS:
        timed = _TimedReward(policy_reward(name, policy, own_embeddings=True))
        times = []
        for _ in range(REPEATS + 1):
            timed.seconds = 0.0
            timed(pairs)
            times.append(timed.seconds / len(pairs))
        found[name] = round(1e6 * median(times[1:]), 1)
    return found


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
        *([f"Training steps were not measured: {step['skipped']}"] if "skipped" in step else []),
        *(_step_lines(step) if "skipped" not in step else []),
        "",
        f'`em.for_trl(em.reward("f_disc"))`, called with {portions["pairs at a time"]} completions',
        f"at a time, {portions['completions a prompt']} per prompt, scores "
        f"{portions['pairs per second, as TRL asks']} pairs per second:",
        f"{portions['share of raw speed']} of `em.score` on all {portions['pairs']} at once.",
        "",
    ]


def _step_lines(step: dict[str, Any]) -> list[str]:
    return [
        f"A step of `evenmatch tune` with `{step['model']}` (all weights, bfloat16, batch "
        f"{step['batch']}, {step['texts']},",
        f"after {step['steps of cross-entropy first']} steps of cross-entropy) takes "
        f"{step['seconds of a cross-entropy step']} s of CPU time with cross-entropy alone and",
        f"{step['seconds of a step with a reward']} s with a reward (one sampled and one greedy "
        f"text, both losses and the update):",
        f"{step['times a cross-entropy step']} times as long. {100 * step['padding']:.1f} % of the "
        "token positions of such a step are padding.",
        f"In float32 a cross-entropy step takes {step['float32, times bfloat16']} times as long.",
        f"The reward `f_disc` on the policy's own embeddings takes "
        f"{100 * step['share of the reward f_disc']:.1f} % of it.",
        "",
        "| reward on the policy's embeddings | microseconds a text |",
        "|---|--:|",
        *(f"| `{name}` | {value} |" for name, value in step["microseconds a text"].items()),
    ]
