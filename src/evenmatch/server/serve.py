"""Run the HTTP server until it is stopped; accepted requests are answered before it ends."""

from __future__ import annotations

import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from evenmatch.errors import DataError, InputError, MissingExtraError
from evenmatch.scoring.inputs import make_run
from evenmatch.server.security import Limits, allowed_hosts

# Seconds for which scoring may keep Python from the thread that answers requests (Python's: 0.005).
_SWITCH_INTERVAL = 0.001


def serve(
    metrics: Sequence[str] = (),
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str = "",
    allow_hosts: Sequence[str] = (),
    limits: Limits = Limits(),
    log: Callable[[str], None] = logging.getLogger("evenmatch").info,
    **run: Any,
) -> None:
    """Serve these metrics, or the default ones, until the process receives SIGINT or SIGTERM.

    Without a token the host must be a loopback address, which only this machine can reach. Requests
    name the server by that address, as localhost, or by one of `allow_hosts`. Those that were
    accepted are answered before the server ends. `log` receives status messages.
    """
    check_address(host, token)
    try:
        from evenmatch.server.allow_list import build_allow_list
        from evenmatch.server.app import make_app
        from evenmatch.server.connections import BACKLOG, make_server, reserve_files
    except ImportError as error:
        raise MissingExtraError(
            f"serving needs fastapi, uvicorn and prometheus-client ({error}); "
            "install them with: pip install 'evenmatch[serve]'"
        ) from None
    settings = make_run(**run)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    reserve_files(limits)
    with _bound_socket(host, port) as sock:
        allow_list = build_allow_list(metrics, settings)
        hosts = allowed_hosts(host, allow_hosts)
        app = make_app(allow_list, limits, run=settings, token=token, hosts=hosts)
        sock.listen(BACKLOG)  # listen before logging: a reader of the log may connect at once
        shown = f"[{host}]" if ":" in host else host
        log(f"serving {', '.join(allow_list)} at http://{shown}:{sock.getsockname()[1]}/")
        with _graceful_sigterm():
            make_server(app, limits, app.server_metrics, log).run(sockets=[sock])
        log(
            f"stopped: {app.server_metrics.accepted_requests} requests accepted, "
            f"{app.server_metrics.answered_requests} answered"
        )


def check_address(host: str, token: str) -> None:
    """Raise `InputError` if other machines could reach the server without a token."""
    if token or host == "localhost":
        return
    try:
        private = ipaddress.ip_address(host).is_loopback
    except ValueError:
        private = False  # a host name may resolve to any address
    if not private:
        raise InputError(
            f"{host} can be reached from other machines; set a token, or serve on 127.0.0.1"
        )


@contextmanager
def _bound_socket(host: str, port: int) -> Iterator[socket.socket]:
    """Bind a socket; called before models are loaded, so that a port in use is reported at once."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(address)
        except OSError as error:
            raise DataError(
                f"cannot listen on port {port} of {host}: {error.strerror}; choose another port"
            ) from error
        yield sock


@contextmanager
def _graceful_sigterm() -> Iterator[None]:
    """Ignore the SIGTERM that uvicorn raises again after it has shut down."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
