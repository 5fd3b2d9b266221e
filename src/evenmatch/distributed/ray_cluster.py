"""Workers as actors of a Ray cluster, or of a local Ray instance started for the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from evenmatch.distributed.pool import (
    BackendMessage,
    ShardDone,
    ShardFailed,
    ShardTask,
    WorkerDied,
    WorkerJob,
    WorkerPool,
    WorkerReady,
    available_cores,
    open_pool,
    thread_environment,
)
from evenmatch.distributed.worker import Worker, one_line_message
from evenmatch.errors import DataError, EvenmatchError, InputError, needs_extra

# Time for a cluster to accept a connection. Ray itself tries for many minutes.
CONNECT_SECONDS = 30.0

_CONNECT = """
import sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
"""


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
        with needs_extra(
            "--on ray needs Ray; install it with: pip install 'evenmatch[ray]', "
            "or use --on processes"
        ):
            import ray
        ours = not ray.is_initialized()
        if ours:
            self._connect(ray)
        try:
            workers = self._worker_count(ray)
            options = {"num_cpus": self.threads or 1, "runtime_env": self._environment()}
            with open_pool(_ActorBackend(ray, job, options), workers) as pool:
                yield pool
        finally:
            if ours:
                ray.shutdown()

    def _connect(self, ray: Any) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no usage statistics
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if self.address:
                check_ray_address(self.address)
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
        directory = {"working_dir": self.working_dir} if self.working_dir else {}
        return {"env_vars": variables, **directory}


def check_ray_address(address: str) -> None:
    """Raise `DataError` if no Ray cluster accepts a connection in time.

    A process of its own tries to connect: `ray.init` cannot be interrupted, and ends the whole
    process for some errors.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _CONNECT, address],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # so that the processes it starts can be ended with it
    )
    try:
        _, said = process.communicate(timeout=CONNECT_SECONDS)
    except subprocess.TimeoutExpired:
        raise DataError(
            f"no Ray cluster answers at {address} within {CONNECT_SECONDS:g} seconds; "
            "check --ray-address, and that the cluster runs there"
        ) from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    if process.returncode:
        last = (said.strip().splitlines() or ["it ended without a message"])[-1]
        raise DataError(f"cannot reach Ray at {address}: {last[:300]}")


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


class _ActorBackend:
    def __init__(self, ray: Any, job: WorkerJob, options: dict[str, Any]) -> None:
        self._ray, self._job = ray, ray.put(job)
        self._actor_class = ray.remote(_Actor).options(**options)
        self._pending: dict[Any, Any] = {}  # the actor by the reference of its next reply

    def start(self) -> Any:
        actor = self._actor_class.remote()
        self._pending[actor.start.remote(self._job)] = actor
        return actor

    def send(self, actor: Any, task: ShardTask) -> None:
        self._pending[actor.work.remote(task)] = actor

    def receive(self, actors: Collection[Any]) -> list[tuple[Any, BackendMessage]]:
        self._ray.wait(list(self._pending), num_returns=1)
        finished, _ = self._ray.wait(list(self._pending), num_returns=len(self._pending), timeout=0)
        return [(self._pending.pop(reference), self._get(reference)) for reference in finished]

    def _get(self, reference: Any) -> BackendMessage:
        try:
            reply: BackendMessage = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return WorkerDied(f"the worker died ({str(error).strip().splitlines()[-1].strip()})")
        return reply

    def stop(self, actor: Any) -> None:
        self._ray.kill(actor)
