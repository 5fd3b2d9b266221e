"""Settings of a tuning run, read from a TOML file."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from evenmatch.errors import InputError
from evenmatch.registry.parts import check_at_least, check_positive
from evenmatch.training.settings import read_toml, replace_settings


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
    longest_source: int = 512
    longest_target: int = 384


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """The settings of one run; the defaults are those of Jin & Gildea (2022).

    Attributes:
        train: Training data, as `read_graphs` reads it.
        valid: Validation data, as `read_graphs` reads it.
        out: Folder of the run: the best model, logs, the result, and a checkpoint.
        model: Encoder-decoder to start from, by name or folder. If empty, a T5 of size `shape` is
            initialised at random, with a vocabulary learnt from `train`.
        prefix: Text before each input, such as "translate Graph to English: ".
        reward: Name or spec of the metric that is the reward.
        own_embeddings: Whether the metric uses the model's own input embeddings, as they are now.
        rl_weight: Weight of the reward loss, from 0 to 1; cross-entropy has the rest.
        epochs: Greatest number of passes over the training data.
        batch: Number of examples in each step.
        rate: Learning rate of Adam at the start; it decays linearly to 0.
        patience: The run ends after this many evaluations without a higher BLEU.
        clip: Largest norm of the gradient; 0 for no limit.
        look_every: Number of steps between evaluations on `valid`; 0 for one per epoch.
        keep_every: Number of steps between checkpoints, from which a stopped run resumes.
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
    reward: str = "f_disc"
    own_embeddings: bool = True
    rl_weight: float = 0.3
    epochs: int = 30
    batch: int = 16
    rate: float = 1e-4
    patience: int = 3
    clip: float = 0.0
    look_every: int = 0
    keep_every: int = 200
    valid_count: int = 0
    every_text: bool = True
    longest_source: int = 512
    longest_target: int = 384
    seed: int = 0
    shape: T5Shape = T5Shape()

    @property
    def decoding(self) -> DecodingSettings:
        """The settings that are also needed to write texts with the tuned model."""
        return DecodingSettings(self.prefix, self.longest_source, self.longest_target)

    def __post_init__(self) -> None:
        ones = "epochs batch patience keep_every longest_source longest_target".split()
        check_at_least(1, **{name: getattr(self, name) for name in ones})
        zeros = ("look_every", "valid_count", "seed", "clip")
        check_at_least(0, **{name: getattr(self, name) for name in zeros})
        if not 0 <= self.rl_weight <= 1:
            raise InputError(f"rl_weight must be between 0 and 1, got {self.rl_weight}")
        check_positive(rate=self.rate)


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
