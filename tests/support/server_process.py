"""Run a server in another process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LSA = "align(vectors=hashed, alignment=lsa)"


@contextmanager
def running(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server and yield its process and address."""
    line = [sys.executable, "-m", "evenmatch", "serve", "-m", LSA, "--port", "0", *options]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found
        try:
            yield process, found[0]
        finally:
            process.kill()
