"""Prometheus metrics of the server."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class ServerMetrics:
    """Counters since the start of the server; used only in the event loop's thread."""

    def __init__(self) -> None:
        self.accepted_requests = 0
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._bucket_counts: Counter[tuple[str, float]] = Counter()
        self._work_counts: Counter[str] = Counter()

    @property
    def answered_requests(self) -> int:
        """Number of requests that have been answered."""
        return self._requests.total()

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests[path, status] += 1
        self._seconds[path] += seconds
        for bound in BUCKETS:
            self._bucket_counts[path, bound] += seconds <= bound

    def count_batch(self, requests: int, pairs: int) -> None:
        """Count a batch that was processed."""
        self._work_counts["batches"] += 1
        self._work_counts["batched_requests"] += requests
        self._work_counts["pairs"] += pairs

    def count_odd_rewards(self, rows: int) -> None:
        """Count rewards that are 0 because a text could not be scored."""
        self._work_counts["odd_rewards"] += rows

    def render(self, waiting: int) -> str:
        """All metrics in the text format of Prometheus."""
        return "\n".join([*self._lines(waiting), ""])

    def _lines(self, waiting: int) -> Iterator[str]:
        yield from _header_lines("evenmatch_requests_total", "counter", "Requests answered.")
        for (path, status), count in sorted(self._requests.items()):
            yield f'evenmatch_requests_total{{path="{path}",status="{status}"}} {count}'
        yield from _header_lines("evenmatch_request_seconds", "histogram", "Response time.")
        yield from self._histogram()
        for name, about in (
            ("batches", "Batches processed."),
            ("batched_requests", "Requests processed in batches."),
            ("pairs", "Pairs processed in batches."),
            ("odd_rewards", "Rewards set to 0 because a text could not be scored."),
        ):
            yield from _header_lines(f"evenmatch_{name}_total", "counter", about)
            yield f"evenmatch_{name}_total {self._work_counts[name]}"
        yield from _header_lines("evenmatch_waiting_pairs", "gauge", "Pairs in the queue.")
        yield f"evenmatch_waiting_pairs {waiting}"
        yield from _header_lines("process_cpu_seconds_total", "counter", "CPU time used.")
        yield f"process_cpu_seconds_total {time.process_time():.3f}"
        if resident := _resident_bytes():
            yield from _header_lines("process_resident_memory_bytes", "gauge", "Resident memory.")
            yield f"process_resident_memory_bytes {resident}"

    def _histogram(self) -> Iterator[str]:
        name = "evenmatch_request_seconds"
        counts: Counter[str] = Counter()
        for (path, _), count in self._requests.items():
            counts[path] += count
        for path, count in sorted(counts.items()):
            for bound in BUCKETS:
                within = self._bucket_counts[path, bound]
                yield f'{name}_bucket{{path="{path}",le="{bound}"}} {within}'
            yield f'{name}_bucket{{path="{path}",le="+Inf"}} {count}'
            yield f'{name}_sum{{path="{path}"}} {self._seconds[path]:.6f}'
            yield f'{name}_count{{path="{path}"}} {count}'


def _header_lines(name: str, kind: str, about: str) -> tuple[str, str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def _resident_bytes() -> int:
    """Resident memory in bytes, from /proc; 0 on systems without it."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
