#!/usr/bin/env python3
"""Kills managers and keepers of experiments, resumes them, and checks that nothing was lost or done twice.

Started by scripts/crash.sh, which builds the programs. Four kinds of jobs:

  points    the process kills itself at a named point (include/nni/core/crash_point.hpp), at the first, the second and a
            random passage, in a fresh experiment and in one that is being resumed after a kill; from one to the next, and
            from one seed to the next, the store changes between SQLite and the journal
  kills     kills from outside at random times; whoever is killed stays away for 0 to 3 s
  faults    what users, administrators and machines do to a running experiment (faults.py)
  sabotage  programs with one promise broken, which the checks must catch

oracle.py says what must be true in the end. What is random comes from the seed, which is printed; the last line is
"N passed, N failed, N skipped".
"""

import argparse
import collections
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

import report
from experiments import LARGE, SMALL, SMALL_JOURNAL, TIMED, Tools, Trouble
from faults import run_faults
from jobs import SABOTAGES, Jobs, run_kills, run_points, sabotage_job


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder; the programs are in its bin/")
    parser.add_argument("--kills", default="30,10,10,10", help="random kills: manager, keeper, both, while resuming")
    parser.add_argument("--no-points", action="store_true", help="leave the named points out")
    parser.add_argument("--faults", type=int, default=2, help="how often each fault is made")
    parser.add_argument("--no-sabotage", action="store_true", help="leave the sabotaged programs out")
    parser.add_argument("--only", default="", help="jobs whose name holds this text, for instance 'point spawned#1'")
    parser.add_argument("--seed", type=int, default=None, help="repeats what is drawn at random")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="experiments at the same time")
    parser.add_argument("--json", type=pathlib.Path, default=None, help="file for the counts")
    parser.add_argument("--keep", action="store_true", help="leave the directories of the experiments")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    print(f"== seed {options.seed}, {options.jobs} experiments at the same time", flush=True)
    begin = time.monotonic()
    work = tempfile.mkdtemp(prefix="nni-crash-")
    try:
        return run_all(options, work, begin)
    finally:
        if options.keep:
            print(f"the experiments are in {work}", file=sys.stderr)
        else:
            shutil.rmtree(work, ignore_errors=True)


def run_all(options, work, begin):
    tools = Tools(options, work)
    jobs = Jobs(tools, options)
    try:
        for measured in [jobs.pool.submit(tools.measure, shape) for shape in (SMALL, LARGE, TIMED, SMALL_JOURNAL)]:
            measured.result()
    except Trouble as trouble:
        print(f"   FAILED: {trouble}\n0 passed, 1 failed, 0 skipped")
        return 1

    def say(text):
        print(f"== {text}, {time.monotonic() - begin:.0f} s", flush=True)

    say("undisturbed experiments ended")
    sabotaged = {}
    if not options.no_sabotage:
        for sabotage, point, kinds in SABOTAGES:
            if jobs.wants(f"sabotage {sabotage}"):
                sabotaged[sabotage] = jobs.submit(sabotage_job, f"sabotage {sabotage}", sabotage, point, kinds)
    points = {} if options.no_points else run_points(jobs, options.seed)
    say(f"{sum(r.hit for r in jobs.results)} kills at named points")
    kinds = ("manager", "keeper", "both", "resuming")
    done = run_kills(jobs, dict(zip(kinds, map(int, options.kills.split(",")))))
    say(f"{sum(done.values())} kills at random times")
    faults = run_faults(jobs, options.faults)
    say(f"{sum(len(row) for row in faults.values())} faults")
    sabotaged = {sabotage: jobs.take(future) for sabotage, future in sabotaged.items()}

    unhit = report.print_points(points)
    windows = report.print_windows(jobs.results)
    report.print_faults(faults)
    total = collections.Counter()
    for result in jobs.results:
        total.update(result.counts)
    failed = sum(bool(result.violations) for result in jobs.results)
    for point in unhit if not options.only else []:
        print(f"   FAILED: nobody was killed at the point '{point}'")
        failed += 1
    notes = [result.note for row in faults.values() for result in row if result.note]
    passed = len(jobs.results) - sum(bool(result.violations) for result in jobs.results) - len(notes)
    skipped = len(notes)
    if os.environ.get("NNI_REQUIRE_PEERS") == "1":
        failed, skipped = failed + skipped, 0
    report.print_totals(done, total, sabotaged)
    print(f"{time.monotonic() - begin:.0f} s in all; repeat with --seed {options.seed}")
    if options.json:
        whole = {"seed": options.seed, "seconds": round(time.monotonic() - begin), "failed": failed, "passed": passed}
        whole |= {"faults": {fault: sum(r.hit for r in row) for fault, row in faults.items()}, "kills": done, "counts": total, "windows": windows}
        report.write_json(options.json, whole, points, jobs.results, sabotaged)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
