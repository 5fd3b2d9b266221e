"""The forward pass of BERT in plain torch, on packed texts.

Importing transformers' models takes about five seconds, most of the time of a first score. The
default model is a BERT, and so are many others. For those this module loads in a third of
transformers' time and runs in five sixths of it. Checkpoints that differ from plain BERT in any
way are left to transformers (see `loading.load_bert`).

Two ideas:

- Packing (`Bert`, `BertBlock`): apart from attention, every operation treats each token on its
  own. So texts of several lengths are concatenated into one sequence of tokens: matrix products are
  as large as the batch, and nothing is padded. Attention runs per segment of equally long texts.
- Prepacked weights (`PackedLinear`): torch passes single-precision products to MKL, which reorders
  the weights each time. oneDNN, which is part of torch, keeps them reordered and computes GELU or
  the residual sum along with the product: a tenth faster on BERT's shapes, as measured here. Where
  torch lacks these operators, the ordinary product is used.

This module imports torch, so import it late.
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

# Consecutive packed texts of one length: how many there are, and that length in tokens.
PackedSegment: TypeAlias = tuple[int, int]

# The rows of a product are padded to a multiple of this. oneDNN compiles a kernel for each number
# of rows and keeps it with its buffers: with one for each batch, a run took a third more memory.
# The padding costs less than a hundredth of the products and saves compiling kernels.
ROW_MULTIPLE = 16

_PROJECTIONS = ("query", "key", "value")
_TOLERANCE = 1e-4  # allows for sums in another order, and for nothing else


@dataclass(frozen=True, slots=True)
class BertConfig:
    """The settings that cannot be read from the weights, named as in config.json."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    layer_norm_eps: float
    model_type: str = "bert"


@dataclass(frozen=True, slots=True)
class BertWeights:
    """Weights by the names under which transformers saves them, relative to `prefix`.

    A missing weight is a KeyError.
    """

    tensors: Mapping[str, Tensor]
    prefix: str = ""

    def submodule(self, name: str) -> BertWeights:
        """Return the weights of a submodule."""
        return BertWeights(self.tensors, f"{self.prefix}{name}.")

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[f"{self.prefix}{name}"].float()


def matches_config(config: BertConfig, weights: BertWeights) -> bool:
    """Whether the weights have the configured hidden size, and the heads divide it evenly."""
    width = weights["embeddings.word_embeddings.weight"].shape[-1]
    return width == config.hidden_size and width % config.num_attention_heads == 0


class Bert(nn.Module):
    """Embeddings and blocks; called like a transformers model, as far as scoring needs it."""

    def __init__(self, config: BertConfig, weights: BertWeights) -> None:
        nn.Module.__init__(self)
        self.config = config
        embeddings = weights.submodule("embeddings")
        self.word_embeddings = nn.Parameter(embeddings["word_embeddings.weight"])
        self.token_type_embeddings = nn.Parameter(embeddings["token_type_embeddings.weight"])
        self.position_embeddings = nn.Parameter(embeddings["position_embeddings.weight"])
        self.embedding_norm = _make_layer_norm(config, embeddings.submodule("LayerNorm"))
        layers = (weights.submodule(f"encoder.layer.{n}") for n in range(config.num_hidden_layers))
        self.blocks = nn.ModuleList(BertBlock(config, layer) for layer in layers)

    def prepack(self) -> None:
        """Prepack the weights of all linear layers; call it once the model is on its device."""
        for module in self.modules():
            if isinstance(module, PackedLinear):
                module.prepack()

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor | None = None,
        lengths: Sequence[int] | None = None,
    ) -> SimpleNamespace:
        """Return the hidden states of the last block, one row per token of `ids` in order.

        `lengths` are the lengths of texts packed into a flat `ids`; without it, each row of `ids`
        is a text. Rows after the last token are padding (see `ROW_MULTIPLE`).
        """
        if lengths is None:
            segments: list[PackedSegment] = [(ids.shape[0], ids.shape[1])]
        else:
            segments = [(len(list(same)), length) for length, same in groupby(lengths)]
        mask = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
        positions = [torch.arange(n, device=ids.device).repeat(texts) for texts, n in segments]
        embedded = embedding(ids.reshape(-1), self.word_embeddings) + self.token_type_embeddings[0]
        embedded.add_(embedding(torch.cat(positions), self.position_embeddings))
        states = self.embedding_norm(pad(embedded, (0, 0, 0, -len(embedded) % ROW_MULTIPLE)))
        for block in self.blocks:
            states = block(states, segments, mask)
        return SimpleNamespace(last_hidden_state=states)


class BertBlock(nn.Module):
    """Self-attention and a feed-forward layer, each followed by a residual sum and a layer norm."""

    def __init__(self, config: BertConfig, weights: BertWeights) -> None:
        nn.Module.__init__(self)
        self.num_heads = config.num_attention_heads
        parts = [weights.submodule(f"attention.self.{name}") for name in _PROJECTIONS]
        weight, bias = (torch.cat([part[kind] for part in parts]) for kind in ("weight", "bias"))
        self.query_key_value = PackedLinear(weight, bias)  # queries, keys and values in one product
        self.attention_output = _make_residual(config, weights.submodule("attention.output"))
        self.intermediate = _make_linear(weights.submodule("intermediate.dense"))
        self.output = _make_residual(config, weights.submodule("output"))

    def forward(
        self, states: Tensor, segments: Sequence[PackedSegment], mask: Tensor | None
    ) -> Tensor:
        """Return the hidden states after this block; masked tokens are not attended to."""
        attended = self._attend(self.query_key_value(states), segments, mask)
        states = _apply_residual(self.attention_output, attended, states)
        return _apply_residual(self.output, self.intermediate.forward_gelu(states), states)

    def _attend(
        self, projected: Tensor, segments: Sequence[PackedSegment], mask: Tensor | None
    ) -> Tensor:
        """Attend from each token to the tokens of its own text, segment by segment."""
        attended = projected.new_zeros((projected.shape[0], projected.shape[1] // 3))
        stop = 0
        for texts, length in segments:
            start, stop = stop, stop + texts * length
            split = projected[start:stop].view(texts, length, 3, self.num_heads, -1)
            queries, keys, values = split.permute(2, 0, 3, 1, 4).unbind(0)
            heads = scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
            target = attended[start:stop].view(texts, length, self.num_heads, -1)
            target.copy_(heads.transpose(1, 2))
        return attended


def _make_residual(config: BertConfig, weights: BertWeights) -> nn.ModuleDict:
    """A linear layer whose output is added to the residual, and the layer norm of the sum."""
    norm = _make_layer_norm(config, weights.submodule("LayerNorm"))
    return nn.ModuleDict({"dense": _make_linear(weights.submodule("dense")), "LayerNorm": norm})


def _apply_residual(part: nn.ModuleDict, states: Tensor, residual: Tensor) -> Tensor:
    dense = part["dense"]
    assert isinstance(dense, PackedLinear)
    normed: Tensor = part["LayerNorm"](dense.forward_residual(states, residual))
    return normed


def _make_layer_norm(config: BertConfig, weights: BertWeights) -> nn.LayerNorm:
    norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
    norm.weight, norm.bias = nn.Parameter(weights["weight"]), nn.Parameter(weights["bias"])
    return norm


def _make_linear(weights: BertWeights) -> PackedLinear:
    return PackedLinear(weights["weight"], weights["bias"])


class PackedLinear(nn.Module):
    """Linear layer whose weights can be prepacked for oneDNN; it is called the same either way."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        nn.Module.__init__(self)
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self._packed_weight: Tensor | None = None

    def prepack(self) -> None:
        """Prepack the weights on a CPU; afterwards the layer cannot be moved to another device."""
        if self.weight.device.type == "cpu" and _can_pack():
            self._packed_weight = _pack_weight(self.weight.detach())
            # The packed weights are a copy; a large model must not be in memory twice.
            self.weight = nn.Parameter(self.weight.new_empty(0), requires_grad=False)

    def forward(self, states: Tensor) -> Tensor:
        """Linear layer: product plus bias."""
        if self._packed_weight is None:
            return linear(states, self.weight, self.bias)
        return _packed_linear(states, self._packed_weight, self.bias, "none")

    def forward_gelu(self, states: Tensor) -> Tensor:
        """Linear layer followed by GELU."""
        if self._packed_weight is None:
            return gelu(linear(states, self.weight, self.bias))
        return _packed_linear(states, self._packed_weight, self.bias, "gelu")

    def forward_residual(self, states: Tensor, residual: Tensor) -> Tensor:
        """Linear layer plus a residual."""
        if self._packed_weight is None:
            return linear(states, self.weight, self.bias).add_(residual)
        sums: Tensor = _mkldnn_operators()._linear_pointwise.binary(
            states, residual, self._packed_weight, self.bias, "add"
        )
        return sums


def _packed_linear(states: Tensor, packed: Tensor, bias: Tensor, activation: str) -> Tensor:
    operator = _mkldnn_operators()._linear_pointwise
    result: Tensor = operator(states, packed, bias, activation, [], "none")
    return result


def _pack_weight(weight: Tensor) -> Tensor:
    packed: Tensor = _mkldnn_operators()._reorder_linear_weight(weight)
    return packed


def _mkldnn_operators() -> Any:
    return torch.ops.mkldnn


@cache
def _can_pack() -> bool:
    """Whether this torch has the oneDNN operators, and they agree with its ordinary product.

    They belong to torch's compiler and are not a stable API, so they are tested before use.
    """
    generator = torch.Generator().manual_seed(0)
    states, weight, bias = (torch.randn(n, generator=generator) for n in ((5, 32), (48, 32), (48,)))
    residual = torch.randn((5, 48), generator=generator)
    plain, packed = PackedLinear(weight, bias), PackedLinear(weight, bias)
    try:
        with torch.inference_mode():
            packed._packed_weight = _pack_weight(weight)
            both = [
                (one(states), one.forward_gelu(states), one.forward_residual(states, residual))
                for one in (plain, packed)
            ]
    except (AttributeError, RuntimeError, TypeError):
        return False
    return all(torch.allclose(a, b, atol=_TOLERANCE) for a, b in zip(*both, strict=True))
