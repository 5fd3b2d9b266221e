"""Train a causal language model with TRL's GRPO on WebNLG, once for each of two rewards.

The prompts are graphs as `evenmatch tune` gives them to a model, so a model that was tuned to
write texts for graphs is a good start. Each run logs both rewards and the repetition of the sampled
texts, so that one sees what a reward does to the other. Needs trl, and WebNLG in EVENMATCH_DATA.

Run it: python examples/grpo.py MODEL OUT.json
"""

import gc
import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import evenmatch as em
from evenmatch.data.graphs import GraphText, Triples
from evenmatch.training.generator.policy import DECODING_FILE
from evenmatch.training.rewards import lowercase_words, repeated_share

REWARDS = {"f_disc": "f_disc", "bleu": "bleu(smoothing='add-k')"}
SETTINGS: dict[str, Any] = {
    "max_steps": 8,
    "per_device_train_batch_size": 16,
    "num_generations": 8,  # texts sampled for a prompt, and compared with each other
    "max_completion_length": 48,
    "learning_rate": 2e-5,
    "beta": 0.0,  # no reference model
    "bf16": True,
    "seed": 0,
}
VALIDATION_GRAPHS = 48


def repetition(completions: Sequence[str], **columns: Any) -> list[float]:
    """Return the share of repeated bigrams of each text; it is logged and not rewarded."""
    return [repeated_share(lowercase_words(text)) for text in completions]


def train(
    model: str, graphs: Sequence[GraphText], rewarded: str, out: str, **settings: Any
) -> list[dict[str, float]]:
    """Train a model on one reward, save it to a folder, and return what each step logged."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    rows = [{"prompt": f"{g.graph.line}\n", "references": list(g.references)} for g in graphs]
    functions = [em.for_trl(em.reward(spec), name=name) for name, spec in REWARDS.items()]
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
        args=GRPOConfig(
            out,
            **settings,
            reward_weights=[*(float(name == rewarded) for name in REWARDS), 0.0],
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            gradient_checkpointing=False,
            disable_tqdm=True,
        ),
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rows),
        reward_funcs=[*functions, repetition],
    )
    trainer.train()
    trainer.save_model(out)
    if (decoding := Path(model) / DECODING_FILE).exists():  # of `evenmatch tune`
        shutil.copy(decoding, out)
    names = {f"rewards/{name}/mean": name for name in (*REWARDS, "repetition")}
    names["completions/mean_length"] = "tokens"
    return [
        {short: round(row[name], 4) for name, short in names.items()}
        for row in trainer.state.log_history
        if "rewards/repetition/mean" in row
    ]


def evaluate(model: str, graphs: Sequence[GraphText]) -> dict[str, float]:
    """Return the scores of greedy texts, the share of repeated bigrams, and the number of words."""
    texts = em.generate(model, [each.graph.line for each in graphs])
    references = [list(each.references) for each in graphs]
    scores = em.score(texts, references, ["bleu", "chrf", "f_disc"])
    found = {name: own.mean if own.corpus is None else own.corpus for name, own in scores.items()}
    found["repetition"] = sum(repetition(texts)) / len(texts)
    found["words"] = sum(len(text.split()) for text in texts) / len(texts)
    return {name: round(value, 4) for name, value in found.items()}


def few_triples(path: str, most: int = 3) -> list[GraphText]:
    """Read the graphs of WebNLG with at most so many triples."""
    graphs = em.read_graphs(path)
    return [g for g in graphs if isinstance(g.graph, Triples) and len(g.graph.triples) <= most]


def main(model: str, out: str) -> None:
    """Train with each reward from the same model, and write the curves and scores as JSON."""
    graphs = few_triples("webnlg-v2/train.jsonl.gz")
    every = few_triples("webnlg-v2/dev.jsonl.gz")
    valid = every[:: len(every) // VALIDATION_GRAPHS][:VALIDATION_GRAPHS]
    found: dict[str, Any] = {"settings": SETTINGS, "validation graphs": len(valid)}
    found["start"] = evaluate(model, valid)
    for name in REWARDS:
        with TemporaryDirectory() as folder:
            start = time.process_time()
            steps = train(model, graphs, name, folder, **SETTINGS)
            seconds = round(time.process_time() - start)
            found[name] = {"steps": steps, "seconds": seconds, **evaluate(folder, valid)}
        print(f"{name}: {steps[0][name]:.3f} at first, {steps[-1][name]:.3f} at last")
        gc.collect()
    Path(out).write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
