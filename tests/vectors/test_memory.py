"""A server gives back what it no longer needs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from evenmatch.vectors.memory import keep_few_kernels

# 640 blocks of 100 kB, which glibc does not take from the system one by one, each with a small one
# after it; the large ones are freed, and stay resident between the small until they are given back.
_PROGRAM = """
import resource
from evenmatch.vectors.memory import give_back_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() >> 10
large, small = [], []
for _ in range(640):
    large.append(bytearray(b"x" * 100_000))
    small.append(bytearray(600))
large.clear()
before = resident()
give_back_memory()
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps freed blocks so")
def test_memory_that_holds_nothing_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True)
    assert int(done.stdout) > 40_000  # kB of the 64,000 that were freed


def test_who_says_how_many_kernels_to_keep_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
    monkeypatch.setenv(name, "7")
    keep_few_kernels()
    assert os.environ[name] == "7"
    monkeypatch.delenv(name)
    keep_few_kernels()
    assert os.environ.pop(name) == "64"
