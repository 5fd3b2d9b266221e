"""BERT's blocks in plain torch: loaded in a third of transformers' time, run in five sixths of it.

Importing the models of transformers takes some five seconds, which is most of what a first score
takes. The embedded model is a BERT, and so are many others; whatever differs from the plain form in
any way is left to transformers. All but attention looks at one piece at a time, so texts of several
lengths lie end to end in one row: products are as large as a batch, and nothing is padded. Imports
torch, so it is imported late.

A linear map whose weights are laid out once for the processor's matrix library.

torch hands products of single precision to MKL, which lays the weights out anew each time. oneDNN,
which torch carries too, takes them as it wants them, and bends or adds on the way: measured here it
is a tenth faster on BERT's shapes. Where torch has it not, torch's own product does the work.
Imports torch, so it is imported late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from types import SimpleNamespace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu, linear, pad, scaled_dot_product_attention

# How many texts of one length lie end to end, and that length.
PackedSegment: TypeAlias = tuple[int, int]


_PROJECTIONS = ("query", "key", "value")


# Rows of a product are filled up to a multiple of this. oneDNN makes a kernel for each number of
# rows and keeps it with its room: with one for each batch a run took a third more memory. Filling
# up costs less than a hundredth of the products, and saves making kernels.
ROW_MULTIPLE = 16


@dataclass(frozen=True, slots=True)
class BertConfig:
    """What a model's weights do not say of it, under the names of its config.json."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    layer_norm_eps: float
    model_type: str = "bert"


@dataclass(frozen=True, slots=True)
class BertWeights:
    """A model's weights by the names that transformers saves them by, below `place`.

    One that is not there is a KeyError.
    """

    tensors: Mapping[str, Tensor]
    prefix: str = ""

    def submodule(self, place: str) -> BertWeights:
        """Those of one part."""
        return BertWeights(self.tensors, f"{self.prefix}{place}.")

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[f"{self.prefix}{name}"].float()


def matches_config(shape: BertConfig, own: BertWeights) -> bool:
    """Whether weights are of the width that a shape tells, and the heads share it evenly."""
    width = own["embeddings.word_embeddings.weight"].shape[-1]
    return width == shape.hidden_size and width % shape.num_attention_heads == 0


class BertBlock(nn.Module):
    """Attention and a feed-forward part, each added to what it was given and normed."""

    def __init__(self, shape: BertConfig, own: BertWeights) -> None:
        nn.Module.__init__(self)
        self.num_heads = shape.num_attention_heads
        each = [own.submodule(f"attention.self.{name}") for name in _PROJECTIONS]
        weight, bias = (torch.cat([one[kind] for one in each]) for kind in ("weight", "bias"))
        self.query_key_value = PackedLinear(weight, bias)  # queries, keys and values in one product
        self.attention_output = _make_residual(shape, own.submodule("attention.output"))
        self.intermediate = _make_linear(own.submodule("intermediate.dense"))
        self.output = _make_residual(shape, own.submodule("output"))

    def forward(
        self, states: Tensor, stretches: Sequence[PackedSegment], seen: Tensor | None
    ) -> Tensor:
        """The states one block higher; what is not `seen` is not attended to."""
        found = self._attend(self.query_key_value(states), stretches, seen)
        states = _apply_residual(self.attention_output, found, states)
        return _apply_residual(self.output, self.intermediate.forward_gelu(states), states)

    def _attend(
        self, mixed: Tensor, stretches: Sequence[PackedSegment], seen: Tensor | None
    ) -> Tensor:
        """What each piece takes from the pieces of its own text."""
        found = mixed.new_zeros((mixed.shape[0], mixed.shape[1] // 3))
        stop = 0
        for texts, pieces in stretches:
            start, stop = stop, stop + texts * pieces
            split = mixed[start:stop].view(texts, pieces, 3, self.num_heads, -1)
            queries, keys, values = split.permute(2, 0, 3, 1, 4).unbind(0)
            taken = scaled_dot_product_attention(queries, keys, values, attn_mask=seen)
            found[start:stop].view(texts, pieces, self.num_heads, -1).copy_(taken.transpose(1, 2))
        return found


class Bert(nn.Module):
    """Embeddings and blocks; called as a model of transformers is, as far as scores need it."""

    def __init__(self, shape: BertConfig, own: BertWeights) -> None:
        nn.Module.__init__(self)
        self.config = shape
        below = own.submodule("embeddings")
        self.word_embeddings = nn.Parameter(below["word_embeddings.weight"])
        self.token_type_embeddings = nn.Parameter(below["token_type_embeddings.weight"])
        self.position_embeddings = nn.Parameter(below["position_embeddings.weight"])
        self.embedding_norm = _make_layer_norm(shape, below.submodule("LayerNorm"))
        layers = (own.submodule(f"encoder.layer.{n}") for n in range(shape.num_hidden_layers))
        self.blocks = nn.ModuleList(BertBlock(shape, layer) for layer in layers)

    def prepack(self) -> None:
        """Make products faster, once the model is where it stays."""
        for module in self.modules():
            if isinstance(module, PackedLinear):
                module.prepack()

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
            stretches: list[PackedSegment] = [(ids.shape[0], ids.shape[1])]
        else:
            stretches = [(len(list(same)), length) for length, same in groupby(lengths)]
        seen = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
        places = [torch.arange(n, device=ids.device).repeat(texts) for texts, n in stretches]
        found = embedding(ids.reshape(-1), self.word_embeddings) + self.token_type_embeddings[0]
        found.add_(embedding(torch.cat(places), self.position_embeddings))
        states = self.embedding_norm(pad(found, (0, 0, 0, -len(found) % ROW_MULTIPLE)))
        for block in self.blocks:
            states = block(states, stretches, seen)
        return SimpleNamespace(last_hidden_state=states)


def _make_residual(shape: BertConfig, own: BertWeights) -> nn.ModuleDict:
    """A product whose outcome is added to what was there, and the norm of the sum."""
    norm = _make_layer_norm(shape, own.submodule("LayerNorm"))
    return nn.ModuleDict({"dense": _make_linear(own.submodule("dense")), "LayerNorm": norm})


def _apply_residual(part: nn.ModuleDict, found: Tensor, before: Tensor) -> Tensor:
    dense = part["dense"]
    assert isinstance(dense, PackedLinear)
    added: Tensor = part["LayerNorm"](dense.forward_residual(found, before))
    return added


def _make_layer_norm(shape: BertConfig, own: BertWeights) -> nn.LayerNorm:
    made = nn.LayerNorm(shape.hidden_size, eps=shape.layer_norm_eps)
    made.weight, made.bias = nn.Parameter(own["weight"]), nn.Parameter(own["bias"])
    return made


def _make_linear(own: BertWeights) -> PackedLinear:
    return PackedLinear(own["weight"], own["bias"])


_TOLERANCE = 1e-4  # what sums in another order may differ by, and nothing else


class PackedLinear(nn.Module):
    """Weights and a bias; the same to call before and after they are laid out."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        nn.Module.__init__(self)
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self._packed_weight: Tensor | None = None

    def prepack(self) -> None:
        """To be called where the weights will stay: what has been laid out cannot be moved."""
        if self.weight.device.type == "cpu" and _can_pack():
            self._packed_weight = _pack_weight(self.weight.detach())
            # What has been laid out is a copy; a large model must not be held twice.
            self.weight = nn.Parameter(self.weight.new_empty(0), requires_grad=False)

    def forward(self, states: Tensor) -> Tensor:
        """The product and its bias."""
        if self._packed_weight is None:
            return linear(states, self.weight, self.bias)
        return _packed_linear(states, self._packed_weight, self.bias, "none")

    def forward_gelu(self, states: Tensor) -> Tensor:
        """GELU of the same."""
        if self._packed_weight is None:
            return gelu(linear(states, self.weight, self.bias))
        return _packed_linear(states, self._packed_weight, self.bias, "gelu")

    def forward_residual(self, states: Tensor, to: Tensor) -> Tensor:
        """The same and something that was there before."""
        if self._packed_weight is None:
            return linear(states, self.weight, self.bias).add_(to)
        sums: Tensor = _mkldnn_operators()._linear_pointwise.binary(
            states, to, self._packed_weight, self.bias, "add"
        )
        return sums


def _packed_linear(states: Tensor, laid: Tensor, bias: Tensor, then: str) -> Tensor:
    found: Tensor = _mkldnn_operators()._linear_pointwise(states, laid, bias, then, [], "none")
    return found


def _pack_weight(weight: Tensor) -> Tensor:
    laid: Tensor = _mkldnn_operators()._reorder_linear_weight(weight)
    return laid


def _mkldnn_operators() -> Any:
    return torch.ops.mkldnn


@cache
def _can_pack() -> bool:
    """Whether this torch has the operators, and they give what its ordinary product gives.

    They are its compiler's own and none that it promises to keep, so they are tried first.
    """
    draw = torch.Generator().manual_seed(0)
    states, weight, bias = (torch.randn(n, generator=draw) for n in ((5, 32), (48, 32), (48,)))
    before = torch.randn((5, 48), generator=draw)
    plain, tried = PackedLinear(weight, bias), PackedLinear(weight, bias)
    try:
        with torch.inference_mode():
            tried._packed_weight = _pack_weight(weight)
            both = [
                (one(states), one.forward_gelu(states), one.forward_residual(states, before))
                for one in (plain, tried)
            ]
    except (AttributeError, RuntimeError, TypeError):
        return False
    return all(torch.allclose(a, b, atol=_TOLERANCE) for a, b in zip(*both, strict=True))
