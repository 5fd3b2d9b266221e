"""Workers as actors of a Ray cluster, or of a Ray that is started for the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from evenmatch.errors import DataError, EvenmatchError, InputError, MissingExtraError
from evenmatch.uses.scale.job import Done, Failed, Job, Ready, Reply, Task
from evenmatch.uses.scale.pool import Pool, Starts, cores, thread_environment
from evenmatch.uses.scale.worker import Worker, one_line


@dataclass(frozen=True)
class Ray:
    """Actors on a cluster: by its address, or on this machine where there is none.

    0 workers is as many as the cluster's cores hold. `working_dir` is sent to every node and
    relative paths in specs begin there; `models` is where embedded models lie on the nodes.
    """

    workers: int = 0
    threads: int = 1
    address: str = ""
    working_dir: str = ""
    models: str = ""

    @contextmanager
    def __call__(self, job: Job) -> Iterator[Pool]:
        """The pool, for as long as the block runs; a Ray that was there before stays."""
        ray = load_ray()
        ours = not ray.is_initialized()
        if ours:
            self._connect(ray)
        try:
            pool = _ActorPool(ray, job, self._count(ray), self.threads or 1, self._environment())
            try:
                yield pool
            finally:
                pool.close()
        finally:
            if ours:
                ray.shutdown()

    def _connect(self, ray: Any) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no word to anybody's server
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if self.address:
                ray.init(address=self.address, **quiet)
            else:
                room = max(cores(), self.workers * (self.threads or 1))
                ray.init(address="local", num_cpus=room, include_dashboard=False, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise DataError(
                f"cannot reach Ray at {self.address or 'this machine'}: {one_line(error)}"
            ) from None

    def _count(self, ray: Any) -> int:
        there, each = int(ray.cluster_resources().get("CPU", 0)), self.threads or 1
        if there < each:
            raise InputError(f"a worker takes {each} CPUs and the whole cluster has {there}")
        return self.workers or there // each

    def _environment(self) -> dict[str, Any]:
        variables = thread_environment(self.threads or 1)
        if self.models:
            variables["EVENMATCH_MODELS"] = self.models
        found: dict[str, Any] = {"env_vars": variables}
        return found | ({"working_dir": self.working_dir} if self.working_dir else {})


def load_ray() -> Any:
    """The ray package."""
    try:
        import ray
    except ImportError:
        raise MissingExtraError(
            "--on ray needs Ray; install it with: pip install 'evenmatch[ray]', "
            "or use --on processes"
        ) from None
    return ray


class _Actor:
    """What runs on a node: a worker, made by the first call."""

    def start(self, job: Job) -> Ready | EvenmatchError:
        try:
            self._worker = Worker(job)
        except EvenmatchError as error:
            return error
        return self._worker.ready

    def work(self, task: Task) -> Done | Failed:
        return self._worker(task)


@dataclass(eq=False)
class _Handle:
    """One actor as the driver knows it."""

    actor: Any
    ready: bool = False
    task: Task | None = None


@dataclass
class _ActorPool:
    ray: Any
    job: Job
    workers: int
    threads: int
    environment: dict[str, Any]
    starts: Starts = field(default_factory=Starts)
    handles: list[_Handle] = field(default_factory=list)
    awaited: dict[Any, _Handle] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._kind = self.ray.remote(_Actor)
        self._job = self.ray.put(self.job)
        self._fill()

    def idle(self) -> int:
        return len(self._idle())

    def _idle(self) -> list[_Handle]:
        return [h for h in self.handles if h.ready and h.task is None]

    def give(self, task: Task) -> None:
        handle = self._idle()[0]
        handle.task = task
        self.awaited[handle.actor.work.remote(task)] = handle

    def replies(self) -> list[Reply]:
        """What has been said since; waits until something has."""
        self.ray.wait(list(self.awaited), num_returns=1)
        told, _ = self.ray.wait(list(self.awaited), num_returns=len(self.awaited), timeout=0)
        found = [self._hear(reference) for reference in told]
        self._fill()
        return [reply for reply in found if reply is not None]

    def _hear(self, reference: Any) -> Reply | None:
        handle = self.awaited.pop(reference)
        try:
            said: Reply | EvenmatchError = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            return self._bury(handle, error)
        if isinstance(said, EvenmatchError):
            raise said
        if isinstance(said, Ready):
            handle.ready = True
            self.starts.went_well()
        else:
            handle.task = None
        return said

    def _bury(self, handle: _Handle, error: BaseException) -> Reply | None:
        why = f"the worker died ({str(error).strip().splitlines()[-1].strip()})"
        self.ray.kill(handle.actor)
        self.handles.remove(handle)
        if not handle.ready:
            self.starts.died(why)
        return Failed(handle.task.number, why) if handle.task is not None else None

    def _fill(self) -> None:
        while len(self.handles) < self.workers:
            options = {"num_cpus": self.threads, "runtime_env": self.environment}
            handle = _Handle(self._kind.options(**options).remote())
            self.handles.append(handle)
            self.awaited[handle.actor.start.remote(self._job)] = handle

    def close(self) -> None:
        for handle in self.handles:
            self.ray.kill(handle.actor)
