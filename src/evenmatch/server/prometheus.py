"""Prometheus metrics of the server."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client import generate_latest as render_registry

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class ServerMetrics:
    """Metrics since the start of one server, in a registry of its own.

    The metrics of the process (`process_cpu_seconds_total`, `process_resident_memory_bytes` and
    others) are read from /proc, and absent on systems without it.
    """

    def __init__(self) -> None:
        self.accepted_requests = self.answered_requests = 0
        self._registry = own = CollectorRegistry()
        self._requests = Counter(
            "evenmatch_requests", "Requests answered.", ["path", "status"], registry=own
        )
        self._seconds = Histogram(
            "evenmatch_request_seconds", "Response time.", ["path"], registry=own, buckets=BUCKETS
        )
        self._batches = Counter("evenmatch_batches", "Batches processed.", registry=own)
        self._batched_requests = Counter(
            "evenmatch_batched_requests", "Requests processed in batches.", registry=own
        )
        self._pairs = Counter("evenmatch_pairs", "Pairs processed in batches.", registry=own)
        self.odd_rewards = Counter(
            "evenmatch_odd_rewards",
            "Rewards set to 0 because a text could not be scored.",
            registry=own,
        )
        self.waiting_pairs = Gauge("evenmatch_waiting_pairs", "Pairs in the queue.", registry=own)
        self.dropped_connections = Counter(
            "evenmatch_dropped_connections", "Connections dropped.", ["reason"], registry=own
        )
        ProcessCollector(registry=own)

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.answered_requests += 1
        self._requests.labels(path, status).inc()
        self._seconds.labels(path).observe(seconds)

    def count_batch(self, requests: int, pairs: int) -> None:
        """Count a batch that was processed."""
        self._batches.inc()
        self._batched_requests.inc(requests)
        self._pairs.inc(pairs)

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return render_registry(self._registry)
