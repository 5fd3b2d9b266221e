from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from fastapi.testclient import TestClient

from evenmatch.protocols import Metric
from evenmatch.server.allow_list import build_allow_list
from evenmatch.server.app import make_app
from evenmatch.server.security import Limits
from evenmatch.types import Run

LSA = "align(vectors=hashed, alignment=lsa)"
GREEDY = "align(vectors=hashed)"
CHRF = "chrf"

Serve = Callable[..., TestClient]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server inside the test, with these limits, token and allow_list."""
    with ExitStack() as stack:

        def start(
            *, token: str = "", allow_list: dict[str, Metric] | None = None, **limits: float
        ) -> TestClient:
            served = allow_list or build_allow_list([LSA, GREEDY, CHRF], Run())
            bounds = dataclasses.replace(Limits(), **limits)  # type: ignore[arg-type]  # numbers
            app = make_app(served, bounds, run=Run(), token=token)
            client = TestClient(app, "http://localhost", raise_server_exceptions=False)
            return stack.enter_context(client)

        yield start
