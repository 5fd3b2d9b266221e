"""A real server on loopback: its start, its end, and clients that misbehave."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import httpx
import pytest

import evenmatch as em
from tests.cli.conftest import Command, command
from tests.support.server_process import LSA, running

__all__ = ["command"]
BODY = {"candidates": ["the the cat"] * 20, "references": ["the cat sat"] * 20}


def ended(process: subprocess.Popen[str]) -> str:
    """What a server says at its end, after SIGTERM."""
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    return said


def test_term_under_load_loses_no_accepted_request() -> None:
    wanted = em.score(BODY["candidates"], BODY["references"], LSA).mean
    means: list[float] = []

    def ask(address: str) -> None:
        with httpx.Client() as client:
            while True:
                try:
                    answer = client.post(f"{address}score", json=BODY)
                except httpx.TransportError:
                    return  # the server is gone
                means.append(answer.json()["metrics"][LSA]["mean"])

    with running() as (process, address):
        clients = [threading.Thread(target=ask, args=(address,)) for _ in range(8)]
        for client in clients:
            client.start()
        while len(means) < 50:
            time.sleep(0.01)
        said = ended(process)
        for client in clients:
            client.join()
    accepted, answered = map(int, re.findall(r"(\d+) requests accepted, (\d+) answered", said)[0])
    assert accepted == answered == len(means)
    assert set(means) == {wanted}


def test_a_client_that_leaves_in_the_middle_does_no_harm() -> None:
    with running() as (process, address):
        where = urlsplit(address)
        body = json.dumps(BODY).encode()
        head = (
            "POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        for sent in (body, body[:30]):
            with socket.create_connection((where.hostname, where.port or 0)) as client:
                client.sendall(head.encode() + sent)
        assert httpx.post(f"{address}score", json=BODY).status_code == 200
        assert "requests accepted" in ended(process)


def test_a_huge_body_is_answered_before_the_line_is_cut() -> None:
    with running("--max-bytes", "100000") as (process, address):
        answer = httpx.post(f"{address}score", content=b"x" * 1_000_000)
        assert answer.status_code == 413
        assert httpx.get(f"{address}health").status_code == 200
        ended(process)


def test_a_public_address_without_a_token_is_one_line(command: Command) -> None:
    said = command("serve", "--host", "0.0.0.0")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "set a token, or serve on 127.0.0.1" in said.err


def test_a_taken_port_is_one_line(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = command("serve", "-m", LSA, "--port", str(port))
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert f"cannot listen on port {port} of 127.0.0.1: Address already in use" in said.err


@pytest.mark.slow
def test_schemathesis_finds_nothing() -> None:
    pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    with running() as (process, address):
        line = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}openapi.json"]
        done = subprocess.run(
            [*line, "--seed", "1", "--max-examples", "100"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-4000:]
        ended(process)
