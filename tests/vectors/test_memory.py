"""Memory that large passing arrays took goes back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

GLIBC = platform.libc_ver()[0] == "glibc"
# Freeing one 16 MB block makes glibc keep blocks up to that size; then 64 of 1 MB with a small
# one after each are freed. What was kept stays resident under the small ones.
_PROGRAM = """
import resource, sys
from evenmatch.vectors.memory import give_back_large_blocks
if sys.argv[1] == "give":
    give_back_large_blocks()
bytearray(16 << 20)
large, small = [], []
for _ in range(64):
    large.append(bytearray(b"x" * (1 << 20)))
    small.append(bytearray(100_000))
large.clear()
pages = int(open("/proc/self/statm").read().split()[1])
print(pages * resource.getpagesize() >> 20)
"""


def _resident(how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, how], check=True, capture_output=True, text=True
    )
    return int(done.stdout)


@pytest.mark.skipif(not GLIBC, reason="only glibc keeps freed blocks in this way")
def test_large_blocks_go_back_as_soon_as_they_are_freed() -> None:
    assert _resident("give") < _resident("keep") - 40
