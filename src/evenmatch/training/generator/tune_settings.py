"""Settings of a tuning run, read from a TOML file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from os import PathLike

from evenmatch.errors import InputError
from evenmatch.registry import check_settings
from evenmatch.registry.parts import check_at_least, check_positive
from evenmatch.training.settings import read_toml, replace_settings

BASELINES = ("greedy", "leave_one_out")


@dataclass(frozen=True, slots=True)
class T5Shape:
    """The size of a small T5 with random weights.

    Attributes:
        words: Size of the vocabulary, in sub-words.
        width: Size of the hidden states; a multiple of `heads`.
        layers: Number of layers of the encoder, and of the decoder.
        heads: Number of attention heads.
        inner: Size of the feed-forward layers.
        dropout: Dropout rate in training.
    """

    words: int = 4000
    width: int = 128
    layers: int = 2
    heads: int = 4
    inner: int = 256
    dropout: float = 0.1

    def __post_init__(self) -> None:
        check_settings(self)
        sizes = ("words", "width", "layers", "heads", "inner")
        check_at_least(1, **{name: getattr(self, name) for name in sizes})
        if self.width % self.heads:
            raise InputError(f"width {self.width} is not a multiple of the {self.heads} heads")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}")


@dataclass(frozen=True, slots=True)
class DecodingSettings:
    """How inputs are given to a model and texts decoded; lengths are in tokens."""

    prefix: str = ""
    separator: str = "\n"
    bf16: bool = False
    longest_source: int = 512
    longest_target: int = 384


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """The settings of one run; the defaults are those of Jin & Gildea (2022).

    Attributes:
        train: Training data, as `read_graphs` reads it.
        valid: Validation data, as `read_graphs` reads it.
        out: Folder of the run: the best model, logs, the result, and a checkpoint.
        model: Encoder-decoder or causal language model to start from, by name or folder. If empty,
            a T5 of size `shape` is initialised at random, with a vocabulary learnt from `train`.
        prefix: Text before each input, such as "translate Graph to English: ".
        separator: Text between an input and its text, for causal language models.
        reward: Name or spec of the metric that is the reward.
        own_embeddings: Whether the metric uses the model's own input embeddings, as they are now.
        rl_weight: Weight of the reward loss, from 0 to 1; cross-entropy has the rest.
        samples: Number of texts that are sampled for each input.
        baseline: What the reward of a sampled text is compared with: 'greedy' (the reward of the
            greedy text) or 'leave_one_out' (the mean reward of the other samples of the input).
        last_blocks: Number of upper transformer blocks that are trained, with all other weights
            frozen; 0 to train all weights.
        lora_rank: Rank of low-rank adapters (LoRA, from peft) that are trained instead of the
            weights; 0 for none.
        bf16: Whether matrices are multiplied in bfloat16 (autocast); weights stay in float32.
        epochs: Greatest number of passes over the training data.
        steps: Greatest number of steps; 0 for as many as `epochs` need.
        batch: Number of examples in each step.
        rate: Learning rate of Adam at the start; it decays linearly to 0.
        patience: The run ends after this many evaluations without a higher BLEU.
        clip: Largest norm of the gradient; 0 for no limit.
        look_every: Number of steps between evaluations on `valid`; 0 for one per epoch.
        keep_every: Number of steps between checkpoints, from which a stopped run resumes.
        keep_last: Whether the model after the last step is saved too, in the folder `last`.
        valid_count: Number of graphs of `valid` that are used, from the first; 0 for all.
        every_text: Whether each reference is an example; otherwise, one reference of each input is
            sampled per epoch.
        longest_source: Greatest number of tokens of an input; longer ones are truncated.
        longest_target: Greatest number of tokens of a text.
        seed: Seed of the initialisation, the order of the examples, dropout and sampling.
        shape: Size of the T5, if `model` is empty.
    """

    train: str
    valid: str
    out: str
    model: str = ""
    prefix: str = ""
    separator: str = "\n"
    reward: str = "f_disc"
    own_embeddings: bool = True
    rl_weight: float = 0.3
    samples: int = 1
    baseline: str = "greedy"
    last_blocks: int = 0
    lora_rank: int = 0
    bf16: bool = False
    epochs: int = 30
    steps: int = 0
    batch: int = 16
    rate: float = 1e-4
    patience: int = 3
    clip: float = 0.0
    look_every: int = 0
    keep_every: int = 200
    keep_last: bool = False
    valid_count: int = 0
    every_text: bool = True
    longest_source: int = 512
    longest_target: int = 384
    seed: int = 0
    shape: T5Shape = T5Shape()

    @property
    def decoding(self) -> DecodingSettings:
        """The settings that are also needed to write texts with the tuned model."""
        return DecodingSettings(**{f.name: getattr(self, f.name) for f in fields(DecodingSettings)})

    def __post_init__(self) -> None:
        check_settings(self)
        ones = "epochs batch patience keep_every longest_source longest_target samples".split()
        check_at_least(1, **{name: getattr(self, name) for name in ones})
        zeros = "look_every valid_count seed clip last_blocks lora_rank steps".split()
        check_at_least(0, **{name: getattr(self, name) for name in zeros})
        if not 0 <= self.rl_weight <= 1:
            raise InputError(f"rl_weight must be between 0 and 1, got {self.rl_weight}")
        check_positive(rate=self.rate)
        if self.baseline not in BASELINES:
            raise InputError(
                f"baseline must be one of {', '.join(BASELINES)}, got {self.baseline!r}"
            )
        if self.baseline == "leave_one_out" and self.samples < 2:
            raise InputError("baseline 'leave_one_out' needs at least 2 samples")
        if self.last_blocks and self.lora_rank:
            raise InputError("give last_blocks or lora_rank, not both")


def read_tune_settings(path: str | PathLike[str]) -> TuneSettings:
    """Read settings from a TOML file; unknown keys are refused.

    The table `[shape]` holds the settings of a small T5.
    """
    table = read_toml(path)
    shape = replace_settings(T5Shape(), table.pop("shape", {}), f"[shape] of {path}")
    required = ("train", "valid", "out")
    defaults = TuneSettings(*required, shape=shape)
    settings = replace_settings(defaults, table, str(path), others=("shape",))
    for name in required:
        if not table.get(name):
            raise InputError(f"{path} needs {name} = '…'")
    return settings
