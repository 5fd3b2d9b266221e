"""The example of two Ray nodes on this machine's loopback addresses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "two_ray_nodes.sh"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address")
def test_two_nodes_and_then_one_give_the_scores_of_one_process(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", str(SCRIPT)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "node 127.0.0.2 with 1 CPU\n" in done.stdout
    assert "node 127.0.0.3 with 1 CPU\n" in done.stdout
    said = "20000 rows as in one process, largest difference 0.0\n"
    assert done.stdout.count(said) == 2
    assert list(tmp_path.iterdir()) == []
