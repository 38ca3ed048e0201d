#!/usr/bin/env python3
"""Runs the benchmarks and their peers and compares them. Started by scripts/bench.sh, which builds ours first.

benchmarks/README.md defines each figure. Ours and its baseline run by turns in one session, and each figure is the
median over the rounds. What is missing or fails leaves a row that says so; a failure makes the exit code 1.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

from compiling import COMPILE_ROWS, compile_budget
from in_process import ask_tell, in_process, open_100k
from local_trials import local_trials, turn_around
from metrics import metrics_batched, metrics_per_request
from recovery import attacks, crash, resume_latency
from session import ROOT, Session
from starvation import starvation
from table import table

GROUPS = {  # function: its rows, and the programs of ours that it runs
    local_trials: (
        ["local_trials"]
        + [f"local_trials.{s}" for s in ("direct", "bare_loop", "xargs", "parallel", "hyperqueue")]
        + [f"local_trials.{s}" for s in ("cpu", "cpu_direct", "cpu_all")]
        + [f"local_trials.cpu_all.{s}" for s in ("bare_loop", "xargs", "parallel", "hyperqueue")],
        ["local_trials"],
    ),
    turn_around: (["turn_around", "turn_around.p99"], ["turn_around"]),
    in_process: (
        [f"in_process_memory{s}" for s in ("", ".optuna", ".bytes", ".bytes.optuna")]
        + ["in_process_durable", "in_process_durable.bytes", "sqlite_limit"]
        + [f"sqlite_limit.{s}" for s in ("once", "unsynced")],
        ["in_process"],
    ),
    open_100k: (
        [f"open_100k{s}" for s in ("", ".bytes", ".histories", ".histories.bytes")],
        ["open_100k"],
    ),
    ask_tell: (["ask_tell"], ["ask_tell"]),
    starvation: ([f"starvation{s}" for s in ("", ".limit", ".stop", ".ctrl_c", ".memory")], ["starvation"]),
    metrics_per_request: ([f"metrics_per_request{s}" for s in ("", ".p99", ".python_sdk")], ["metrics"]),
    metrics_batched: (["metrics_batched", "metrics_batched.p99"], ["metrics", "metrics_trial"]),
    compile_budget: (COMPILE_ROWS, []),
    resume_latency: (["resume_latency"], ["resume_latency"]),
    crash: (["crash", "crash.not_adopted", "crash.kills"], []),
    attacks: (["attacks", "attacks.memory", "attacks.p99", "attacks.count"], []),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build folder; programs of ours are in its bin/")
    parser.add_argument("--only", default="", help="shell pattern, matched anywhere in the name of a row")
    parser.add_argument("--json", default=None, help="file for the rows")
    parser.add_argument("--quick", action="store_true", help="less work, rough figures")
    parser.add_argument("--peers-only", action="store_true", help="measure the peers alone")
    parser.add_argument("--programs", action="store_true", help="only print the programs that are to be built")
    options = parser.parse_args()

    session = Session(options)
    groups = {run_group: about for run_group, about in GROUPS.items() if any(map(session.wants, about[0]))}
    if not groups:
        names = "\n  ".join(name for names, _ in GROUPS.values() for name in names)
        sys.exit(f"bench: no row matches '{options.only}'; there are\n  {names}")
    if options.json and not pathlib.Path(options.json).resolve().parent.is_dir():
        sys.exit(f"bench: the folder of --json {options.json} does not exist")
    if options.programs:
        programs = {program for _, programs in groups.values() for program in programs}
        print("".join(f"{p}\n" for p in sorted(programs) if (ROOT / "benchmarks" / f"{p}.cpp").exists()), end="")
        return 0

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    place = pathlib.Path(os.environ.get("NNI_BENCH_DIRECTORY") or session.build / "run")
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=place) as work:
        session.work = work
        load = os.getloadavg()[0]
        print(f"== {os.cpu_count()} processors, load {load:.1f}, files in {place}{', quick' if session.quick else ''}")
        for run_group in groups:
            begin = time.monotonic()
            print(f"== {run_group.__name__} ... ", end="", flush=True)
            run_group(session)
            print(f"{time.monotonic() - begin:.0f} s", flush=True)
        print(f"\n{table(session.rows)}", flush=True)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(session.rows, indent=2) + "\n", encoding="ascii")
    return 1 if session.failures else 0


if __name__ == "__main__":
    sys.exit(main())
