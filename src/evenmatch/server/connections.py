"""Connections of the server: how many, how long they may wait, and how much they may send unread.

uvicorn bounds the size of an incomplete head, and how long a connection may be idle after a
response. `LimitedProtocol` adds what it has no setting for: a number of connections, a time for the
head of a request, and a time and a size for responses that are not read. All of this happens before
a token can be checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from evenmatch.errors import InputError
from evenmatch.server.prometheus import ServerMetrics
from evenmatch.server.security import Limits

# Pending connections. asyncio accepts so many at once, before any of them can be refused.
BACKLOG = 256

# Files needed besides connections: those of models and stores, and connections not refused yet.
_OTHER_FILES = 4 * BACKLOG + 256

_REFUSAL = (
    b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b'content-length: %d\r\n\r\n{"detail": "%s"}'
)


def make_server(
    app: Any, limits: Limits, server_metrics: ServerMetrics, log: Callable[[str], None]
) -> uvicorn.Server:
    """Make the server of an ASGI application, with the limits of its connections."""
    watch = ConnectionLog(server_metrics, log)
    protocol: Any = partial(LimitedProtocol, limits=limits, watch=watch)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        log_level="error",  # a warning for each malformed request would let clients fill a disk
        access_log=False,
        lifespan="on",
        backlog=BACKLOG,
        h11_max_incomplete_event_size=limits.max_head_bytes,
    )
    return uvicorn.Server(config)


class LimitedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with limits.

    A connection waits for the head of a request, or a request is in progress. One timer runs in
    either state, and ends the connection.
    """

    def __init__(self, *args: Any, limits: Limits, watch: ConnectionLog, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limits, self._watch = limits, watch
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0  # since when it has been waiting
        self._answered = self._in_progress = self._dropped = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._wait_for_head()
        own = cast(set[LimitedProtocol], self.connections)
        if sum(not each._dropped for each in own) > self._limits.max_connections:
            # Of those that wait: first one that has sent no request yet, the oldest first. This
            # connection has just come, so it is refused only if requests use all others.
            waiting = (e for e in own if e is not self and not (e._in_progress or e._dropped))
            oldest = min(waiting, key=lambda each: (each._answered, each._since), default=self)
            oldest._drop(b"503 Service Unavailable", "too many connections")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note_progress()

    def on_response_complete(self) -> None:
        self._in_progress, self._answered = False, True
        super().on_response_complete()  # it may start the next request at once
        self._note_progress()
        if not self._in_progress:
            self._wait_for_head()
        self._limit_unsent()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_timer(None)
        self._dropped = True
        super().connection_lost(exc)

    def _note_progress(self) -> None:
        if self._in_progress or self.cycle is None or self.cycle.response_complete:
            return
        self._in_progress = True
        # The body, the work and the response each have this time, and report when it is over.
        self._set_timer(4 * self._limits.timeout)

    def _wait_for_head(self) -> None:
        self._since = self.loop.time()
        self._set_timer(self._limits.head_timeout)

    def _set_timer(self, seconds: float | None) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._time_over)

    def _time_over(self) -> None:
        if self._unsent and not self._in_progress:
            left = self._since + self._limits.timeout - self.loop.time()
            if left > 0:
                self._set_timer(left)
            else:
                self._drop(b"", "a response was not read in time")
        elif self._in_progress:
            self._drop(b"", "a request was not over in time")
        else:
            self._drop(b"408 Request Timeout", "no request arrived in time")

    @property
    def _unsent(self) -> int:
        return self.transport.get_write_buffer_size()

    def _limit_unsent(self) -> None:
        own = cast(set[LimitedProtocol], self.connections)
        waiting = [each for each in own if each._unsent and not each._dropped]
        if sum(each._unsent for each in waiting) > self._limits.max_unsent_bytes:
            slowest = min(waiting, key=lambda each: each._since)
            slowest._drop(b"", "too many responses are not read")

    def _drop(self, status: bytes, reason: str) -> None:
        """End the connection; with a response if a status is given and nothing else is unsent."""
        self._dropped = True
        self._watch.count(reason)
        if status and not self._unsent and not self.transport.is_closing():
            detail = reason.encode()
            self.transport.write(_REFUSAL % (status, len(detail) + 14, detail))
            self.transport.close()
        else:
            self.transport.abort()


class ConnectionLog:
    """Counts dropped connections by reason; only the first for each reason is logged."""

    def __init__(self, server_metrics: ServerMetrics, log: Callable[[str], None]) -> None:
        self._counter, self._log = server_metrics.dropped_connections, log
        self._logged: set[str] = set()

    def count(self, reason: str) -> None:
        """Count a dropped connection."""
        self._counter.labels(reason).inc()
        if reason not in self._logged:
            self._logged.add(reason)
            self._log(
                f"dropped a connection: {reason}; "
                "further ones are counted at /prometheus and not logged"
            )


def reserve_files(limits: Limits) -> None:
    """Raise this process's limit of open files to what the connections need, if it is lower."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    needed = limits.max_connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise InputError(
            f"{limits.max_connections} connections need {needed} open files, but the limit is "
            f"{hard}; raise it with ulimit -Hn, or use a lower --max-connections"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
