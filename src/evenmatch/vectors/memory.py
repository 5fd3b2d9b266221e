"""What a model's passing arrays leave behind, given back to the system."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

_MMAP_THRESHOLD = -3  # mallopt's number for it
_LARGE = 256 << 10


@cache
def give_back_large_blocks() -> None:
    """Tell glibc to return blocks of 256 kB and more to the system as soon as they are freed.

    By itself it learns, from the first large block freed, to keep blocks up to 32 MB. Activations
    of every size then leave holes that nothing fits: a run over four times the pairs took half as
    much memory again. Returned at once, it takes a sixth more, and no more time. Somebody who has
    set the variable MALLOC_MMAP_THRESHOLD_ is left alone, and so is any other libc.
    """
    if not sys.platform.startswith("linux") or "MALLOC_MMAP_THRESHOLD_" in os.environ:
        return
    libc = ctypes.CDLL(None)
    if _is_glibc(libc):
        libc.mallopt(_MMAP_THRESHOLD, _LARGE)


def _is_glibc(libc: ctypes.CDLL) -> bool:
    try:
        return bool(libc.gnu_get_libc_version)
    except AttributeError:
        return False
