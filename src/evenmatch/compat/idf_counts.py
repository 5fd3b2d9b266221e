"""bert_score's idf dictionary back into the counts it was made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from evenmatch.errors import InputError
from evenmatch.vectors.tables import Table

_CLOSE = 1e-6


def counts_of(weights: Mapping[int, float]) -> Table:
    """The table whose idf, log((N + 1) / (df + 1)), these weights are.

    Only a dictionary as bert_score's `get_idf_dict` makes it says what N was: its default is the
    weight of a piece that occurs nowhere.
    """
    if not isinstance(weights, defaultdict) or weights.default_factory is None:
        raise InputError(
            "an idf dictionary must be the one bert_score's get_idf_dict gives, with its default; "
            "or say idf=True"
        )
    total = np.exp(weights.default_factory())
    keys = np.array(sorted(weights), dtype=np.int64)
    found = np.array([weights[key] for key in keys.tolist()])
    counts = np.rint(total / np.exp(found) - 1)
    if (counts < 0).any() or not np.allclose(np.log(total / (counts + 1)), found, atol=_CLOSE):
        raise InputError(
            "the idf dictionary holds weights that are no log((N + 1) / (df + 1)); "
            "count it with get_idf_dict, or say idf=True"
        )
    return Table(round(total) - 1, keys, counts.astype(np.int64))
