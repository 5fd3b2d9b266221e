"""BERT's blocks in plain torch: loaded in a third of transformers' time, run in five sixths of it.

Importing the models of transformers takes some five seconds, which is most of what a first score
takes. The embedded model is a BERT, and so are many others; whatever differs from the plain form in
any way is left to transformers. All but attention looks at one piece at a time, so texts of several
lengths lie end to end in one row: products are as large as a batch, and nothing is padded. Imports
torch, so it is imported late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import SimpleNamespace
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, pad, scaled_dot_product_attention

from evenmatch.vectors.linear import Linear

# How many texts of one length lie end to end, and that length.
Stretch: TypeAlias = tuple[int, int]
_MIXED = ("query", "key", "value")
# Rows of a product are filled up to a multiple of this. oneDNN makes a kernel for each number of
# rows and keeps it with its room: with one for each batch a run took a third more memory. Filling
# up costs less than a hundredth of the products, and saves making kernels.
ROWS = 16


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
        self.mixed = Linear(weight, bias)  # queries, keys and values in one product
        self.attention = _added(shape, own.below("attention.output"))
        self.inner = _linear(own.below("intermediate.dense"))
        self.output = _added(shape, own.below("output"))

    def forward(self, states: Tensor, stretches: Sequence[Stretch], seen: Tensor | None) -> Tensor:
        """The states one block higher; what is not `seen` is not attended to."""
        found = self._attended(self.mixed(states), stretches, seen)
        states = _add(self.attention, found, states)
        return _add(self.output, self.inner.bent(states), states)

    def _attended(self, mixed: Tensor, stretches: Sequence[Stretch], seen: Tensor | None) -> Tensor:
        """What each piece takes from the pieces of its own text."""
        found = mixed.new_zeros((mixed.shape[0], mixed.shape[1] // 3))
        stop = 0
        for texts, pieces in stretches:
            start, stop = stop, stop + texts * pieces
            split = mixed[start:stop].view(texts, pieces, 3, self.heads, -1)
            queries, keys, values = split.permute(2, 0, 3, 1, 4).unbind(0)
            taken = scaled_dot_product_attention(queries, keys, values, attn_mask=seen)
            found[start:stop].view(texts, pieces, self.heads, -1).copy_(taken.transpose(1, 2))
        return found


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

    def lay_out(self) -> None:
        """Make products faster, once the model is where it stays."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.lay_out()

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor | None = None,
        lengths: Sequence[int] | None = None,
    ) -> SimpleNamespace:
        """The states that the last block gives, one row for each piece of `ids` in turn.

        `lengths` are those of texts that lie end to end in `ids`; without, each row is a text. Rows
        that follow the last piece fill up, and mean nothing.
        """
        if lengths is None:
            stretches: list[Stretch] = [(ids.shape[0], ids.shape[1])]
        else:
            stretches = [(len(list(same)), length) for length, same in groupby(lengths)]
        seen = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
        places = [torch.arange(n, device=ids.device).repeat(texts) for texts, n in stretches]
        found = embedding(ids.reshape(-1), self.words) + self.kinds[0]
        found.add_(embedding(torch.cat(places), self.places))
        states = self.norm_of_embeddings(pad(found, (0, 0, 0, -len(found) % ROWS)))
        for block in self.blocks:
            states = block(states, stretches, seen)
        return SimpleNamespace(last_hidden_state=states)


def _added(shape: Shape, own: Weights) -> nn.ModuleDict:
    """A product whose outcome is added to what was there, and the norm of the sum."""
    norm = _norm(shape, own.below("LayerNorm"))
    return nn.ModuleDict({"dense": _linear(own.below("dense")), "LayerNorm": norm})


def _add(part: nn.ModuleDict, found: Tensor, before: Tensor) -> Tensor:
    dense = part["dense"]
    assert isinstance(dense, Linear)
    added: Tensor = part["LayerNorm"](dense.added(found, before))
    return added


def _norm(shape: Shape, own: Weights) -> nn.LayerNorm:
    made = nn.LayerNorm(shape.hidden_size, eps=shape.layer_norm_eps)
    made.weight, made.bias = nn.Parameter(own["weight"]), nn.Parameter(own["bias"])
    return made


def _linear(own: Weights) -> Linear:
    return Linear(own["weight"], own["bias"])
