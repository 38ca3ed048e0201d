"""Tasks of one command each on HyperQueue, server and worker in this process, output files on.

    hyperqueue_tasks.py [--count N] [--cores N] [--directory DIR] -- COMMAND [ARGUMENT...]

Prints one JSON object: rate (tasks per second from submission to the end of the last one), seconds, cpu_all_us
(processor time of this process and of the tasks, per task, microseconds), version.
"""

import argparse
import importlib.metadata
import json
import os
import resource
import sys
import tempfile
import time

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig


def cpu_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--directory", default=None, help="where the output files go; default: a temporary directory")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    result = sys.stdout
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        os.chdir(directory)
        with LocalCluster() as cluster:
            cluster.start_worker(WorkerConfig(cores=options.cores))
            client = cluster.client()
            job = Job(max_fails=None)
            for _ in range(options.count):
                job.program(options.command)
            start, cpu = time.perf_counter(), cpu_seconds()
            submitted = client.submit(job)
            finished = client.wait_for_jobs([submitted], raise_on_error=False)
            seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
        os.chdir("/")
    if not finished:
        sys.exit("some tasks failed")

    print(
        json.dumps(
            {
                "rate": options.count / seconds,
                "seconds": seconds,
                "count": options.count,
                "cpu_all_us": cpu * 1e6 / options.count,
                "version": importlib.metadata.version("hyperqueue"),
            }
        ),
        file=result,
    )


if __name__ == "__main__":
    main()
