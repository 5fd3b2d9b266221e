"""A Ray address where no cluster answers."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.distributed import ray_cluster

pytest.importorskip("ray", reason="ray is not installed")


def session_members() -> set[str]:
    """Processes that were started from this one, in any session."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/environ"):
        try:
            if b"EVENMATCH_RAY_TEST=1" in status.read_bytes():
                found.add(status.parent.name)
        except OSError:
            continue
    return found


def test_silence_is_one_line_after_the_stated_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "CONNECT_SECONDS", 4.0)
    monkeypatch.setitem(os.environ, "EVENMATCH_RAY_TEST", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(em.DataError, match=r"no Ray cluster answers at .* within 4 seconds"):
            ray_cluster.check_ray_address(address)
    assert time.monotonic() - start < 20
    assert session_members() == set()


def test_an_address_without_a_port_says_why() -> None:
    with pytest.raises(em.DataError, match="cannot reach Ray at nowhere:port: "):
        ray_cluster.check_ray_address("nowhere:port")
