"""One large run, measured from inside its own process.

    python -m benchmarks.scale.worker_run IN OUT METRIC WORKERS ROWS

A separate process, so that memory and time of other runs do not count.
"""

from __future__ import annotations

import json
import resource
import sys
import time

from evenmatch.distributed.processes import Processes
from evenmatch.distributed.run import score_files


def main(given: str, out: str, metric: str, workers: str, rows: str) -> None:
    start = time.perf_counter()
    found = score_files(given, out, metric, on=Processes(int(workers), 1), shard_rows=int(rows))
    seconds = time.perf_counter() - start
    driver = resource.getrusage(resource.RUSAGE_SELF)
    result = {
        "seconds": seconds,
        "spent": dict(found.seconds),
        "driver seconds": driver.ru_utime + driver.ru_stime,
        "worker MB": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
