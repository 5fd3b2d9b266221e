"""What every request passes first: the token, the size of its body, the clock."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from evenmatch.uses.serve.figures import Figures
from evenmatch.uses.serve.limits import Limits, RefusedError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

# The page and its description hold nothing secret; whether a server lives must be easy to ask.
OPEN = frozenset({"/", "/health", "/openapi.json"})
_DRAINED = 16  # times the limit: so much of a body too large is read to let its sender listen


@dataclass(frozen=True)
class Guard:
    """An application behind its token and its limits."""

    app: App
    limits: Limits
    figures: Figures
    token: str
    paths: frozenset[str]  # known ones, so that made-up paths do not fill the figures

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500
        self.figures.accepted += 1

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, await self._admitted(scope, receive), watched)
        except RefusedError as refused:
            await refuse(refused, watched)
        finally:
            path = scope["path"] if scope["path"] in self.paths else "other"
            self.figures.count_request(path, status, time.perf_counter() - start)

    async def _admitted(self, scope: MutableMapping[str, Any], receive: Receive) -> Receive:
        """The request with its whole body read, or a refusal."""
        headers = dict(scope["headers"])
        self._check_token(scope["path"], headers)
        body = await self._body(headers, receive)
        sent = False

        async def again() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        return again

    def _check_token(self, path: str, headers: dict[bytes, bytes]) -> None:
        if not self.token or path in OPEN:
            return
        given = headers.get(b"authorization", b"")
        kind, _, secret = given.partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(secret, self.token.encode()):
            raise RefusedError(
                401,
                "this server wants its token; send the header Authorization: Bearer TOKEN",
                WWW_Authenticate="Bearer",
            )

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        most = self.limits.most_bytes
        announced = headers.get(b"content-length", b"0")
        much = int(announced) if announced.isdigit() else 0
        if much > most * _DRAINED:
            raise _too_large(much, most)
        body, size = bytearray(), 0
        try:
            async with asyncio.timeout(self.limits.timeout):
                more = True
                while more and size <= most * _DRAINED:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RefusedError(400, "the line was cut before the body had arrived")
                    part = message.get("body", b"")
                    size += len(part)
                    if size <= most:
                        body += part
                    more = message.get("more_body", False)
        except TimeoutError:
            raise RefusedError(
                408, f"the body did not arrive within {self.limits.timeout:g} seconds"
            ) from None
        if size > most:
            raise _too_large(size, most)
        return bytes(body)


def _too_large(size: int, most: int) -> RefusedError:
    return RefusedError(
        413, f"a body of {size} bytes; at most {most} are taken", Connection="close"
    )


async def refuse(refused: RefusedError, send: Send) -> None:
    """Answer with the refusal."""
    body = json.dumps({"detail": refused.detail}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body))}
    headers |= {name.lower(): value for name, value in refused.headers.items()}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
