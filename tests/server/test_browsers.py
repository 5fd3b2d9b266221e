"""What protects a browser: the names of the server, and the headers of responses."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from fastapi.testclient import TestClient

from evenmatch.server.allow_list import build_allow_list
from evenmatch.server.app import make_app
from evenmatch.server.security import Limits, allowed_hosts
from evenmatch.types import Run
from tests.server.conftest import LSA, Serve
from tests.server.test_refusals import refused


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000"])
def test_a_name_of_this_machine_is_served(serve: Serve, host: str) -> None:
    assert serve().get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/health", "/score"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", ""]
)
def test_another_host_is_refused(serve: Serve, path: str, host: str) -> None:
    answer = serve().get(path, headers={"host": host})
    assert refused(answer, 421, "is not served; allow it with --allow-host")


def test_a_configured_host_is_served() -> None:
    hosts = allowed_hosts("0.0.0.0", ["Scores.Example:443"])
    app = make_app(build_allow_list([LSA], Run()), Limits(), run=Run(), hosts=hosts)
    with TestClient(app, "http://scores.example") as client:
        assert client.get("/health").status_code == 200
        assert client.get("/health", headers={"host": "other.example"}).status_code == 421


def test_large_headers_are_refused(serve: Serve) -> None:
    answer = serve(max_head_bytes=1000).get("/health", headers={"x": "y" * 1000})
    assert refused(answer, 431, "bytes; the limit is 1000")


@pytest.mark.parametrize("path", ["/", "/health", "/nowhere", "/prometheus"])
@pytest.mark.parametrize("host", ["localhost", "evil.example"])
def test_every_response_protects_browsers(serve: Serve, path: str, host: str) -> None:
    headers = serve(token="secret").get(path, headers={"host": host}).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_the_page_allows_its_own_script_only(serve: Serve) -> None:
    answer = serve().get("/")
    assert "http-equiv" not in answer.text
    assert " style=" not in answer.text.split("<script>")[0]
    script = re.findall(r"<script>(.*)</script>", answer.text, re.DOTALL)[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in answer.headers["content-security-policy"]
