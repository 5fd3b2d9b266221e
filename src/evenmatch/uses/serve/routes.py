"""What the server answers to each path."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from evenmatch.data.rows import as_record
from evenmatch.registry import entry, names
from evenmatch.scoring.metric import AlignMetric
from evenmatch.types import Metric, Pair, Run, Score, Scores
from evenmatch.uses.serve.batching import Batcher
from evenmatch.uses.serve.bodies import (
    SERVED,
    AlignRequest,
    GetRewardRequest,
    RewardRequest,
    ScoreRequest,
)
from evenmatch.uses.serve.figures import Figures
from evenmatch.uses.serve.limits import Limits, RefusedError, check_lengths, checked_pairs
from evenmatch.uses.serve.menu import Menu
from evenmatch.uses.serve.work import Aligning, Rewarding, Scoring
from evenmatch.uses.train.rewards_judging import Rated
from evenmatch.uses.train.rewards_responses import response_of
from evenmatch.version import __version__
from evenmatch.viewer.page import served_page


@dataclass(frozen=True)
class Routes:
    """The answers of one server, each under the name of its path."""

    menu: Menu
    limits: Limits
    run: Run
    batcher: Batcher
    figures: Figures

    async def score(self, body: ScoreRequest) -> Response:
        """Score texts with one or several metrics, in one pass over the texts."""
        wanted = [body.metric] if isinstance(body.metric, str) else body.metric
        chosen = dict(map(self._chosen, wanted))
        pairs = checked_pairs(body.candidates, body.references, self.limits)
        found = await self.batcher.ask(Scoring(tuple(chosen.values()), self.run), pairs)
        return _json({"metrics": dict(zip(chosen, map(_scores, found), strict=True))})

    async def reward(self, body: RewardRequest) -> Response:
        """Reward texts by a metric: between 0 and 1, odd texts 0."""
        pairs = checked_pairs(body.candidates, body.references, self.limits)
        metric = self._chosen(body.metric)[1]
        found = await self._rewarded(metric, pairs)
        return _json(
            {"rewards": found.values, "odd": found.odd, "signature": f"reward({metric.signature})"}
        )

    async def get_reward(
        self,
        body: GetRewardRequest,
        metric: Annotated[str, Query(min_length=1, json_schema_extra={SERVED: True})] = "",
    ) -> Response:
        """Reward responses the way OpenRLHF asks a remote reward model."""
        candidates = _responses(body.query, body.prompts)
        pairs = checked_pairs(candidates, body.labels, self.limits)
        found = await self._rewarded(self._chosen(metric)[1], pairs)
        odd = [float(row in found.odd) for row in range(len(pairs))]
        answer = {"rewards": found.values, "scores": found.values, "extra_logs": {"odd": odd}}
        return _json(answer)

    async def align(self, body: AlignRequest) -> Response:
        """Align two texts: units, similarities, pairs and what each unit adds to the score."""
        check_lengths((body.candidate, body.reference), self.limits.longest_aligned)
        name = body.metric or next(iter(self.menu.aligning), "")
        if name not in self.menu.aligning:
            raise _not_offered(name, self.menu.aligning)
        work = Aligning(name, self.menu.metrics[name])
        found = await self.batcher.ask(work, [Pair(body.candidate, (body.reference,))])
        return _json(asdict(found) | {"score": as_record(found.score)})

    async def metrics(self) -> Response:
        """The metrics that are offered; nothing else can be asked for."""
        return _json({"metrics": [_card(name, m) for name, m in self.menu.metrics.items()]})

    async def health(self) -> Response:
        """Whether the server lives."""
        return _json({"status": "ok", "version": __version__})

    async def prometheus(self) -> Response:
        """Counts, times and memory, as Prometheus reads them."""
        return PlainTextResponse(self.figures.written(self.batcher.waiting))

    async def page(self) -> Response:
        """The page to type two texts into and look at their alignment."""
        return HTMLResponse(served_page(self.menu.aligning))

    def _chosen(self, name: str) -> tuple[str, Metric]:
        name = name or self.menu.names[0]
        if name not in self.menu.metrics:
            raise _not_offered(name, self.menu.names)
        return name, self.menu.metrics[name]

    async def _rewarded(self, metric: Metric, pairs: Sequence[Pair]) -> Rated:
        found: Rated = await self.batcher.ask(Rewarding(metric, self.run), pairs)
        self.figures.count_odd(len(found.odd))
        return found


def _not_offered(name: str, offered: Sequence[str]) -> RefusedError:
    return RefusedError(422, f"{name[:80]!r} is not offered here; offered: {', '.join(offered)}")


def _responses(queries: Sequence[str], prompts: Sequence[str]) -> list[str]:
    """Queries without the prompts they begin with, and without special tokens."""
    if prompts and len(prompts) != len(queries):
        raise RefusedError(409, f"{len(queries)} queries but {len(prompts)} prompts")
    starts = prompts or [""] * len(queries)
    return [response_of(query, start) for query, start in zip(queries, starts, strict=True)]


def _scores(scores: Scores) -> dict[str, Any]:
    numbers = as_record(Score(scores.mean, scores.corpus))
    return {
        "signature": scores.signature,
        "mean": numbers["value"],
        "corpus": numbers["precision"],
        "segments": [as_record(score) for score in scores.segments],
    }


def _card(name: str, metric: Metric) -> dict[str, Any]:
    start = name.split("(", 1)[0]
    about = entry(start).make.__doc__ if start in names("metric") else type(metric).__doc__
    return {
        "name": name,
        "about": (about or "").strip().split("\n", 1)[0],
        "aligns": isinstance(metric, AlignMetric),
        "higher_is_better": metric.higher_is_better,
        "bounds": [bound if math.isfinite(bound) else None for bound in metric.bounds],
    }


def _json(document: Any) -> Response:
    return Response(json.dumps(document), media_type="application/json")
