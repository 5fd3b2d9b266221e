"""The metrics of a large run, settled before any shard goes out: specs, signatures, idf tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from evenmatch.errors import DataError, InputError
from evenmatch.registry import spec
from evenmatch.scoring.languages import warn_of_other_languages
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.shared import with_counts
from evenmatch.scoring.together import as_metric
from evenmatch.types import Metric, Pair
from evenmatch.uses.scale.loading import pairs_in
from evenmatch.uses.scale.shards import Shard
from evenmatch.vectors.tables import load as load_table

_CONTENT = re.compile(r"sha256:[0-9a-f]{16}\b")


@dataclass(frozen=True)
class Recipes:
    """Metrics by name, and what workers need to make the same ones."""

    parts: Mapping[str, Metric]
    signatures: Mapping[str, str]

    @classmethod
    def of(cls, parts: Mapping[str, Metric]) -> Recipes:
        """Metrics by name, with the signatures they have here."""
        return cls(parts, {name: part.signature for name, part in parts.items()})

    @property
    def specs(self) -> tuple[tuple[str, str], ...]:
        """Each name with the spec that builds its metric."""
        return tuple((name, spec(part)) for name, part in self.parts.items())

    @property
    def tables(self) -> tuple[str, ...]:
        """The idf tables that the specs name by content, as text."""
        found: list[str] = []
        for name in dict.fromkeys(_CONTENT.findall(" ".join(s for _, s in self.specs))):
            with suppress(DataError):  # models are named by content too
                found.append(load_table(name).dumps())
        return tuple(found)

    def check(self, theirs: Mapping[str, str]) -> None:
        """Refuse scores of a worker whose metrics are not these: another version, another model."""
        for name, own in self.signatures.items():
            if not theirs[name].startswith(own):
                raise DataError(
                    f"a worker computes {name} as {theirs[name]}, expected {own}; give every "
                    "worker the same evenmatch and models, and idf a table of its own"
                )


def recipes(
    names: Sequence[str], shards: Sequence[Shard], load: Callable[[Shard], bytes]
) -> Recipes:
    """The metrics of these names; idf is counted over the whole input first, where asked."""
    if not names:
        raise InputError("the list of metrics is empty; name at least one")
    parts = {name: counted(as_metric(name), _Pairs(shards, load)) for name in names}
    sample = list(_Pairs(shards[:1], load, lenient=True))
    if sample:
        warn_of_other_languages(list(parts.values()), sample)
    return Recipes.of(parts)


def counted(metric: Metric, pairs: Iterable[Pair]) -> Metric:
    """The metric with its idf counted from these pairs, where it asks for that."""
    return with_counts(metric, pairs) if isinstance(metric, AlignMetric) else metric


@dataclass(frozen=True)
class _Pairs:
    """All pairs of shards, read anew each time; `lenient` stops at the first that is none."""

    shards: Sequence[Shard]
    load: Callable[[Shard], bytes]
    lenient: bool = False

    def __iter__(self) -> Iterator[Pair]:
        errors = (InputError, DataError) if self.lenient else ()
        with suppress(*errors):
            for shard in self.shards:
                yield from pairs_in(self.load(shard), shard.cut, shard.file)
