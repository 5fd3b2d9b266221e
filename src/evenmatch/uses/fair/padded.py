"""Rows of different lengths as one table, for passes through a model that is trained through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenmatch.types import Array


def padded(rows: Sequence[Array], device: Any, filler: int = 0) -> Any:
    """The rows as a tensor, filled up on the right."""
    import torch

    table = np.full((len(rows), max(map(len, rows))), filler, dtype=np.int64)
    for place, row in zip(table, rows, strict=True):
        place[: len(row)] = row
    return torch.from_numpy(table).to(device)


def there(rows: Sequence[Array], device: Any) -> Any:
    """1 where the table of these rows has what they hold, 0 where it was filled up."""
    return padded([np.ones(len(row), dtype=np.int64) for row in rows], device)
