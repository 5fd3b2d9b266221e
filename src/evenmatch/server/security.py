"""What every request passes first: the token, the size of its body, the clock.

How much one request may ask for, how many may wait, and how a request is refused.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

from evenmatch.server.prometheus import ServerMetrics
from evenmatch.types import Pair

Message = MutableMapping[str, Any]


Receive = Callable[[], Awaitable[Message]]


Send = Callable[[Message], Awaitable[None]]


App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


# The page and its description hold nothing secret; whether a server lives must be easy to ask.
PUBLIC_PATHS = frozenset({"/", "/health", "/openapi.json"})


_DRAIN_FACTOR = 16  # times the limit: so much of a body too large is read to let its sender listen


@dataclass(frozen=True)
class SecurityMiddleware:
    """An application behind its token and its limits."""

    app: App
    limits: Limits
    server_metrics: ServerMetrics
    token: str
    known_paths: frozenset[str]  # known ones, so that made-up paths do not fill the figures

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500
        self.server_metrics.accepted_requests += 1

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, await self._buffer_request(scope, receive), watched)
        except RequestError as refused:
            await send_error(refused, watched)
        finally:
            path = scope["path"] if scope["path"] in self.known_paths else "other"
            self.server_metrics.count_request(path, status, time.perf_counter() - start)

    async def _buffer_request(self, scope: MutableMapping[str, Any], receive: Receive) -> Receive:
        """The request with its whole body read, or a refusal."""
        headers = dict(scope["headers"])
        self._check_token(scope["path"], headers)
        body = await self._read_body(headers, receive)
        sent = False

        async def again() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        return again

    def _check_token(self, path: str, headers: dict[bytes, bytes]) -> None:
        if not self.token or path in PUBLIC_PATHS:
            return
        given = headers.get(b"authorization", b"")
        kind, _, secret = given.partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(secret, self.token.encode()):
            raise RequestError(
                401,
                "this server wants its token; send the header Authorization: Bearer TOKEN",
                WWW_Authenticate="Bearer",
            )

    async def _read_body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        most = self.limits.max_bytes
        announced = headers.get(b"content-length", b"0")
        much = int(announced) if announced.isdigit() else 0
        if much > most * _DRAIN_FACTOR:
            raise _too_large_error(much, most)
        body, size = bytearray(), 0
        try:
            async with asyncio.timeout(self.limits.timeout):
                more = True
                while more and size <= most * _DRAIN_FACTOR:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestError(400, "the line was cut before the body had arrived")
                    part = message.get("body", b"")
                    size += len(part)
                    if size <= most:
                        body += part
                    more = message.get("more_body", False)
        except TimeoutError:
            raise RequestError(
                408, f"the body did not arrive within {self.limits.timeout:g} seconds"
            ) from None
        if size > most:
            raise _too_large_error(size, most)
        return bytes(body)


def _too_large_error(size: int, most: int) -> RequestError:
    return RequestError(
        413, f"a body of {size} bytes; at most {most} are taken", Connection="close"
    )


async def send_error(refused: RequestError, send: Send) -> None:
    """Answer with the refusal."""
    body = json.dumps({"detail": refused.detail}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body))}
    headers |= {name.lower(): value for name, value in refused.headers.items()}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True)
class Limits:
    """Bounds that keep the server alive whatever it is sent."""

    max_bytes: int = 4 << 20  # of one request's body
    max_texts: int = 2048  # of one request, references included
    max_text_length: int = 20_000  # characters
    max_aligned_length: int = 2_000  # characters of a text to align: the answer grows as a product
    max_queued_pairs: int = 8192  # pairs that wait for their turn, over all requests
    timeout: float = 60.0  # seconds until a request is answered, or its body has arrived


class RequestError(Exception):
    """A request that is not carried out: its status, and what to say."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def pairs_of_request(
    candidates: list[str], references: list[Any], limits: Limits
) -> tuple[Pair, ...]:
    """One pair per candidate, or a refusal that says which bound it is beyond."""
    if len(candidates) != len(references):
        raise RequestError(
            409,
            f"{len(candidates)} candidates but {len(references)} references; give one string or "
            "one list of strings per candidate",
        )
    pairs = tuple(
        Pair(candidate, (given,) if isinstance(given, str) else tuple(given))
        for candidate, given in zip(candidates, references, strict=True)
    )
    count = sum(1 + len(pair.references) for pair in pairs)
    if count > limits.max_texts:
        raise RequestError(
            413, f"{count} texts in one request; at most {limits.max_texts}, send several requests"
        )
    check_text_lengths(
        (text for pair in pairs for text in (pair.candidate, *pair.references)),
        limits.max_text_length,
    )
    return pairs


def check_text_lengths(texts: Iterable[str], longest: int) -> None:
    """Refuse a text that is too long."""
    found = max(map(len, texts), default=0)
    if found > longest:
        raise RequestError(413, f"a text of {found} characters; at most {longest} are taken")
