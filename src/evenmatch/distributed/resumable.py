"""Runs in this process that continue after an interruption: `resumable_run`.

The scores of finished chunks are stored beside the output file, in the folder `FILE.partial` with a
manifest as in distributed runs. The next run with the same output file reads them instead of
scoring those chunks again. The folder is removed when the output file is complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from evenmatch.distributed.manifest import Manifest, open_manifest
from evenmatch.distributed.session import pairs_to_jsonl
from evenmatch.distributed.shards import Shard, hash_content
from evenmatch.distributed.worker import PACKED_SUFFIX, pack_scores, unpack_scores
from evenmatch.types import Pair, Scores


@contextmanager
def resumable_run(
    out: str, source: str, header: Callable[[], Mapping[str, Any]]
) -> Iterator[PartialScores]:
    """Yield the store of finished chunks of the run that writes `out`; removed on success.

    `source` names the input in messages. `header` returns the settings that must be unchanged for a
    run to be continued; it is called only if there is something to store or to continue.
    """
    folder = Path(f"{out}.partial")
    with ExitStack() as stack:
        yield PartialScores(folder, source, header, stack)
    shutil.rmtree(folder, ignore_errors=True)


class PartialScores:
    """The `ChunkStore` of a run; nothing is written before the first chunk is saved."""

    def __init__(
        self,
        folder: Path,
        source: str,
        header: Callable[[], Mapping[str, Any]],
        stack: ExitStack,
    ) -> None:
        self._folder, self._source, self._header, self._stack = folder, source, header, stack
        self._opened: Manifest | None = None
        self._count = 0
        self.resumed_rows = 0

    def load(self, first: int, pairs: Sequence[Pair]) -> list[Scores] | None:
        """Return the scores of a chunk if an earlier run stored them."""
        number, self._count = self._count, self._count + 1
        if not self._folder.exists():
            return None
        manifest = self._manifest()
        if number not in manifest.done:
            return None
        manifest.check_shard(self._shard(number, first, pairs))
        self.resumed_rows += len(pairs)
        return unpack_scores(manifest.part_path(number, PACKED_SUFFIX).read_bytes())

    def save(self, first: int, pairs: Sequence[Pair], scores: Sequence[Scores]) -> None:
        """Store the scores of the chunk that was last asked for."""
        shard = self._shard(self._count - 1, first, pairs)
        self._manifest().add_shard(shard, pack_scores(scores), {"form": PACKED_SUFFIX})

    def _manifest(self) -> Manifest:
        if self._opened is None:
            opened = open_manifest(self._folder, self._header(), None, resume=True)
            self._opened = self._stack.enter_context(opened)
        return self._opened

    def _shard(self, number: int, first: int, pairs: Sequence[Pair]) -> Shard:
        place = (first, self._source, first, len(pairs), (first, len(pairs)))
        return Shard(number, *place, hash_content(pairs_to_jsonl(pairs)))
