"""Settings of a tuning run, read from a TOML file."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from os import PathLike

from evenmatch.errors import InputError
from evenmatch.training.settings import TYPE_NAMES, check_toml_settings, read_toml


def _check_minimum(name: str, value: float, least: int) -> None:
    if value < least:
        raise InputError(f"{name} must be at least {least}, got {value}")


@dataclass(frozen=True, slots=True)
class T5Shape:
    """The size of a small T5 with random weights: vocabulary, width, depth, heads, dropout."""

    words: int = 4000
    width: int = 128
    layers: int = 2
    heads: int = 4
    inner: int = 256
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in ("words", "width", "layers", "heads", "inner"):
            _check_minimum(name, getattr(self, name), 1)
        if self.width % self.heads:
            raise InputError(f"width {self.width} is not a multiple of the {self.heads} heads")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}")


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """The settings of one run; the defaults are those of Jin & Gildea (2022).

    `train` and `valid` are inputs of `read_graphs`, `out` is the folder of the run. `model` is an
    encoder-decoder by name or folder; without one, a T5 of size `shape` is initialised at random,
    with a vocabulary learnt from `train`. The loss is `rl_weight` times the reward loss plus
    1 - `rl_weight` times cross-entropy. With `own_embeddings`, the metric named in `reward` uses
    the model's own input embeddings. With `every_text`, each reference is an example; otherwise
    one reference of each input is sampled per epoch. The model is evaluated on `valid` after each
    epoch, or every `look_every` steps; the run ends after `patience` evaluations without a higher
    BLEU. `valid_count` limits `valid` to its first graphs (0 for all). `clip` is the largest
    gradient norm (0 for no limit). A checkpoint is written every `keep_every` steps.
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

    def __post_init__(self) -> None:
        for name in "epochs batch patience keep_every longest_source longest_target".split():
            _check_minimum(name, getattr(self, name), 1)
        for name in ("look_every", "valid_count", "seed", "clip"):
            _check_minimum(name, getattr(self, name), 0)
        if not 0 <= self.rl_weight <= 1:
            raise InputError(f"rl_weight must be between 0 and 1, got {self.rl_weight}")
        if not self.rate > 0:
            raise InputError(f"rate must be above 0, got {self.rate}")


def read_tune_settings(path: str | PathLike[str]) -> TuneSettings:
    """Read settings from a TOML file; unknown keys are refused.

    The table `[shape]` holds the settings of a small T5.
    """
    table = read_toml(path)
    shape = table.pop("shape", {})
    check_toml_settings(table, _scalar_types(TuneSettings), str(path), others=("shape",))
    check_toml_settings(shape, _scalar_types(T5Shape), f"[shape] of {path}")
    for name in ("train", "valid", "out"):
        if not table.get(name):
            raise InputError(f"{path} needs {name} = '…'")
    return TuneSettings(**table, shape=T5Shape(**shape))


def _scalar_types(settings: type[TuneSettings] | type[T5Shape]) -> dict[str, type]:
    """Return the types of all scalar settings by name."""
    by_name = {kind.__name__: kind for kind in TYPE_NAMES}
    fields = {each.name: str(each.type) for each in dataclasses.fields(settings)}
    return {name: by_name[kind] for name, kind in fields.items() if kind in by_name}
