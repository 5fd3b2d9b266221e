"""A server that runs until it is told to stop, and then finishes what it accepted."""

from __future__ import annotations

import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from evenmatch.errors import InputError, MissingExtraError
from evenmatch.scoring.inputs import make_run
from evenmatch.server.security import Limits

_BACKLOG = 2048  # connections that wait to be taken, as uvicorn has it


def serve(
    metrics: Sequence[str] = (),
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str = "",
    limits: Limits = Limits(),
    tell: Callable[[str], None] = logging.getLogger("evenmatch").info,
    **run: Any,
) -> None:
    """Answer requests for these metrics, or for the usual ones, until the process is told to end.

    Without a token only this machine may ask. What was accepted is answered before the end.
    """
    check_address(host, token)
    try:
        import uvicorn

        from evenmatch.server.allow_list import build_allow_list
        from evenmatch.server.app import make_app
    except ImportError as error:
        raise MissingExtraError(
            f"serving needs fastapi and uvicorn ({error}); "
            "install them with: pip install 'evenmatch[serve]'"
        ) from None
    settings = make_run(**run)
    with _bound_socket(host, port) as sock:
        menu = build_allow_list(metrics, settings)
        app = make_app(menu, limits, run=settings, token=token)
        sock.listen(_BACKLOG)  # who reads the next line may connect at once
        shown = f"[{host}]" if ":" in host else host
        tell(f"serving {', '.join(menu.names)} at http://{shown}:{sock.getsockname()[1]}/")
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on")
        with _graceful_sigterm():
            uvicorn.Server(config).run(sockets=[sock])
        tell(
            f"stopped: {app.server_metrics.accepted_requests} requests accepted, {app.server_metrics.answered_requests} answered"
        )


def check_address(host: str, token: str) -> None:
    """Refuse to listen where others can reach us without a token."""
    if token or host == "localhost":
        return
    try:
        private = ipaddress.ip_address(host).is_loopback
    except ValueError:
        private = False  # a name may stand for any address
    if not private:
        raise InputError(
            f"{host} can be reached from other machines; set a token, or serve on 127.0.0.1"
        )


@contextmanager
def _bound_socket(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that is taken before the models are loaded, so that a taken port says so at once."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        yield sock


@contextmanager
def _graceful_sigterm() -> Iterator[None]:
    """Let SIGTERM end the server and not the process: uvicorn raises it again when it is done."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
