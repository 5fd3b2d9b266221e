"""Clients that open connections and send no requests, or read no responses."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import evenmatch as em
from evenmatch.server.connections import make_server, reserve_files
from evenmatch.server.prometheus import ServerMetrics
from evenmatch.server.security import Limits
from tests.support.server_process import running

LARGE = b"x" * (8 << 20)  # more than the buffers of a socket hold


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """An application whose response to /large is large; it reads no bodies."""
    if scope["type"] == "lifespan":
        for _ in range(2):
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    body = LARGE if scope["path"] == "/large" else b"ok"
    await send({"type": "http.response.body", "body": body})


class Served:
    """A server in a thread of this process."""

    def __init__(self, limits: Limits) -> None:
        self.logged: list[str] = []
        self.metrics = ServerMetrics()
        self.server = make_server(answer, limits, self.metrics, self.logged.append)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def connect(self, sent: bytes = b"") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        client.sendall(sent)
        return client

    def dropped(self, reason: str) -> float:
        found = self.metrics.dropped_connections.labels(reason)
        return float(found._value.get())


@contextmanager
def served(**limits: float) -> Iterator[Served]:
    found = Served(replace(Limits(), **limits))  # type: ignore[arg-type]  # numbers
    thread = threading.Thread(target=found.server.run, kwargs={"sockets": [found.socket]})
    thread.start()
    try:
        yield found
    finally:
        found.server.should_exit = True
        thread.join()


def received(client: socket.socket) -> bytes:
    """All that arrives until the connection is closed."""
    found = b""
    try:
        while part := client.recv(1 << 16):
            found += part
    except ConnectionResetError:
        pass
    return found


def send_until_closed(client: socket.socket, piece: bytes, most: int) -> int:
    sent = 0
    try:
        while sent < most:
            client.sendall(piece)
            sent += len(piece)
    except OSError:
        pass
    return sent


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\n"]
)
def test_a_head_that_does_not_arrive_is_given_up(sent: bytes) -> None:
    with served(head_timeout=0.3) as server, server.connect(sent) as client:
        start = time.monotonic()
        assert received(client).startswith(b"HTTP/1.1 408 ")
        assert 0.2 < time.monotonic() - start < 3


def test_a_head_that_arrives_byte_by_byte_has_no_more_time() -> None:
    with served(head_timeout=0.5) as server, server.connect(b"GET / HTTP/1.1\r\n") as client:
        start = time.monotonic()
        while time.monotonic() - start < 5:
            try:
                client.sendall(b"a")
            except OSError:
                break
            time.sleep(0.02)
        assert time.monotonic() - start < 3


def test_endless_headers_are_cut_off() -> None:
    with served() as server, server.connect(b"GET / HTTP/1.1\r\n") as client:
        assert send_until_closed(client, b"A: " + b"b" * 1000 + b"\r\n", 64 << 20) < 8 << 20


def test_one_endless_header_is_cut_off() -> None:
    with served() as server, server.connect(b"GET / HTTP/1.1\r\nA: ") as client:
        assert send_until_closed(client, b"b" * 1000, 64 << 20) < 8 << 20


def test_a_body_after_the_response_is_not_read_for_ever() -> None:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
    with served(head_timeout=0.3) as server, server.connect(head) as client:
        start = time.monotonic()
        while time.monotonic() - start < 5:
            try:
                client.sendall(b"x" * 100)
            except OSError:
                break
            time.sleep(0.02)
        assert time.monotonic() - start < 3


def test_half_open_connections_make_room_for_others() -> None:
    with served(max_connections=20) as server, ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(server.connect(b"GET"))
        for _ in range(5):
            assert httpx.get(f"http://127.0.0.1:{server.port}/", timeout=2).text == "ok"
        assert len(server.server.server_state.connections) <= 20
        assert server.dropped("too many connections") >= 80
        assert len([line for line in server.logged if "too many connections" in line]) == 1


def test_a_client_that_was_answered_keeps_its_connection() -> None:
    with served(max_connections=20) as server, ExitStack() as stack, httpx.Client() as client:
        address = f"http://127.0.0.1:{server.port}/"
        first = client.get(address).extensions["network_stream"]
        for _ in range(60):
            stack.enter_context(server.connect())
        again = client.get(address)
        assert again.text == "ok"
        same = again.extensions["network_stream"].get_extra_info("client_addr")
        assert same == first.get_extra_info("client_addr")


def test_idle_clients_that_were_answered_make_room_for_others() -> None:
    with served(max_connections=20) as server, ExitStack() as stack:
        for _ in range(20):
            idle = stack.enter_context(server.connect(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
            assert idle.recv(12) == b"HTTP/1.1 200"
        for _ in range(5):
            assert httpx.get(f"http://127.0.0.1:{server.port}/", timeout=5).text == "ok"


def test_a_response_that_is_not_read_is_given_up() -> None:
    head = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with served(head_timeout=0.1, timeout=0.5) as server, server.connect(head) as client:
        time.sleep(1.0)
        assert len(received(client)) < len(LARGE)
        assert server.dropped("a response was not read in time") == 1


def test_a_slow_reader_gets_its_whole_response() -> None:
    head = b"GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with served(head_timeout=0.1, timeout=10) as server, server.connect(head) as client:
        time.sleep(0.5)
        assert LARGE in received(client)


def test_responses_that_are_not_read_have_a_bound_together() -> None:
    head = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with served(max_unsent_bytes=16 << 20) as server, ExitStack() as stack:
        clients = [stack.enter_context(server.connect(head)) for _ in range(8)]
        time.sleep(0.5)
        held = [c.transport for c in list(server.server.server_state.connections)]
        assert sum(transport.get_write_buffer_size() for transport in held) <= 16 << 20
        assert server.dropped("too many responses are not read") >= 4
        assert len(clients) == 8


def test_malformed_requests_are_not_logged(capfd: pytest.CaptureFixture[str]) -> None:
    with served() as server:
        for _ in range(20):
            with server.connect(b"\x00\x01\r\n\r\n") as client:
                assert received(client).startswith(b"HTTP/1.1 400 ")
    assert (server.logged, capfd.readouterr().err) == ([], "")


def test_the_limit_of_open_files_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: raised.append(both))
    reserve_files(Limits(max_connections=512))
    assert raised == [(1792, 4096)]
    with pytest.raises(em.InputError, match="4000 connections need 5280 open files, but the limit"):
        reserve_files(Limits(max_connections=4000))


def test_a_server_with_a_token_stands_against_clients_without_it() -> None:
    with running("--token", "secret") as (process, address), ExitStack() as stack:
        port = httpx.URL(address).port or 0

        def memory() -> int:
            pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
            return int(pages) * resource.getpagesize()

        before = memory()
        for _ in range(1100):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\n")
            send_until_closed(client, b"A: " + b"b" * 60_000 + b"\r\n", 256 << 20)
        start = time.monotonic()
        assert httpx.get(f"{address}health").status_code == 200
        assert time.monotonic() - start < 1
        assert memory() - before < 50 << 20
        process.terminate()
        assert process.stderr
        assert len(process.stderr.read().splitlines()) < 5
