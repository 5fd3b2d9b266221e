"""Whether the record of a run fits what is asked now; if not, the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenmatch.errors import InputError
from evenmatch.uses.scale.shards import Shard

_WORDS = {
    "layout": "layout of the record",
    "metrics": "metrics",
    "form": "form of the scores",
    "shard_rows": "number of rows in a shard",
    "vectors": "form of the vectors (--cache or not)",
}


def check_header(folder: Path, there: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse a record whose settings differ, and name what differs."""
    for key, value in asked.items():
        before = there.get(key)
        if before == value:
            continue
        was, now = _shown(before, value)
        raise _misfit(folder, f"its {_WORDS[key]} was {was} and now is {now}")


def _shown(before: Any, now: Any) -> tuple[Any, Any]:
    """What two settings differ in: of metrics only those that do."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return before, now
    names = [n for n in {**before, **now} if before.get(n) != now.get(n)]
    if not names:
        return ", ".join(before), ", ".join(now)
    return before.get(names[0], f"without {names[0]}"), now.get(names[0], f"without {names[0]}")


def check_shards(folder: Path, done: Iterable[Mapping[str, Any]], shards: Sequence[Shard]) -> None:
    """Refuse a record of rows that have changed since they were scored.

    Rows that are not done yet may have changed: a corrupt one is mended and the run goes on.
    """
    for line in done:
        last = line["first"] + line["rows"] - 1
        if line["shard"] >= len(shards):
            raise _misfit(
                folder,
                f"it has scores of row {last} and the input now ends with row "
                f"{shards[-1].first + shards[-1].rows - 1}",
            )
        shard = shards[line["shard"]]
        found = (shard.first, shard.rows, shard.cut.content)
        if found != (line["first"], line["rows"], line["content"]):
            raise _misfit(
                folder,
                f"rows {line['first']} to {last} were scored from other text than "
                f"{shard.file} holds now",
            )


def _misfit(folder: Path, why: str) -> InputError:
    return InputError(
        f"the run in {folder} does not fit: {why}; ask for the same again, or for another --out"
    )
