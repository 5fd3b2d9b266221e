"""Rewards in TRL's own trainers, on a language model that is made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.integrations.rl import for_trl

pytest.importorskip("trl", reason="trl is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # TRL's and its libraries' own

WORDS = "a the cat dog sat ran on mat far . say it : user assistant".split()
TEMPLATE = "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} {% endfor %}"
TEMPLATE += "{% if add_generation_prompt %}assistant : {% endif %}"
REWARD = em.reward("align(vectors=hashed, alignment=lsa)") * em.length_term()


def tokenizer() -> Any:
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: i for i, word in enumerate(["<pad>", "</s>", "<unk>", *WORDS])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    untyped: Any = transformers
    return untyped.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        chat_template=TEMPLATE,
    )


def model() -> Any:
    import transformers

    untyped: Any = transformers
    ids = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    config = untyped.GPT2Config(
        vocab_size=len(WORDS) + 3, n_positions=64, n_embd=16, n_layer=1, n_head=2, **ids
    )
    return untyped.GPT2LMHeadModel(config)


@pytest.mark.parametrize("chat", [False, True], ids=["strings", "messages"])
@pytest.mark.parametrize("kind", ["GRPO", "RLOO"])
def test_trl_trains_on_the_reward(kind: str, chat: bool, tmp_path: Path) -> None:
    import trl
    from datasets import Dataset

    prompt: Any = [{"role": "user", "content": "say it"}] if chat else "say it :"
    rows = [{"prompt": prompt, "target": "the cat sat on the mat ."} for _ in range(8)]
    settings = getattr(trl, f"{kind}Config")(
        output_dir=str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=6,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        bf16=False,
        beta=0.0,  # or the model would be loaded again, by its name
        disable_tqdm=True,
    )
    trainer = getattr(trl, f"{kind}Trainer")(
        model=model(),
        args=settings,
        processing_class=tokenizer(),
        train_dataset=Dataset.from_list(rows),
        reward_funcs=for_trl(REWARD, references="target", name="overlap"),
    )
    trainer.train()
    seen = [row for row in trainer.state.log_history if "rewards/overlap/mean" in row]
    assert len(seen) == 2
    assert all(0.0 <= row["rewards/overlap/mean"] <= 1.0 for row in seen)
    assert all("overlap/odd" in row for row in seen)
