"""Security of the server: host and token, limits on requests, and error responses.

Every request passes `SecurityMiddleware` first, which checks its head, the token, the size of the
body and the time it takes to arrive. `Limits` has all bounds: of requests, of the work they cause,
of the queue and of connections (`connections.py`).
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenmatch.types import Pair

if TYPE_CHECKING:  # the command line reads `Limits` without the extra `serve`
    from starlette.responses import JSONResponse
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from evenmatch.server.prometheus import ServerMetrics

# Paths without a token: the page and the description are not secret, /health is for monitoring.
PUBLIC_PATHS = frozenset({"/", "/health", "/openapi.json"})

# Names of this machine, which requests may always send as `Host`.
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

_RESPONSE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
_DEFAULT_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")

# A body over the limit is read up to this multiple of it, so that its sender gets the response.
_DRAIN_FACTOR = 16


@dataclass(frozen=True)
class Limits:
    """Limits on requests, so that no request can exhaust the server."""

    max_bytes: int = 4 << 20  # of the body of a request
    max_texts: int = 2048  # of a request, references included
    max_text_length: int = 20_000  # characters
    max_aligned_length: int = 2_000  # characters; an alignment grows with the product of lengths
    max_cells: int = 1_000_000  # of one table of units by units; 16 times as many at a time
    max_aligned_cells: int = 400_000  # of an alignment, whose similarities are all sent
    max_response_bytes: int = 8 << 20
    max_queued_pairs: int = 8192  # over all requests in the queue
    timeout: float = 60.0  # seconds, for receiving the body, and for the response
    max_connections: int = 512
    max_head_bytes: int = 32 << 10  # of a request's line and headers
    head_timeout: float = 10.0  # seconds, for receiving the head of a request
    max_unsent_bytes: int = 64 << 20  # of responses that clients have not read


class RequestError(Exception):
    """A request that cannot be processed: the HTTP status and the message of the response."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def response(self) -> JSONResponse:
        """Return the response that reports this error."""
        from starlette.responses import JSONResponse

        return JSONResponse({"detail": self.detail}, self.status, self.headers)


@dataclass(frozen=True)
class SecurityMiddleware:
    """ASGI middleware that checks host, token and limits, adds headers, and counts requests."""

    app: ASGIApp
    limits: Limits
    server_metrics: ServerMetrics
    token: str
    known_paths: frozenset[str]  # other paths are counted as "other"
    hosts: frozenset[str] = frozenset()  # allowed in the header Host, beside this machine's own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500
        self.server_metrics.accepted_requests += 1

        async def send_and_record(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _add_headers(message.get("headers", ()))
            await send(message)

        try:
            await self.app(scope, await self._buffer_request(scope, receive), send_and_record)
        except RequestError as error:
            await error.response()(scope, receive, send_and_record)
        finally:
            path = scope["path"] if scope["path"] in self.known_paths else "other"
            self.server_metrics.count_request(path, status, time.perf_counter() - start)

    async def _buffer_request(self, scope: Scope, receive: Receive) -> Receive:
        """Check the request, read its whole body, and return a `receive` that replays it."""
        headers = dict(scope["headers"])
        self._check_head(scope, headers)
        self._check_token(scope["path"], headers)
        body = await self._read_body(headers, receive)
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        return replay

    def _check_head(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Check the size of the head, and its `Host`.

        A web page of another site can make its name point to this machine and so have a browser
        send requests to it (DNS rebinding). Their `Host` is the name of that site.
        """
        size = len(scope["query_string"]) + sum(len(k) + len(v) for k, v in scope["headers"])
        if size > self.limits.max_head_bytes:
            raise RequestError(
                431,
                f"the headers have {size} bytes; the limit is {self.limits.max_head_bytes}",
                Connection="close",
            )
        if b"host" not in headers:  # HTTP/1.0, which browsers do not use
            return
        host = _host_name(headers[b"host"].decode("latin-1"))
        here = (scope.get("server") or ("",))[0]  # the address at which the connection arrived
        if host not in _LOOPBACK_NAMES | self.hosts | {here, f"[{here}]"}:
            raise RequestError(
                421, f"the host {host[:80]!r} is not served; allow it with --allow-host"
            )

    def _check_token(self, path: str, headers: dict[bytes, bytes]) -> None:
        if not self.token or path in PUBLIC_PATHS:
            return
        given = headers.get(b"authorization", b"")
        kind, _, secret = given.partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(secret, self.token.encode()):
            raise RequestError(
                401,
                "this server requires a token; send the header Authorization: Bearer TOKEN",
                WWW_Authenticate="Bearer",
            )

    async def _read_body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        limit = self.limits.max_bytes
        content_length = headers.get(b"content-length", b"0")
        announced = int(content_length) if content_length.isdigit() else 0
        if announced > limit * _DRAIN_FACTOR:
            raise _too_large_error(announced, limit)
        body, size = bytearray(), 0
        try:
            async with asyncio.timeout(self.limits.timeout):
                more = True
                while more and size <= limit * _DRAIN_FACTOR:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestError(400, "the client disconnected before the body was sent")
                    part = message.get("body", b"")
                    size += len(part)
                    if size <= limit:
                        body += part
                    more = message.get("more_body", False)
        except TimeoutError:
            raise RequestError(
                408, f"the body did not arrive within {self.limits.timeout:g} seconds"
            ) from None
        if size > limit:
            raise _too_large_error(size, limit)
        return bytes(body)


def _host_name(given: str) -> str:
    """Return the name in a Host header or an option, without the port.

    >>> _host_name("LocalHost:8000"), _host_name("[::1]:8000"), _host_name("::1")
    ('localhost', '[::1]', '[::1]')
    """
    name = given.strip().lower().rstrip(".")
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return f"[{name}]" if name.count(":") > 1 else name.partition(":")[0]


def allowed_hosts(host: str, others: Iterable[str] = ()) -> frozenset[str]:
    """Return the values of Host that a server on this address accepts, beside loopback names."""
    return frozenset(map(_host_name, (host, *others))) - {""}


def _add_headers(given: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Add the headers that protect browsers, with a policy unless the response has its own."""
    headers = [*given, *_RESPONSE_HEADERS]
    if not any(name == _DEFAULT_POLICY[0] for name, _ in headers):
        headers.append(_DEFAULT_POLICY)
    return headers


def pairs_of_request(
    candidates: list[str], references: list[Any], limits: Limits
) -> tuple[Pair, ...]:
    """Make a pair for each candidate; raise `RequestError` if a limit is exceeded."""
    if len(candidates) != len(references):
        raise RequestError(
            409,
            f"{len(candidates)} candidate{'s' * (len(candidates) != 1)} but {len(references)} "
            f"reference{'s' * (len(references) != 1)}; give one string or one list of strings per "
            "candidate",
        )
    pairs = tuple(
        Pair(candidate, (given,) if isinstance(given, str) else tuple(given))
        for candidate, given in zip(candidates, references, strict=True)
    )
    count = sum(1 + len(pair.references) for pair in pairs)
    if count > limits.max_texts:
        raise RequestError(
            413,
            f"the request has {count} texts; the limit is {limits.max_texts}, "
            "send several requests",
        )
    check_text_lengths(
        (text for pair in pairs for text in (pair.candidate, *pair.references)),
        limits.max_text_length,
    )
    return pairs


def check_text_lengths(texts: Iterable[str], limit: int) -> None:
    """Raise `RequestError` if a text is longer than the limit."""
    longest = max(map(len, texts), default=0)
    if longest > limit:
        raise RequestError(413, f"a text has {longest} characters; the limit is {limit}")


@dataclass(frozen=True)
class CostCheck:
    """The check of a run for some requests: refuses large tables, and cancels abandoned work."""

    max_cells: int
    max_total: int  # cells at a time
    is_abandoned: Callable[[], bool]

    def __call__(self, cells: Sequence[int]) -> None:
        if self.is_abandoned():
            raise RequestError(504, "the request was cancelled")
        largest, total = max(cells, default=0), sum(cells)
        if largest > self.max_cells:
            raise RequestError(
                413, f"a pair has {largest} cells (units × units); the limit is {self.max_cells}"
            )
        if total > self.max_total:
            raise RequestError(
                413,
                f"the texts have {total} cells (units × units); the limit is {self.max_total}, "
                "send several requests",
            )


def check_response_size(body: bytes, limits: Limits) -> bytes:
    """Return the body of a response; raise `RequestError` if it is larger than the limit."""
    if len(body) > limits.max_response_bytes:
        raise RequestError(
            413,
            f"the response would have {len(body)} bytes; the limit is "
            f"{limits.max_response_bytes}, send fewer or shorter texts",
        )
    return body


def _too_large_error(size: int, limit: int) -> RequestError:
    return RequestError(413, f"the body has {size} bytes; the limit is {limit}", Connection="close")
