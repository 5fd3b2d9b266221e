"""How a generator is tuned, as a TOML file says it."""

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
    """A small T5 made from nothing: its vocabulary, and how wide and deep it is."""

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
            raise InputError(f"width {self.width} cannot be shared by {self.heads} heads equally")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}")


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """Everything about one run; the defaults are Jin & Gildea's (2022).

    `train` and `valid` are what `read_graphs` takes, `out` the folder of the run. `model` is an
    encoder-decoder by name or folder; without one, a T5 of `shape` is made, with a vocabulary
    learnt from `train`. The loss is `rl_weight` parts reward and the rest cross-entropy; with
    `own_embeddings` the metric named in `reward` looks words up in the model's own input
    embeddings. `every_text` makes each reference an example; otherwise one of an input's
    references is drawn in each pass. A run ends after `patience` looks at `valid` without a better
    BLEU; there is one after each pass, or after every `look_every` steps. Of `valid`, the first
    `valid_count` are looked at, 0 being all; `clip` 0 leaves gradients as they are.
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
    """The settings in a TOML file; a key that means nothing is refused.

    Settings of a small T5 stand under `[shape]`.
    """
    table = read_toml(path)
    shape = table.pop("shape", {})
    check_toml_settings(table, _scalar_types(TuneSettings), str(path), others=("shape",))
    check_toml_settings(shape, _scalar_types(T5Shape), f"[shape] of {path}")
    for name in ("train", "valid", "out"):
        if not table.get(name):
            raise InputError(f"{path} needs {name} = '…'")
    return TuneSettings(**table, shape=T5Shape(**shape))


def _scalar_types(made: type[TuneSettings] | type[T5Shape]) -> dict[str, type]:
    """The settings that are one value, by name."""
    by_name = {kind.__name__: kind for kind in TYPE_NAMES}
    fields = {each.name: str(each.type) for each in dataclasses.fields(made)}
    return {name: by_name[kind] for name, kind in fields.items() if kind in by_name}
