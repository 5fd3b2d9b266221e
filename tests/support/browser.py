"""Fixtures that open pages in a browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest

Open: TypeAlias = Callable[..., Any]


# Not session-scoped: the driver keeps an event loop running, so no other test could start one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's chromium, driven by playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium")
    if not program:
        pytest.skip("chromium is not installed; on Debian: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        # Without its sandbox chromium also starts as root, as in a container.
        running = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Open]:
    """Open pages, and fail on page errors, console messages or requests to other hosts."""
    problems: list[str] = []
    with ExitStack() as stack:

        def go(
            address: str,
            *,
            width: int = 1100,
            dark: bool = False,
            home: str = "file:",
            expected: str = "",
        ) -> Any:
            def note(message: str) -> None:
                if not expected or expected not in message:
                    problems.append(message)

            def watch(request: Any) -> None:
                if not request.url.startswith((home, "data:")):
                    problems.append(request.url)

            context = browser.new_context(
                viewport={"width": width, "height": 900},
                color_scheme="dark" if dark else "light",
                permissions=["clipboard-read", "clipboard-write"],
            )
            stack.callback(context.close)
            page = context.new_page()
            page.on("console", lambda message: note(message.text))
            page.on("pageerror", lambda error: note(str(error)))
            page.on("request", watch)
            page.goto(address)
            return page

        yield go
    assert problems == []
