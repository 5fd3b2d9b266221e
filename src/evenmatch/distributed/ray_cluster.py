"""Workers as actors of a Ray cluster, or of a local Ray instance started for the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from evenmatch.distributed.messages import (
    ShardDone,
    ShardFailed,
    ShardTask,
    StartupMonitor,
    WorkerJob,
    WorkerPool,
    WorkerReady,
    WorkerReply,
    available_cores,
    thread_environment,
)
from evenmatch.distributed.worker import Worker, one_line_message
from evenmatch.errors import DataError, EvenmatchError, InputError, MissingExtraError


@dataclass(frozen=True)
class Ray:
    """Runner with Ray actors, on the cluster at `address` or else on this machine.

    With 0 workers the whole cluster is used. `working_dir` is copied to every node and is the base
    of relative paths in specs; `models` is the folder of the embedded models on the nodes.
    """

    workers: int = 0
    threads: int = 1
    address: str = ""
    working_dir: str = ""
    models: str = ""

    @contextmanager
    def __call__(self, job: WorkerJob) -> Iterator[WorkerPool]:
        """Open the pool; it is closed at the end of the block.

        Ray is shut down too, unless it was initialised before.
        """
        ray = load_ray()
        ours = not ray.is_initialized()
        if ours:
            self._connect(ray)
        try:
            pool = _ActorPool(
                ray, job, self._worker_count(ray), self.threads or 1, self._environment()
            )
            try:
                yield pool
            finally:
                pool.close()
        finally:
            if ours:
                ray.shutdown()

    def _connect(self, ray: Any) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no usage statistics
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if self.address:
                ray.init(address=self.address, **quiet)
            else:
                cpus = max(available_cores(), self.workers * (self.threads or 1))
                ray.init(address="local", num_cpus=cpus, include_dashboard=False, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise DataError(
                f"cannot reach Ray at {self.address or 'this machine'}: {one_line_message(error)}"
            ) from None

    def _worker_count(self, ray: Any) -> int:
        available, per_worker = int(ray.cluster_resources().get("CPU", 0)), self.threads or 1
        if available < per_worker:
            raise InputError(
                f"a worker needs {per_worker} CPUs, but the whole cluster has {available}; "
                "use fewer threads"
            )
        return self.workers or available // per_worker

    def _environment(self) -> dict[str, Any]:
        variables = thread_environment(self.threads or 1)
        if self.models:
            variables["EVENMATCH_MODELS"] = self.models
        environment: dict[str, Any] = {"env_vars": variables}
        return environment | ({"working_dir": self.working_dir} if self.working_dir else {})


def load_ray() -> Any:
    """Import ray; raise `MissingExtraError` if it is not installed."""
    try:
        import ray
    except ImportError:
        raise MissingExtraError(
            "--on ray needs Ray; install it with: pip install 'evenmatch[ray]', "
            "or use --on processes"
        ) from None
    return ray


class _Actor:
    """The actor on a node: it holds a worker, created by `start`."""

    def start(self, job: WorkerJob) -> WorkerReady | EvenmatchError:
        try:
            self._worker = Worker(job)
        except EvenmatchError as error:
            return error
        return self._worker.ready

    def work(self, task: ShardTask) -> ShardDone | ShardFailed:
        return self._worker(task)


@dataclass(eq=False)
class _Handle:
    """The driver's handle of an actor."""

    actor: Any
    ready: bool = False
    task: ShardTask | None = None


@dataclass
class _ActorPool:
    ray: Any
    job: WorkerJob
    workers: int
    threads: int
    environment: dict[str, Any]
    startup: StartupMonitor = field(default_factory=StartupMonitor)
    handles: list[_Handle] = field(default_factory=list)
    pending: dict[Any, _Handle] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._actor_class = self.ray.remote(_Actor)
        self._job = self.ray.put(self.job)
        self._start_missing()

    def idle_count(self) -> int:
        return len(self._idle_workers())

    def _idle_workers(self) -> list[_Handle]:
        return [h for h in self.handles if h.ready and h.task is None]

    def submit(self, task: ShardTask) -> None:
        handle = self._idle_workers()[0]
        handle.task = task
        self.pending[handle.actor.work.remote(task)] = handle

    def replies(self) -> list[WorkerReply]:
        """Wait for replies and return them; replace actors that died."""
        self.ray.wait(list(self.pending), num_returns=1)
        finished, _ = self.ray.wait(list(self.pending), num_returns=len(self.pending), timeout=0)
        found = [self._receive(reference) for reference in finished]
        self._start_missing()
        return [reply for reply in found if reply is not None]

    def _receive(self, reference: Any) -> WorkerReply | None:
        handle = self.pending.pop(reference)
        try:
            reply: WorkerReply | EvenmatchError = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            return self._remove_dead(handle, error)
        if isinstance(reply, EvenmatchError):
            raise reply
        if isinstance(reply, WorkerReady):
            handle.ready = True
            self.startup.record_success()
        else:
            handle.task = None
        return reply

    def _remove_dead(self, handle: _Handle, error: BaseException) -> WorkerReply | None:
        why = f"the worker died ({str(error).strip().splitlines()[-1].strip()})"
        self.ray.kill(handle.actor)
        self.handles.remove(handle)
        if not handle.ready:
            self.startup.record_failure(why)
        return ShardFailed(handle.task.number, why) if handle.task is not None else None

    def _start_missing(self) -> None:
        while len(self.handles) < self.workers:
            options = {"num_cpus": self.threads, "runtime_env": self.environment}
            handle = _Handle(self._actor_class.options(**options).remote())
            self.handles.append(handle)
            self.pending[handle.actor.start.remote(self._job)] = handle

    def close(self) -> None:
        for handle in self.handles:
            self.ray.kill(handle.actor)
