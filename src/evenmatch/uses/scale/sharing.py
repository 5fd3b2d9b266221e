"""sharing_out: pairs that a program holds, scored by workers in place of its own process."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from evenmatch.errors import DataError, InputError
from evenmatch.registry import spec
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.pairs import check_pairs
from evenmatch.types import Carried, Metric, Pair, Run, Totalled
from evenmatch.uses.scale.cuts import content_name
from evenmatch.uses.scale.held import Held, PairShards
from evenmatch.uses.scale.job import Job
from evenmatch.uses.scale.keeping import Keeper, as_sent, header_of
from evenmatch.uses.scale.large import RETRIES, SHARD_ROWS
from evenmatch.uses.scale.manifest import Manifest, open_manifest
from evenmatch.uses.scale.packed import PACKED, Counted, chained, unpacked
from evenmatch.uses.scale.pool import Runner
from evenmatch.uses.scale.recipes import Recipes, counted
from evenmatch.uses.scale.shards import Shard
from evenmatch.uses.scale.worker import TRIAL


@contextmanager
def sharing_out(
    on: Runner,
    *,
    parts: str = "",
    shard_rows: int = SHARD_ROWS,
    retries: int = RETRIES,
    max_failures: int | None = None,
) -> Iterator[Sharing]:
    """What the run setting `on` takes, for as long as the block runs.

    Workers stay from one call to the next while the metrics are the same. With a folder `parts`
    finished shards are kept there, and a later run does only what is missing.
    """
    if shard_rows < 1:
        raise InputError(f"a shard holds at least 1 row, got {shard_rows}")
    with ExitStack() as stack:
        folder = parts or stack.enter_context(tempfile.TemporaryDirectory(prefix="evenmatch-"))
        held = stack.enter_context(Held(on))
        yield Sharing(held, folder, shard_rows, retries, max_failures)


@dataclass(frozen=True)
class Sharing:
    """Scores pairs by workers; a metric must have a spec, since specs travel and objects do not."""

    runner: Runner
    folder: str
    shard_rows: int
    retries: int
    max_failures: int | None

    def share_out(
        self, metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run
    ) -> list[Counted]:
        """Each metric's scores of the pairs, with counts where it has them, as a local run's."""
        check_pairs(pairs)
        named = {spec(metric): metric for metric in metrics}
        if not named:
            return []
        _check_corpus(named)
        wanted = Recipes.of({name: counted(metric, pairs) for name, metric in named.items()})
        own = self._scored(wanted, PairShards(pairs, self.shard_rows), run)
        found = {
            name: chained(metric, [part[n] for part in own])
            for n, (name, metric) in enumerate(wanted.parts.items())
        }
        return [found[spec(metric)] for metric in metrics]

    def _scored(self, wanted: Recipes, cut: PairShards, run: Run) -> list[list[Counted]]:
        """The parts of all shards, in order."""
        header, shards = header_of(wanted, PACKED, self.shard_rows, run), cut.shards()
        job = Job(wanted.specs, PACKED, as_sent(run), os.getcwd(), wanted.tables)
        with open_manifest(self._place(header, shards), header, shards, resume=True) as manifest:
            keeper = Keeper(manifest, wanted, PACKED, run, shards)
            failures = keeper.work(self.runner, job, cut.load, self.retries, self.max_failures)
            if failures:
                raise DataError(f"{len(failures)} of {len(shards)} shards failed: {failures[0]}")
            return [_part(manifest, shard) for shard in shards]

    def _place(self, header: Mapping[str, object], shards: Sequence[Shard]) -> Path:
        """A folder for these pairs and metrics alone, so that one folder serves many calls."""
        content = json.dumps([header, [shard.cut.content for shard in shards]])
        return Path(self.folder) / content_name(content.encode())


def _part(manifest: Manifest, shard: Shard) -> list[Counted]:
    return unpacked(manifest.part(shard.number, PACKED).read_bytes())


def _check_corpus(metrics: Mapping[str, Metric]) -> None:
    """Refuse what shards cannot give: a corpus score that is no function of summed counts."""
    for name, metric in metrics.items():
        if isinstance(metric, AlignMetric | Carried | Totalled):
            continue
        if metric(TRIAL).corpus is not None:
            raise InputError(
                f"the corpus score of {name} cannot be put together from shards; "
                "score it without --on"
            )
