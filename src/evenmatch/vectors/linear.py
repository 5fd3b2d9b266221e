"""A linear map whose weights are laid out once for the processor's matrix library.

torch hands products of single precision to MKL, which lays the weights out anew each time. oneDNN,
which torch carries too, takes them as it wants them, and bends or adds on the way: measured here it
is a tenth faster on BERT's shapes. Where torch has it not, torch's own product does the work.
Imports torch, so it is imported late.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

_CLOSE = 1e-4  # what sums in another order may differ by, and nothing else


class Linear(nn.Module):
    """Weights and a bias; the same to call before and after they are laid out."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        nn.Module.__init__(self)
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self._laid: Tensor | None = None

    def lay_out(self) -> None:
        """To be called where the weights will stay: what has been laid out cannot be moved."""
        if self.weight.device.type == "cpu" and _is_there():
            self._laid = _laid_out(self.weight.detach())
            # What has been laid out is a copy; a large model must not be held twice.
            self.weight = nn.Parameter(self.weight.new_empty(0), requires_grad=False)

    def forward(self, states: Tensor) -> Tensor:
        """The product and its bias."""
        if self._laid is None:
            return linear(states, self.weight, self.bias)
        return _product(states, self._laid, self.bias, "none")

    def bent(self, states: Tensor) -> Tensor:
        """GELU of the same."""
        if self._laid is None:
            return gelu(linear(states, self.weight, self.bias))
        return _product(states, self._laid, self.bias, "gelu")

    def added(self, states: Tensor, to: Tensor) -> Tensor:
        """The same and something that was there before."""
        if self._laid is None:
            return linear(states, self.weight, self.bias).add_(to)
        sums: Tensor = _operators()._linear_pointwise.binary(
            states, to, self._laid, self.bias, "add"
        )
        return sums


def _product(states: Tensor, laid: Tensor, bias: Tensor, then: str) -> Tensor:
    found: Tensor = _operators()._linear_pointwise(states, laid, bias, then, [], "none")
    return found


def _laid_out(weight: Tensor) -> Tensor:
    laid: Tensor = _operators()._reorder_linear_weight(weight)
    return laid


def _operators() -> Any:
    return torch.ops.mkldnn


@cache
def _is_there() -> bool:
    """Whether this torch has the operators, and they give what its ordinary product gives.

    They are its compiler's own and none that it promises to keep, so they are tried first.
    """
    draw = torch.Generator().manual_seed(0)
    states, weight, bias = (torch.randn(n, generator=draw) for n in ((5, 32), (48, 32), (48,)))
    before = torch.randn((5, 48), generator=draw)
    plain, tried = Linear(weight, bias), Linear(weight, bias)
    try:
        with torch.inference_mode():
            tried._laid = _laid_out(weight)
            both = [
                (one(states), one.bent(states), one.added(states, before)) for one in (plain, tried)
            ]
    except (AttributeError, RuntimeError, TypeError):
        return False
    return all(torch.allclose(a, b, atol=_CLOSE) for a, b in zip(*both, strict=True))
