"""The FastAPI application of the server: routes, error responses, and OpenAPI description.

`make_app` builds the application; `Routes` has a method for each path.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException

from evenmatch.data.scores import finite_or_none, score_to_record
from evenmatch.protocols import Metric
from evenmatch.registry import find_entry, names
from evenmatch.scoring.metric import AlignMetric
from evenmatch.server import schemas
from evenmatch.server.prometheus import ServerMetrics
from evenmatch.server.queue import AlignOperation, RequestBatcher, RewardOperation, ScoreOperation
from evenmatch.server.security import (
    Limits,
    RequestError,
    SecurityMiddleware,
    check_response_size,
    check_text_lengths,
    pairs_of_request,
)
from evenmatch.training.rewards import RewardValues, extract_response
from evenmatch.types import Pair, Run, Score, Scores
from evenmatch.version import __version__
from evenmatch.viewer.page import server_page

_DESCRIPTION = (
    "Scores, rewards and alignments of texts. Only the metrics listed at /metrics are available. "
    "Requests that arrive at the same time are processed as one batch."
)

_SERVED_NAME = Query(min_length=1, json_schema_extra={schemas.SERVED_KEY: True})

_GET_ERRORS = (400, 401, 408, 413, 421, 431, 500)
_POST_ERRORS = (*_GET_ERRORS, 409, 422, 429, 504)


def make_app(
    allow_list: Mapping[str, Metric],
    limits: Limits,
    *,
    run: Run,
    token: str = "",
    hosts: frozenset[str] = frozenset(),
) -> SecurityMiddleware:
    """Build the ASGI application, with its security middleware."""
    server_metrics = ServerMetrics()
    batcher = RequestBatcher(limits, server_metrics)
    routes = Routes(allow_list, limits, run, batcher, server_metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        yield
        await batcher.stop()

    # FastAPI's documentation pages load scripts from a CDN; /openapi.json is enough.
    app = FastAPI(
        title="evenmatch",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    _add_routes(app, routes, needs_token=bool(token))
    _add_exception_handlers(app)
    # FastAPI builds the description once, and returns this same dictionary to requests.
    served = {schemas.SERVED_KEY: list(allow_list), schemas.ALIGNING_KEY: routes.aligning_names}
    _insert_names(app.openapi(), served)
    paths = frozenset(route.path for route in app.routes)  # type: ignore[attr-defined]  # all do
    return SecurityMiddleware(app, limits, server_metrics, token, paths, hosts)


@dataclass(frozen=True)
class Routes:
    """The endpoints of the server; each method is named after its path."""

    allow_list: Mapping[str, Metric]  # the first is the default of requests
    limits: Limits
    run: Run
    batcher: RequestBatcher
    server_metrics: ServerMetrics

    @property
    def aligning_names(self) -> list[str]:
        """Names of the alignment metrics, whose alignments can be shown."""
        return [name for name, metric in self.allow_list.items() if isinstance(metric, AlignMetric)]

    async def score(self, body: schemas.ScoreRequest) -> Response:
        """Score texts with one or several metrics, in one pass over the texts."""
        wanted = [body.metric] if isinstance(body.metric, str) else body.metric
        chosen = dict(map(self._find_metric, wanted))
        pairs = pairs_of_request(body.candidates, body.references, self.limits)
        operation = ScoreOperation(tuple(chosen.values()), self.run, self.limits)
        found = await self.batcher.submit(operation, pairs)
        return self._json_response(
            {"metrics": dict(zip(chosen, map(_scores_record, found), strict=True))}
        )

    async def reward(self, body: schemas.RewardRequest) -> Response:
        """Compute rewards between 0 and 1; a text that cannot be scored gets 0."""
        pairs = pairs_of_request(body.candidates, body.references, self.limits)
        metric = self._find_metric(body.metric)[1]
        found = await self._compute_rewards(metric, pairs)
        return self._json_response(
            {"rewards": found.values, "odd": found.odd, "signature": f"reward({metric.signature})"}
        )

    async def get_reward(
        self,
        body: schemas.GetRewardRequest,
        metric: Annotated[str, _SERVED_NAME] = "",
    ) -> Response:
        """Compute rewards in the format of OpenRLHF's remote reward model."""
        candidates = _strip_prompts(body.query, body.prompts)
        pairs = pairs_of_request(candidates, body.labels, self.limits)
        found = await self._compute_rewards(self._find_metric(metric)[1], pairs)
        odd = [float(row in found.odd) for row in range(len(pairs))]
        return self._json_response(
            {"rewards": found.values, "scores": found.values, "extra_logs": {"odd": odd}}
        )

    async def align(self, body: schemas.AlignRequest) -> Response:
        """Align two texts: units, similarities, pairs and the credit of each unit."""
        check_text_lengths((body.candidate, body.reference), self.limits.max_aligned_length)
        name = body.metric or next(iter(self.aligning_names), "")
        if name not in self.aligning_names:
            raise _not_served_error(name, self.aligning_names)
        operation = AlignOperation(name, self.allow_list[name], self.limits)
        found = await self.batcher.submit(operation, [Pair(body.candidate, (body.reference,))])
        return Response(found, media_type="application/json")

    async def metrics(self) -> Response:
        """List the served metrics; requests can use no others."""
        return self._json_response(
            {"metrics": [_metric_info(name, m) for name, m in self.allow_list.items()]}
        )

    async def health(self) -> Response:
        """Report that the server is running."""
        return self._json_response({"status": "ok", "version": __version__})

    async def prometheus(self) -> Response:
        """Request counts, response times and memory in the format of Prometheus."""
        return Response(self.server_metrics.render(), media_type=CONTENT_TYPE_LATEST)

    async def page(self) -> Response:
        """The viewer's page, which aligns two texts."""
        page, policy = server_page(self.aligning_names)
        return HTMLResponse(page, headers={"content-security-policy": policy})

    def _find_metric(self, name: str) -> tuple[str, Metric]:
        name = name or next(iter(self.allow_list))
        if name not in self.allow_list:
            raise _not_served_error(name, list(self.allow_list))
        return name, self.allow_list[name]

    def _json_response(self, document: Any) -> Response:
        body = check_response_size(json.dumps(document).encode(), self.limits)
        return Response(body, media_type="application/json")

    async def _compute_rewards(self, metric: Metric, pairs: Sequence[Pair]) -> RewardValues:
        operation = RewardOperation(metric, self.run, self.limits)
        found: RewardValues = await self.batcher.submit(operation, pairs)
        self.server_metrics.odd_rewards.inc(len(found.odd))
        return found


def _add_routes(app: FastAPI, routes: Routes, *, needs_token: bool) -> None:
    bearer = [Depends(HTTPBearer(auto_error=False))] if needs_token else []

    def add(path: str, endpoint: Callable[..., Any], model: Any = None, **given: Any) -> None:
        codes = _POST_ERRORS if given["methods"] == ["POST"] else _GET_ERRORS
        responses: dict[int | str, dict[str, Any]] = {
            code: schemas.ERROR_RESPONSES[code] for code in codes if needs_token or code != 401
        }
        if model:
            responses[200] = {"model": model, "description": "Success."}
        dependencies = [] if path in ("/", "/health") else bearer
        app.add_api_route(path, endpoint, responses=responses, dependencies=dependencies, **given)

    add("/score", routes.score, schemas.ScoreResponse, methods=["POST"])
    add("/align", routes.align, schemas.AlignResponse, methods=["POST"])
    add("/reward", routes.reward, schemas.RewardResponse, methods=["POST"])
    add("/get_reward", routes.get_reward, schemas.GetRewardResponse, methods=["POST"])
    add("/metrics", routes.metrics, schemas.MetricList, methods=["GET"])
    add("/health", routes.health, schemas.Health, methods=["GET"])
    add("/prometheus", routes.prometheus, methods=["GET"], response_class=PlainTextResponse)
    add("/", routes.page, methods=["GET"], response_class=HTMLResponse)


def _add_exception_handlers(app: FastAPI) -> None:
    @app.exception_handler(RequestError)
    async def request_error(_: Request, error: RequestError) -> JSONResponse:
        return error.response()

    @app.exception_handler(RequestValidationError)
    async def validation_error(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"detail": _validation_message(error)}, 422)

    @app.exception_handler(HTTPException)
    async def http_error(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"detail": str(error.detail)}, error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def internal_error(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": f"internal server error ({type(error).__name__})"}, 500)


def _validation_message(error: RequestValidationError) -> str:
    """Describe the first validation error, without the input, which may be unprintable."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"the body is not JSON (at character {first['loc'][-1]})"
    if first["type"] in ("model_attributes_type", "dict_type") and first["loc"] == ("body",):
        return (
            "the body is not a JSON object; send it with the header content-type: application/json"
        )
    # Of the alternatives for a field, the one that fits best fails last.
    alike = (each for each in error.errors() if each["loc"][:2] == first["loc"][:2])
    first = max(alike, key=lambda each: (len(each["loc"]), each["type"] == "too_short"))
    # Steps such as list[function-after[…]] are of the schema and not of the request.
    steps = [str(step) for step in first["loc"] if step != "body" and "[" not in str(step)]
    where = ".".join(steps)
    text = f"{where}: {first['msg']}" if where else str(first["msg"])
    return text.encode("ascii", "backslashreplace").decode()[:500]


def _insert_names(node: Any, served: Mapping[str, list[str]]) -> None:
    """Replace the placeholder keys in a description by the list of names they stand for."""
    if isinstance(node, list):
        for item in node:
            _insert_names(item, served)
    elif isinstance(node, dict):
        for key in served.keys() & node.keys():
            del node[key]
            node["enum"] = served[key]
        if node.get("default") == "":
            node["default"] = served[schemas.SERVED_KEY][0]
        for value in list(node.values()):
            _insert_names(value, served)


def _not_served_error(name: str, served: Sequence[str]) -> RequestError:
    return RequestError(
        422, f"{name[:80]!r} is not available; available metrics: {', '.join(served)}"
    )


def _strip_prompts(queries: Sequence[str], prompts: Sequence[str]) -> list[str]:
    """Remove from each query the prompt it begins with, and special tokens."""
    if prompts and len(prompts) != len(queries):
        raise RequestError(409, f"{len(queries)} queries but {len(prompts)} prompts")
    prefixes = prompts or [""] * len(queries)
    return [
        extract_response(query, prefix) for query, prefix in zip(queries, prefixes, strict=True)
    ]


def _scores_record(scores: Scores) -> dict[str, Any]:
    numbers = score_to_record(Score(scores.mean, scores.corpus))
    return {
        "signature": scores.signature,
        "mean": numbers["value"],
        "corpus": numbers["precision"],
        "segments": [score_to_record(score) for score in scores.segments],
    }


def _metric_info(name: str, metric: Metric) -> dict[str, Any]:
    start = name.split("(", 1)[0]
    about = find_entry(start).factory.__doc__ if start in names("metric") else type(metric).__doc__
    return {
        "name": name,
        "about": (about or "").strip().split("\n", 1)[0],
        "aligns": isinstance(metric, AlignMetric),
        "higher_is_better": metric.higher_is_better,
        "bounds": [finite_or_none(bound) for bound in metric.bounds],
    }
