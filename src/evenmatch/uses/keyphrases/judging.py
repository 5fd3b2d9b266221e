"""Every system's keyphrases on one set of documents, by every metric: numbers to resample."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from evenmatch.data.documents import DocumentSet
from evenmatch.errors import InputError
from evenmatch.scoring.ask import name_of
from evenmatch.scoring.counted import score_counted
from evenmatch.scoring.keyphrase import KeyphraseMetric
from evenmatch.scoring.together import as_metric
from evenmatch.types import Array, Metric, Run

Column: TypeAlias = Literal["present", "absent", "all"]
COLUMNS: tuple[Column, ...] = get_args(Column)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One set of documents judged: counts by metric, column and system, a row per document."""

    data: str
    systems: tuple[str, ...]
    documents: int
    counts: Mapping[tuple[str, Column, str], Array]
    flagged: Mapping[str, Mapping[str, int]]  # by system and flag
    trouble: tuple[str, ...]


def keyphrase_metrics(given: Sequence[str | Metric]) -> dict[str, KeyphraseMetric]:
    """The metrics by the name each was given, all of them metrics of keyphrases."""
    found = {}
    for each in given:
        metric = as_metric(each)
        if not isinstance(metric, KeyphraseMetric):
            raise InputError(
                f"{name_of(each)} is no metric of keyphrases; those are fg, fb, f1_at_5, f1_at_m, "
                "keyphrase_f1 and what is made of keyphrases(...)"
            )
        found[name_of(each)] = metric
    if not found:
        raise InputError("the list of metrics is empty; name at least one")
    return found


def judge_documents(
    documents: DocumentSet, metrics: Mapping[str, KeyphraseMetric], run: Run
) -> Judged:
    """Each metric on the present, the absent and all phrases of each system."""
    systems = documents.predictions
    if not systems:
        raise InputError(
            f"{documents.name} holds no predictions; put them under pred.NAME, "
            "or name their field with --pred"
        )
    # Document by document, so that a document's words are made once for all systems.
    pairs = [each.pair(system) for each in documents.documents for system in systems]
    asked = [(name, column) for name in metrics for column in COLUMNS]
    ready = [dataclasses.replace(metrics[name], which=column) for name, column in asked]
    judged = score_counted(ready, pairs, run)
    counts = {
        (name, column, system): table[index :: len(systems)]
        for (name, column), (_, table) in zip(asked, judged, strict=True)
        for index, system in enumerate(systems)
        if table is not None  # metrics of keyphrases all count
    }
    whole = judged[asked.index((asked[0][0], "all"))][0].segments
    flagged = {
        system: _flagged(documents, [score.flags for score in whole[index :: len(systems)]])
        for index, system in enumerate(systems)
    }
    return Judged(
        documents.name, systems, len(documents.documents), counts, flagged, documents.trouble
    )


def _flagged(documents: DocumentSet, flags: Sequence[frozenset[str]]) -> dict[str, int]:
    """How many documents carry each flag; what scores merely nothing is no oddity."""
    found: Counter[str] = Counter()
    for document, own in zip(documents.documents, flags, strict=True):
        found.update((own | document.flags) - {"no_match"})
    return dict(sorted(found.items()))
