"""The forward passes of BERT and its relatives in plain torch, on packed texts.

Importing transformers' models takes about five seconds, most of the time of a first score. The
default model is a BERT. For it this module loads in a third of transformers' time and runs in five
sixths of it. `Bert` also covers models that differ from BERT only in the names of their weights, in
their positions or in their embeddings (RoBERTa, XLM-R, CamemBERT, ELECTRA, DistilBERT, MPNet);
`ModernBert` has blocks of its own. Checkpoints that differ in any other way are left to
transformers (see `loading.load_packed_model`).

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

import math
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

# Weights in single precision, by the names under which transformers saves them.
Weights: TypeAlias = Mapping[str, Tensor]

# The rows of a product are padded to a multiple of this. oneDNN compiles a kernel for each number
# of rows and keeps it with its buffers: with one for each batch, a run took a third more memory.
# The padding costs less than a hundredth of the products and saves compiling kernels.
ROW_MULTIPLE = 16

_PROJECTIONS = ("query", "key", "value")
_FARTHEST = 128  # tokens; MPNet treats all larger distances alike
_MKLDNN: Any = torch.ops.mkldnn  # its operators are looked up at their first use
_TOLERANCE = 1e-4  # allows for sums in another order, and for nothing else


@dataclass(frozen=True, slots=True)
class BertConfig:
    """The settings that cannot be read from the weights, named as in config.json."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    layer_norm_eps: float
    model_type: str = "bert"  # of the blocks, which other families share
    # RoBERTa counts positions from `pad_token_id + 1` and skips padding tokens; None counts from 0.
    pad_token_id: int | None = None


def build_model(settings: Mapping[str, Any], weights: Weights) -> nn.Module | None:
    """Build the model in evaluation mode; None if its sizes do not fit, KeyError if one is missing.

    `settings` and `weights` have the names of BERT (or of ModernBERT).
    """
    modern = settings["model_type"] == "modernbert"
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "layer_norm_eps")
    padding = settings["pad_token_id"] if "positions" in settings else None
    kind = "modernbert" if modern else "bert"
    sizes = {name: settings[name] for name in names}
    config = BertConfig(**sizes, model_type=kind, pad_token_id=padding)
    output = "layers.0.mlp.Wo.weight" if modern else "encoder.layer.0.output.dense.weight"
    width = weights[output].shape[0]
    if width != config.hidden_size or width % config.num_attention_heads:
        return None
    if not modern:
        return Bert(config, weights).eval()
    layers = _modern_layers(settings)
    return ModernBert(config, layers, weights).eval() if layers else None


class Bert(nn.Module):
    """Embeddings and blocks; called like a transformers model, as far as scoring needs it."""

    def __init__(self, config: BertConfig, weights: Weights) -> None:
        nn.Module.__init__(self)
        self.config = config
        embeddings = _submodule(weights, "embeddings")
        self.word_embeddings = nn.Parameter(embeddings["word_embeddings.weight"])
        self.position_embeddings = nn.Parameter(embeddings["position_embeddings.weight"])
        # not in DistilBERT and MPNet
        self.token_type_embeddings = _make_optional(embeddings.get("token_type_embeddings.weight"))
        self.embedding_norm = _make_layer_norm(config, _submodule(embeddings, "LayerNorm"))
        self.projection: PackedLinear | None = None
        if "embeddings_project.weight" in weights:  # ELECTRA's embeddings may be narrower
            self.projection = _make_linear(_submodule(weights, "embeddings_project"))
        # only in MPNet
        self.relative_bias = _make_optional(weights.get("encoder.relative_attention_bias.weight"))
        layers = (
            _submodule(weights, f"encoder.layer.{n}") for n in range(config.num_hidden_layers)
        )
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
        segments = _segments(ids, lengths)
        flat = ids.reshape(-1)
        embedded = embedding(flat, self.word_embeddings)
        if self.token_type_embeddings is not None:
            embedded.add_(self.token_type_embeddings[0])
        embedded.add_(embedding(self._positions(flat, segments), self.position_embeddings))
        states = self.embedding_norm(_fill_rows(embedded))
        if self.projection is not None:
            states = self.projection(states)
        masks = [self._mask(length, attention_mask) for _, length in segments]
        for block in self.blocks:
            states = block(states, segments, masks)
        return SimpleNamespace(last_hidden_state=states)

    def _positions(self, flat: Tensor, segments: Sequence[PackedSegment]) -> Tensor:
        """The position of every token in its text."""
        padding = self.config.pad_token_id
        if padding is None:
            return torch.cat(
                [torch.arange(n, device=flat.device).repeat(texts) for texts, n in segments]
            )
        found, stop = [], 0
        for texts, length in segments:
            start, stop = stop, stop + texts * length
            real = flat[start:stop].view(texts, length) != padding
            found.append((real.cumsum(1) * real + padding).view(-1))
        return torch.cat(found)

    def _mask(self, length: int, attention_mask: Tensor | None) -> Tensor | None:
        """What is added to attention scores (MPNet), or which tokens are attended to."""
        seen = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
        if self.relative_bias is None:
            return seen
        bias = self.relative_bias[_relative_buckets(length, self.relative_bias)]
        bias = bias.permute(2, 0, 1)[None]
        return bias if seen is None else bias.masked_fill(~seen, -torch.inf)


def _segments(ids: Tensor, lengths: Sequence[int] | None) -> list[PackedSegment]:
    if lengths is None:
        return [(ids.shape[0], ids.shape[1])]
    return [(len(list(same)), length) for length, same in groupby(lengths)]


def _fill_rows(states: Tensor) -> Tensor:
    return pad(states, (0, 0, 0, -len(states) % ROW_MULTIPLE))


def _relative_buckets(length: int, table: Tensor) -> Tensor:
    """MPNet's bucket of every pair of positions: exact when near, logarithmic up to 128 tokens."""
    place = torch.arange(length, device=table.device)
    distance = place[:, None] - place[None, :]
    half = len(table) // 2
    exact = half // 2
    away = distance.abs()
    scale = (half - exact) / math.log(_FARTHEST / exact)
    far = exact + (torch.log(away.float() / exact) * scale).long()
    near = torch.where(away < exact, away, far.clamp(max=half - 1))
    return near + (distance < 0) * half


class BertBlock(nn.Module):
    """Self-attention and a feed-forward layer, each followed by a residual sum and a layer norm."""

    def __init__(self, config: BertConfig, weights: Weights) -> None:
        nn.Module.__init__(self)
        self.num_heads = config.num_attention_heads
        parts = [_submodule(weights, f"attention.self.{name}") for name in _PROJECTIONS]
        weight, bias = (torch.cat([part[kind] for part in parts]) for kind in ("weight", "bias"))
        self.query_key_value = PackedLinear(weight, bias)  # queries, keys and values in one product
        self.attention_output = _make_residual(config, _submodule(weights, "attention.output"))
        self.intermediate = _make_linear(_submodule(weights, "intermediate.dense"))
        self.output = _make_residual(config, _submodule(weights, "output"))

    def forward(
        self, states: Tensor, segments: Sequence[PackedSegment], masks: Sequence[Tensor | None]
    ) -> Tensor:
        """Return the hidden states after this block; masked tokens are not attended to."""
        attended = _attend(self.query_key_value(states), self.num_heads, segments, masks)
        states = _apply_residual(self.attention_output, attended, states)
        return _apply_residual(self.output, self.intermediate(states, "gelu"), states)


def _attend(
    projected: Tensor,
    num_heads: int,
    segments: Sequence[PackedSegment],
    masks: Sequence[Tensor | None],
    rotation: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Attend from each token to the tokens of its own text, segment by segment.

    `rotation` holds the cosines and sines of rotary positions.
    """
    attended = projected.new_zeros((projected.shape[0], projected.shape[1] // 3))
    stop = 0
    for (texts, length), mask in zip(segments, masks, strict=True):
        start, stop = stop, stop + texts * length
        split = projected[start:stop].view(texts, length, 3, num_heads, -1)
        queries, keys, values = split.permute(2, 0, 3, 1, 4).unbind(0)
        if rotation is not None:
            queries, keys = (_rotate(part, rotation, length) for part in (queries, keys))
        heads = scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        target = attended[start:stop].view(texts, length, num_heads, -1)
        target.copy_(heads.transpose(1, 2))
    return attended


def _make_residual(config: BertConfig, weights: Weights) -> nn.ModuleDict:
    """A linear layer whose output is added to the residual, and the layer norm of the sum."""
    norm = _make_layer_norm(config, _submodule(weights, "LayerNorm"))
    return nn.ModuleDict({"dense": _make_linear(_submodule(weights, "dense")), "LayerNorm": norm})


def _apply_residual(part: nn.ModuleDict, states: Tensor, residual: Tensor) -> Tensor:
    dense = part["dense"]
    assert isinstance(dense, PackedLinear)
    normed: Tensor = part["LayerNorm"](dense.forward_residual(states, residual))
    return normed


def _make_layer_norm(config: BertConfig, weights: Weights) -> nn.LayerNorm:
    weight = weights["weight"]
    norm = nn.LayerNorm(len(weight), eps=config.layer_norm_eps, bias="bias" in weights)
    norm.load_state_dict(dict(weights))
    return norm


def _make_optional(weight: Tensor | None) -> nn.Parameter | None:
    return None if weight is None else nn.Parameter(weight)


def _make_linear(weights: Weights) -> PackedLinear:
    return PackedLinear(weights["weight"], weights.get("bias"))


def _submodule(weights: Weights, name: str) -> Weights:
    prefix = f"{name}."
    return {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)}


@dataclass(frozen=True, slots=True)
class ModernAttention:
    """How a layer of ModernBERT attends: the base of its rotary positions, and how far it sees."""

    theta: float
    window: int | None = None  # tokens to either side; None for all


class ModernBert(nn.Module):
    """Pre-norm blocks with rotary positions, gated feed-forward layers and local attention."""

    def __init__(
        self, config: BertConfig, layers: Sequence[ModernAttention], weights: Weights
    ) -> None:
        nn.Module.__init__(self)
        self.config = config
        self.layers = tuple(layers)
        self.word_embeddings = nn.Parameter(weights["embeddings.tok_embeddings.weight"])
        self.embedding_norm = _make_layer_norm(config, _submodule(weights, "embeddings.norm"))
        self.blocks = nn.ModuleList(
            ModernBertBlock(config, _submodule(weights, f"layers.{n}"), layer)
            for n, layer in enumerate(layers)
        )
        self.final_norm = _make_layer_norm(config, _submodule(weights, "final_norm"))

    prepack = Bert.prepack

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor | None = None,
        lengths: Sequence[int] | None = None,
    ) -> SimpleNamespace:
        """Return the normalised hidden states of the last block, as `Bert.forward` does."""
        segments = _segments(ids, lengths)
        embedded = embedding(ids.reshape(-1), self.word_embeddings)
        states = self.embedding_norm(_fill_rows(embedded))
        longest = max(length for _, length in segments)
        size = self.config.hidden_size // self.config.num_attention_heads
        shared = {
            layer: (
                [_local_mask(length, layer.window, attention_mask, ids) for _, length in segments],
                _rotation(longest, size, layer.theta, ids.device),
            )
            for layer in set(self.layers)
        }
        for block in self.blocks:
            states = block(states, segments, shared)
        return SimpleNamespace(last_hidden_state=self.final_norm(states))


def _local_mask(
    length: int, window: int | None, attention_mask: Tensor | None, ids: Tensor
) -> Tensor | None:
    """Which tokens are attended to: real ones, and within the window if there is one."""
    seen = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
    if window is None or length <= window + 1:
        return seen
    place = torch.arange(length, device=ids.device)
    near = (place[:, None] - place[None, :]).abs() <= window
    return near if seen is None else near & seen


class ModernBertBlock(nn.Module):
    """Self-attention and a gated feed-forward layer, each preceded by a layer norm."""

    def __init__(self, config: BertConfig, weights: Weights, layer: ModernAttention) -> None:
        nn.Module.__init__(self)
        self.layer = layer
        self.num_heads = config.num_attention_heads
        # The first block has no norm here: the embeddings are already normalised.
        self.attention_norm: nn.Module = nn.Identity()
        if "attn_norm.weight" in weights:
            self.attention_norm = _make_layer_norm(config, _submodule(weights, "attn_norm"))
        self.query_key_value = _make_linear(_submodule(weights, "attn.Wqkv"))
        self.attention_output = _make_linear(_submodule(weights, "attn.Wo"))
        self.feed_forward_norm = _make_layer_norm(config, _submodule(weights, "mlp_norm"))
        self.intermediate = _make_linear(_submodule(weights, "mlp.Wi"))
        self.output = _make_linear(_submodule(weights, "mlp.Wo"))

    def forward(
        self,
        states: Tensor,
        segments: Sequence[PackedSegment],
        shared: Mapping[ModernAttention, tuple[Sequence[Tensor | None], tuple[Tensor, Tensor]]],
    ) -> Tensor:
        """Return the hidden states after this block."""
        masks, rotation = shared[self.layer]
        projected = self.query_key_value(self.attention_norm(states))
        attended = _attend(projected, self.num_heads, segments, masks, rotation)
        states = self.attention_output.forward_residual(attended, states)
        inner, gate = self.intermediate(self.feed_forward_norm(states)).chunk(2, dim=-1)
        return self.output.forward_residual(gelu(inner) * gate, states)


def _modern_layers(settings: Mapping[str, Any]) -> tuple[ModernAttention, ...]:
    """The attention of each layer; empty if positions are scaled, which transformers handles."""
    every = settings.get("global_attn_every_n_layers", 3)
    kinds = settings.get("layer_types") or [
        "sliding_attention" if n % every else "full_attention"
        for n in range(settings["num_hidden_layers"])
    ]
    older = {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"}
    rope = settings.get("rope_parameters") or {
        kind: {"rope_theta": settings[name]} for kind, name in older.items()
    }
    if settings.get("rope_scaling") or any(
        rope[kind].get("rope_type", "default") != "default" for kind in set(kinds)
    ):
        return ()
    windows = {"full_attention": None, "sliding_attention": settings["local_attention"] // 2}
    return tuple(ModernAttention(rope[kind]["rope_theta"], windows[kind]) for kind in kinds)


def _rotation(length: int, size: int, theta: float, device: Any) -> tuple[Tensor, Tensor]:
    """Cosines and sines of rotary positions, (length, size) each."""
    frequencies = 1.0 / theta ** (torch.arange(0, size, 2, device=device).float() / size)
    angles = torch.arange(length, device=device).float()[:, None] * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def _rotate(part: Tensor, rotation: tuple[Tensor, Tensor], length: int) -> Tensor:
    cosines, sines = (each[:length] for each in rotation)
    first, second = part.chunk(2, dim=-1)
    return part * cosines + torch.cat((-second, first), dim=-1) * sines


class PackedLinear(nn.Module):
    """Linear layer whose weights can be prepacked for oneDNN; it is called the same either way."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        nn.Module.__init__(self)
        self.weight = nn.Parameter(weight)
        self.bias = _make_optional(bias)
        self._packed_weight: Tensor | None = None

    def prepack(self) -> None:
        """Prepack the weights on a CPU; afterwards the layer cannot be moved to another device."""
        if self.weight.device.type == "cpu" and _can_pack():
            self._packed_weight = _MKLDNN._reorder_linear_weight(self.weight.detach())
            # The packed weights are a copy; a large model must not be in memory twice.
            self.weight = nn.Parameter(self.weight.new_empty(0), requires_grad=False)

    def forward(self, states: Tensor, activation: str = "none") -> Tensor:
        """Linear layer, followed by GELU if `activation` is 'gelu'."""
        if self._packed_weight is not None:
            return _packed_linear(states, self._packed_weight, self.bias, activation)
        product = linear(states, self.weight, self.bias)
        return gelu(product) if activation == "gelu" else product

    def forward_residual(self, states: Tensor, residual: Tensor) -> Tensor:
        """Linear layer plus a residual."""
        if self._packed_weight is None:
            return linear(states, self.weight, self.bias).add_(residual)
        sums: Tensor = _MKLDNN._linear_pointwise.binary(
            states, residual, self._packed_weight, self.bias, "add"
        )
        return sums


def _packed_linear(states: Tensor, packed: Tensor, bias: Tensor | None, activation: str) -> Tensor:
    result: Tensor = _MKLDNN._linear_pointwise(states, packed, bias, activation, [], "none")
    return result


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
            packed._packed_weight = _MKLDNN._reorder_linear_weight(weight)
            both = [
                (one(states), one(states, "gelu"), one.forward_residual(states, residual))
                for one in (plain, packed)
            ]
    except (AttributeError, RuntimeError, TypeError):
        return False
    return all(torch.allclose(a, b, atol=_TOLERANCE) for a, b in zip(*both, strict=True))
