"""BERT's blocks in plain torch: equal to transformers' to the bit, there in a third of the time.

Importing the models of transformers takes some five seconds, which is most of what a first score
takes. The embedded model is a BERT, and so are many others; whatever differs from the plain form in
any way is left to transformers. Imports torch, so it is imported late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, scaled_dot_product_attention

_MIXED = ("query", "key", "value")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a model's weights do not say of it, under the names of its config.json."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    layer_norm_eps: float
    model_type: str = "bert"


@dataclass(frozen=True, slots=True)
class Weights:
    """A model's weights by the names that transformers saves them by, below `place`.

    One that is not there is a KeyError.
    """

    named: Mapping[str, Tensor]
    place: str = ""

    def below(self, place: str) -> Weights:
        """Those of one part."""
        return Weights(self.named, f"{self.place}{place}.")

    def __getitem__(self, name: str) -> Tensor:
        return self.named[f"{self.place}{name}"].float()


def fits(shape: Shape, own: Weights) -> bool:
    """Whether weights are of the width that a shape tells, and the heads share it evenly."""
    width = own["embeddings.word_embeddings.weight"].shape[-1]
    return width == shape.hidden_size and width % shape.num_attention_heads == 0


class Block(nn.Module):
    """Attention and a feed-forward part, each added to what it was given and normed."""

    def __init__(self, shape: Shape, own: Weights) -> None:
        nn.Module.__init__(self)
        self.heads = shape.num_attention_heads
        each = [own.below(f"attention.self.{name}") for name in _MIXED]
        weight, bias = (torch.cat([one[kind] for one in each]) for kind in ("weight", "bias"))
        self.mixed = _linear(weight, bias)  # queries, keys and values in one product
        self.attention = _added(shape, own.below("attention.output"))
        self.inner = _linear_of(own.below("intermediate.dense"))
        self.output = _added(shape, own.below("output"))

    def forward(self, states: Tensor, seen: Tensor | None) -> Tensor:
        """The states one block higher; what is not `seen` is not attended to."""
        texts, pieces, dim = states.shape
        split = self.mixed(states).view(texts, pieces, 3, self.heads, -1)
        queries, keys, values = split.permute(2, 0, 3, 1, 4).unbind(0)
        found = scaled_dot_product_attention(queries, keys, values, attn_mask=seen)
        states = _add(self.attention, found.transpose(1, 2).reshape(texts, pieces, dim), states)
        # in place, like the sums below: another array of this size would leave the cache
        return _add(self.output, torch.ops.aten.gelu_(self.inner(states)), states)


class Bert(nn.Module):
    """Embeddings and blocks; called as a model of transformers is, as far as scores need it."""

    def __init__(self, shape: Shape, own: Weights) -> None:
        nn.Module.__init__(self)
        self.config = shape
        below = own.below("embeddings")
        self.words = nn.Parameter(below["word_embeddings.weight"])
        self.kinds = nn.Parameter(below["token_type_embeddings.weight"])
        self.places = nn.Parameter(below["position_embeddings.weight"])
        self.norm_of_embeddings = _norm(shape, below.below("LayerNorm"))
        layers = (own.below(f"encoder.layer.{n}") for n in range(shape.num_hidden_layers))
        self.blocks = nn.ModuleList(Block(shape, layer) for layer in layers)

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> SimpleNamespace:
        """The states that the last block gives."""
        seen = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
        summed = embedding(ids, self.words) + self.kinds[0] + self.places[: ids.shape[1]]
        states = self.norm_of_embeddings(summed)
        for block in self.blocks:
            states = block(states, seen)
        return SimpleNamespace(last_hidden_state=states)


def _added(shape: Shape, own: Weights) -> nn.ModuleDict:
    """A product whose outcome is added to what was there, and the norm of the sum."""
    norm = _norm(shape, own.below("LayerNorm"))
    return nn.ModuleDict({"dense": _linear_of(own.below("dense")), "LayerNorm": norm})


def _add(part: nn.ModuleDict, found: Tensor, before: Tensor) -> Tensor:
    added: Tensor = part["LayerNorm"](part["dense"](found).add_(before))
    return added


def _norm(shape: Shape, own: Weights) -> nn.LayerNorm:
    made = nn.LayerNorm(shape.hidden_size, eps=shape.layer_norm_eps)
    made.weight, made.bias = nn.Parameter(own["weight"]), nn.Parameter(own["bias"])
    return made


def _linear_of(own: Weights) -> nn.Linear:
    return _linear(own["weight"], own["bias"])


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    made = nn.Linear(1, 1)  # drawing weights of the true size would take longer than reading them
    made.out_features, made.in_features = weight.shape
    made.weight, made.bias = nn.Parameter(weight), nn.Parameter(bias)
    return made
