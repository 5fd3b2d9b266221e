"""Memory that is no longer needed is given back."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from evenmatch.models.loading import limit_kernel_cache

# 1280 blocks of 60 kB, which glibc does not take from the system one by one; every other is freed,
# and stays resident between its neighbours until it is given back.
_PROGRAM = """
import resource
from evenmatch.models.loading import trim_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() >> 10
blocks = [bytearray(b"x" * 60_000) for _ in range(1280)]
del blocks[::2]
before = resident()
trim_memory()
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps freed blocks so")
def test_memory_that_holds_nothing_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True)
    assert int(done.stdout) > 20_000  # kB of the 38,000 that were freed


def test_who_says_how_many_kernels_to_keep_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
    monkeypatch.setenv(name, "7")
    limit_kernel_cache()
    assert os.environ[name] == "7"
    monkeypatch.delenv(name)
    limit_kernel_cache()
    assert os.environ.pop(name) == "64"
