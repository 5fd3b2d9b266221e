"""Memory that libraries keep for later, held down in a process that runs for long."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache

_CACHED = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_FEW = "64"


def keep_few_kernels() -> None:
    """Let torch's matrix library keep few of the kernels it made; said before a model runs.

    It makes one for each shape of a batch and keeps 1024, which fill up for minutes: under load a
    server grew from 726 to 871 MB in two and a half minutes, and with this stayed at some 730 MB;
    a run of 16,000 pairs took a quarter more memory than one of 4,000. It costs no measurable
    time. Somebody who has set the variable is left alone.
    """
    os.environ.setdefault(_CACHED, _FEW)


def model_has_run() -> bool:
    """Whether a model may have run in this process; none does without torch."""
    return "torch" in sys.modules


def give_back_memory() -> None:
    """Return pages that hold nothing any more; does nothing where the C library has no such call.

    A model's passing arrays are of every size and leave holes that glibc keeps. Over many windows,
    or in a server that runs for days, they add up.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except AttributeError:  # another libc
        return None
    return found
