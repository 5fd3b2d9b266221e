"""The server as an application: paths, refusals, and its own description."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from evenmatch.types import Run
from evenmatch.uses.serve import bodies
from evenmatch.uses.serve.batching import Batcher
from evenmatch.uses.serve.figures import Figures
from evenmatch.uses.serve.guard import Guard
from evenmatch.uses.serve.limits import Limits, RefusedError
from evenmatch.uses.serve.menu import Menu
from evenmatch.uses.serve.routes import Routes
from evenmatch.version import __version__

_ABOUT = (
    "Scores, rewards and alignments of texts. Only the metrics that this server offers can be "
    "asked for: see /metrics. Requests that arrive together are answered together."
)
_ASKING = (400, 401, 408, 409, 413, 422, 429, 500, 504)
_LOOKING = (400, 401, 408, 413, 500)


def make_app(menu: Menu, limits: Limits, *, run: Run, token: str = "") -> Guard:
    """The application a web server runs."""
    figures = Figures()
    batcher = Batcher(limits, figures)
    routes = Routes(menu, limits, run, batcher, figures)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        yield
        await batcher.stop()

    # The usual pages of documentation load scripts from elsewhere; the description is enough.
    app = FastAPI(
        title="evenmatch",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    _add_paths(app, routes, locked=bool(token))
    _add_refusals(app)
    app.openapi = _described(app, menu)  # type: ignore[method-assign]  # FastAPI's way to extend it
    paths = frozenset(route.path for route in app.routes)  # type: ignore[attr-defined]  # all have one
    return Guard(app, limits, figures, token, paths)


def _add_paths(app: FastAPI, routes: Routes, *, locked: bool) -> None:
    lock = [Depends(HTTPBearer(auto_error=False))] if locked else []

    def refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
        return {code: bodies.REFUSALS[code] for code in codes if locked or code != 401}

    def add(path: str, answer: Callable[..., Any], model: Any, *, method: str = "POST") -> None:
        asked = refusals(*(_ASKING if method == "POST" else _LOOKING))
        asked[200] = {"model": model, "description": "Done."}
        needs = [] if path == "/health" else lock
        app.add_api_route(path, answer, methods=[method], responses=asked, dependencies=needs)

    add("/score", routes.score, bodies.ScoreAnswer)
    add("/align", routes.align, bodies.AlignAnswer)
    add("/reward", routes.reward, bodies.RewardAnswer)
    add("/get_reward", routes.get_reward, bodies.GetRewardAnswer)
    add("/metrics", routes.metrics, bodies.MetricList, method="GET")
    add("/health", routes.health, bodies.Health, method="GET")
    looked = refusals(*_LOOKING)
    for path, answer, kind in (
        ("/prometheus", routes.prometheus, PlainTextResponse),
        ("/", routes.page, HTMLResponse),
    ):
        needs = lock if path == "/prometheus" else []
        app.add_api_route(
            path,
            answer,
            methods=["GET"],
            responses=looked,
            response_class=kind,
            dependencies=needs,
        )


def _add_refusals(app: FastAPI) -> None:
    async def refused(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RefusedError)
        return JSONResponse({"detail": error.detail}, error.status, error.headers)

    async def wrong(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return JSONResponse({"detail": _said(error)}, 422)

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return JSONResponse({"detail": str(error.detail)}, error.status_code, error.headers)

    async def unforeseen(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": f"an error of the server ({type(error).__name__})"}, 500)

    app.add_exception_handler(RefusedError, refused)
    app.add_exception_handler(RequestValidationError, wrong)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, unforeseen)


def _said(error: RequestValidationError) -> str:
    """The first thing that is wrong, without repeating what was sent: that may be unprintable."""
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"] if step != "body")
    text = f"{where}: {first['msg']}" if where else str(first["msg"])
    return text.encode("ascii", "backslashreplace").decode()[:500]


def _described(app: FastAPI, menu: Menu) -> Callable[[], dict[str, Any]]:
    """The description with the names offered put where they belong."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _name(plain(), {bodies.SERVED: menu.names, bodies.ALIGNING: menu.aligning})
        return plain()

    return openapi


def _name(node: Any, offered: MutableMapping[str, list[str]]) -> None:
    if isinstance(node, list):
        for item in node:
            _name(item, offered)
    elif isinstance(node, dict):
        for mark in offered.keys() & node.keys():
            del node[mark]
            node["enum"] = offered[mark]
        if node.get("default") == "":
            node["default"] = offered[bodies.SERVED][0]
        for value in list(node.values()):
            _name(value, offered)
