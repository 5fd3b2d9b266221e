"""Programs that run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def run(program: str, **environment: str) -> str:
    """Run a program in another process and return its output."""
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout
