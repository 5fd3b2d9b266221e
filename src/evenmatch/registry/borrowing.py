"""Settings that one maker of parts takes over from another."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def with_settings_of(
    make: Callable[..., Any], *but: str
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """A maker that shows the settings of another, `but` some, and is given them by name.

    Specs read a part's settings off its maker's signature; so that they need not be written out
    again, the signature is taken from where they stand.
    """
    own = inspect.signature(make, eval_str=True).parameters
    settings = inspect.Signature([p for name, p in own.items() if name not in but])

    def take(named: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(named)
        def with_settings(*given: Any, **by_name: Any) -> T:
            return named(**settings.bind(*given, **by_name).arguments)

        with_settings.__signature__ = settings  # type: ignore[attr-defined]  # where inspect looks first
        with_settings.__annotations__ = {n: p.annotation for n, p in settings.parameters.items()}
        return with_settings

    return take
