#!/usr/bin/env python3
"""Kills managers and keepers of experiments, resumes them, and checks that nothing was lost or done twice.

Started by scripts/crash.sh, which builds the programs. Three kinds of jobs:

  points    the process kills itself at a named point (include/nni/core/crash_point.hpp), at the first, the second and a
            random passage, in a fresh experiment and in one that is being resumed after a kill; from one to the next, and
            from one seed to the next, the store changes between SQLite and the journal
  kills     kills from outside at random times; whoever is killed stays away for 0 to 3 s
  sabotage  programs with one promise broken, which the checks must catch

oracle.py says what must be true in the end. What is random comes from the seed, which is printed; the last line is
"N passed, N failed, N skipped".
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import oracle

LIMIT = 600  # seconds after which a manager counts as hanging

MANAGER_POINTS = [
    "creation of the store", "history told", "service started", "runs adopted", "intent written", "spawned",
    "started recorded", "message received", "before commit", "committed", "before acknowledgement", "exit seen",
    "ended recorded", "tuner told", "checkpoint", "clean-up",
]  # fmt: skip
KEEPER_POINTS = [
    "creation of the spool", "left-overs ended", "losses recorded", "listening", "manager connected", "spawned",
    "started recorded", "message received", "committed", "before acknowledgement", "exit seen", "ended recorded",
    "checkpoint", "clean-up",
]  # fmt: skip
KEEPER = "keeper: "
POINTS = MANAGER_POINTS + [KEEPER + name for name in KEEPER_POINTS]


class Shape:
    """What kind of experiment is killed."""

    def __init__(self, store, trials, concurrency, *arguments):
        self.store, self.trials, self.concurrency, self.arguments = store, trials, concurrency, arguments


SMALL = Shape("sqlite", 4, 2, "values", "6", "0")
SMALL_JOURNAL = Shape("journal", 4, 2, "values", "6", "0")
LARGE = Shape("sqlite", 4, 2, "values", "25", "100000")  # enough to checkpoint the log and to rewrite the spool
TIMED = Shape("sqlite", 8, 4, "timed")  # 50 to 2,000 ms each, a value every 10 ms
TIMED_JOURNAL = Shape("journal", 8, 4, "timed")

# (what is broken, where it is killed, what the checks say to it)
SABOTAGES = [
    ("no_intent", "message received", {"adoption", "doubled", "intent", "lost value"}),
    ("no_sync", "exit seen", {"lost value"}),
    ("no_deduplication", "before acknowledgement", {"doubled value"}),
]


def shapes_of(point):
    """The experiments in which a point is passed; kills take turns with them."""
    if point.endswith("checkpoint"):
        return [LARGE]
    return [SMALL] if point.startswith(KEEPER) else [SMALL, SMALL_JOURNAL]


class Trouble(Exception):
    """A process that did not do what every process does; the text says what."""


class Experiment:
    """One experiment in a directory of its own, through all its managers."""

    def __init__(self, tools, shape, sabotage="none"):
        self.tools, self.shape, self.sabotage = tools, shape, sabotage
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="crash-", dir=tools.work))
        self.session, self.process = -1, None
        self.counts = collections.Counter()
        self.keepers_killed = False

    # ---- processes ----

    def start(self, point=None):
        """Starts a manager, which kills itself, or its keeper, at a point, NAME#N."""
        self.session += 1
        environment = dict(os.environ, NNI_CRASH_TRACE=str(self.trace()))
        if point:
            environment |= {"NNI_CRASH_POINT": point, "NNI_CRASH_MARK": str(self.directory / f"mark{self.session}")}
        shape = self.shape
        command = [self.tools.manager, self.directory, self.session, shape.trials, shape.concurrency]
        command += [shape.store, "random", self.sabotage]
        command += [self.tools.trial, self.directory / "account", *shape.arguments]
        with open(self.output(), "wb") as output:
            self.started = time.monotonic()
            self.process = subprocess.Popen(
                list(map(str, command)), env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def output(self):
        return self.directory / f"manager.{self.session}"

    def trace(self):
        return self.directory / f"trace.{self.session}"

    def was_hit(self):
        """True when the point that the last manager was given has killed somebody."""
        return (self.directory / f"mark{self.session}.0").exists()

    def wait(self, limit=LIMIT):
        """@returns the exit code of the manager, None when it still runs after so many seconds"""
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return None

    def finish(self):
        """Lets the manager come to its end, and starts it again when a keeper that died at once keeps it from that."""
        for _ in range(4):
            code = self.wait()
            if code is None:
                raise Trouble(f"manager {self.session} hangs; it printed: {self.tail()}")
            if code == 0:
                return
            if "keeper could not be started" not in self.tail():
                raise Trouble(f"manager {self.session} ended with {code}: {self.tail()}")
            self.start()
        raise Trouble("it was started four times and did not come to an end")

    def tail(self):
        return " | ".join(self.output().read_text(errors="replace").splitlines()[-6:])

    def begun(self):
        """Seconds from the start of the manager until it had adopted what lived; None when it never came so far."""
        found = re.search(r"^begun (\d+)", self.output().read_text(errors="replace"), re.M)
        return int(found.group(1)) / 1e9 - self.started if found else None

    def keeper(self):
        try:
            words = (self.directory / "crash" / "keeper" / "lock").read_text(encoding="ascii").split()
        except OSError:
            return None
        return int(words[0]) if words and int(words[0]) in oracle.processes_of(self.directory) else None

    def kill_keeper(self):
        """@returns the point that it had passed last, None when there is no keeper"""
        keeper = self.keeper()
        if keeper is None:
            return None
        os.kill(keeper, signal.SIGKILL)
        self.keepers_killed = True
        return self.last_point(keeper)

    def kill_manager(self):
        """@returns the point that it had passed last"""
        self.process.kill()
        self.process.wait()
        self.count_live()
        return self.last_point(self.process.pid)

    def count_live(self):
        """The manager has died: counts the trials that go on without it."""
        keeper = self.keeper()
        self.counts["live_when_manager_died"] += sum(p != keeper for p in oracle.processes_of(self.directory))

    def last_point(self, process):
        """Of this session; keepers write into the trace of the manager that started them."""
        for session in range(self.session, -1, -1):
            trace = self.directory / f"trace.{session}"
            if not trace.exists():
                continue
            lines = [line for line in trace.read_text(encoding="ascii").splitlines() if line.startswith(f"{process} ")]
            if lines:
                return lines[-1].split(" ", 1)[1]
        return "before the first point"

    def passages(self):
        """How often each point was passed in this session."""
        trace = self.trace()
        lines = trace.read_text(encoding="ascii").splitlines() if trace.exists() else []
        return collections.Counter(line.split(" ", 1)[1] for line in lines)

    # ---- the end ----

    def check(self, expected):
        """@returns violations; what was counted is in `counts`"""
        counts, findings = oracle.check(self.directory, self.shape.trials, expected, not self.keepers_killed)
        self.counts.update(counts)
        violations = findings.violations
        if not self.keepers_killed:
            self.counts["live_when_only_manager_died"] = self.counts.pop("live_when_manager_died", 0)
        if not self.keepers_killed and not any(kind in ("adoption", "process") for kind, _ in violations):
            self.counts["adopted"] = self.counts["live_when_only_manager_died"]
        return violations

    def remove(self):
        """Ends what is left of it; the directory stays when somebody wants to look at it."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        oracle.end_processes(self.directory)
        if not self.tools.keep:
            shutil.rmtree(self.directory, ignore_errors=True)


class Result:
    """What a job came to."""

    def __init__(self, name):
        self.name, self.shape, self.hit, self.violations, self.windows = name, None, False, [], []
        self.counts = collections.Counter()
        self.note = ""


class Tools:
    """The programs, the places, and what an experiment comes to that nobody kills."""

    def __init__(self, options, work):
        self.manager, self.trial = options.build / "bin" / "crash_manager", options.build / "bin" / "crash_trial"
        self.work, self.keep, self.seed = work, options.keep, options.seed
        self.expected, self.fresh, self.resumed, self.resume_s = {}, {}, {}, 0.1

    def measure(self, shape):
        """Runs an experiment undisturbed, and another one with one kill, for what passes there how often."""
        experiment = Experiment(self, shape)
        try:
            experiment.start()
            experiment.finish()
            violations = experiment.check(None)
            self.expected[shape] = oracle.results(experiment.directory)
            self.fresh[shape] = experiment.passages()
        finally:
            experiment.remove()
        if violations:
            raise Trouble(f"an experiment that nobody killed: {violations}")
        for with_keeper in (False, True):
            experiment = Experiment(self, shape)
            try:
                interrupt(experiment, with_keeper)
                experiment.start()
                experiment.finish()
                self.resumed[shape, with_keeper] = experiment.passages()
                self.resume_s = max(self.resume_s, experiment.begun() or 0)
            finally:
                experiment.remove()

    def passages(self, shape, point, resuming):
        if not resuming:
            return self.fresh[shape][point]
        return self.resumed[shape, point.startswith(KEEPER)][point]


def interrupt(experiment, with_keeper):
    """Kills a manager in the middle of its work, and perhaps its keeper too."""
    experiment.start("message received#10" if experiment.shape is not LARGE else "message received#40")
    if experiment.wait() != -signal.SIGKILL:
        raise Trouble(f"the manager was not interrupted: {experiment.tail()}")
    experiment.count_live()
    if with_keeper:
        experiment.kill_keeper()


# ---- jobs ----


def guarded(job):
    """Runs a job; whatever goes wrong in it is a violation with its name."""

    def run(tools, name, *arguments):
        result = Result(name)
        try:
            job(tools, result, *arguments)
        except Trouble as trouble:
            result.violations.append(("trouble", str(trouble)))
        except Exception as failure:  # a bug of these tests must fail the job and leave the others alone
            result.violations.append(("driver", f"{type(failure).__name__}: {failure}"))
        return result

    return run


@guarded
def point_job(tools, result, shape, point, count, resuming):
    """Kills at the given passage of a point, then finishes."""
    result.shape = shape
    experiment = Experiment(tools, shape)
    try:
        of_keeper = point.startswith(KEEPER)
        if resuming:
            interrupt(experiment, with_keeper=of_keeper)
        experiment.keepers_killed = of_keeper
        experiment.start(f"{point}#{count}")
        code = experiment.wait()
        if code is None:
            raise Trouble(f"the manager hangs; it printed: {experiment.tail()}")
        result.hit = experiment.was_hit()
        if not of_keeper and result.hit != (code == -signal.SIGKILL):
            raise Trouble(f"the manager ended with {code}: {experiment.tail()}")
        if not of_keeper and result.hit:
            experiment.count_live()
            experiment.start()
        experiment.finish()
        result.violations = experiment.check(tools.expected[experiment.shape])
        result.counts = experiment.counts
    finally:
        experiment.remove()


@guarded
def kill_job(tools, result, kind, most):
    """Kills from outside, up to `most` times, at random times; then finishes."""
    numbers = random.Random(f"{tools.seed} {result.name}")
    experiment = Experiment(tools, numbers.choice([TIMED, TIMED_JOURNAL]))
    try:
        experiment.start()
        while result.counts["kills"] < most:
            begins = numbers.random() < 0.25  # a beginning is short, and would be met too seldom otherwise
            if experiment.wait(numbers.uniform(0, 2 * tools.resume_s if begins else 2)) is not None:
                break  # it was faster
            victims = ["keeper", "manager"] if kind == "both" else ["keeper"] if kind == "keeper" else ["manager"]
            numbers.shuffle(victims)
            killed = 0
            for victim in victims:
                window = experiment.kill_keeper() if victim == "keeper" else experiment.kill_manager()
                if window is not None:
                    result.windows.append((victim, window))
                    killed += 1
            if kind != "resuming":
                result.counts["kills"] += killed == len(victims)
            if kind == "keeper":
                continue
            time.sleep(numbers.uniform(0, 3))
            experiment.start()
            while kind == "resuming" and result.counts["kills"] < most:
                if experiment.wait(numbers.uniform(0, 1.3 * tools.resume_s)) is not None:
                    break
                result.windows.append(("resuming", experiment.kill_manager()))
                result.counts["kills"] += 1
                time.sleep(numbers.uniform(0, 3))
                experiment.start()
        experiment.finish()
        result.violations = experiment.check(tools.expected[TIMED])
        result.counts[f"kills_{experiment.shape.store}"] = result.counts["kills"]
        result.counts.update(experiment.counts)
    finally:
        experiment.remove()


@guarded
def sabotage_job(tools, result, sabotage, point, kinds):
    """Breaks a promise, kills at some passages of a point until a check says what is wrong."""
    for count in range(1, 9):
        experiment = Experiment(tools, SMALL, sabotage)
        found = []
        try:
            experiment.start(f"{point}#{count}")
            if experiment.wait() != -signal.SIGKILL:
                continue
            experiment.start()
            experiment.finish()
            found = experiment.check(tools.expected[SMALL])
        except Trouble as trouble:
            found = [("trouble", str(trouble))]
        finally:
            experiment.remove()
        caught = [text for kind, text in found if kind in kinds]
        if caught:
            result.hit, result.note = True, caught[0]
            return
    result.violations.append(("sabotage", f"{sabotage} was not noticed"))


# ---- the whole ----


class Jobs:
    """Runs jobs, some at a time, and says how each came out when it is not well."""

    def __init__(self, tools, options):
        self.tools, self.only = tools, options.only
        self.pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
        self.results, self.lock = [], threading.Lock()

    def wants(self, name):
        return self.only in name

    def submit(self, job, name, *arguments):
        return self.pool.submit(job, self.tools, name, *arguments)

    def take(self, future):
        result = future.result()
        self.results.append(result)
        for kind, text in result.violations:
            print(f"   FAILED: {result.name}: {kind}: {text}", flush=True)
        return result


def run_points(jobs, seed):
    """@returns {(point, resuming): [(n, result)]}"""
    futures = {}
    for point in POINTS:
        shapes = shapes_of(point)
        turn = seed
        for resuming in (False, True):
            numbers = random.Random(f"{seed} {point} {resuming}")
            for at in range(3):
                shape = shapes[turn % len(shapes)]
                count = jobs.tools.passages(shape, point, resuming)
                n = at + 1 if at < 2 else numbers.randint(3, max(count, 3))
                if n > max(count, 1):
                    continue
                turn += 1
                name = f"point {point}#{n}{' while resuming' if resuming else ''}, {shape.store}"
                if jobs.wants(name):
                    future = jobs.submit(point_job, name, shape, point, n, resuming)
                    futures.setdefault((point, resuming), []).append((n, future))
    return {key: [(n, jobs.take(future)) for n, future in rows] for key, rows in futures.items()}


def run_kills(jobs, wanted):
    """Kills until there were as many of each kind as wanted. @returns {kind: kills}"""
    done = collections.Counter()
    pending, numbers = {}, collections.Counter()
    while True:
        for kind, count in wanted.items():
            under_way = sum(most for k, most in pending.values() if k == kind)
            while done[kind] + under_way < count and numbers[kind] < 3 * count + 9:
                numbers[kind] += 1
                name = f"kill {kind} {numbers[kind]}"
                most = min(1 + numbers[kind] % 3, count - done[kind] - under_way)
                if not jobs.wants(name):
                    done[kind] += 1  # stands for those that are not asked for
                    continue
                pending[jobs.submit(kill_job, name, kind, most)] = (kind, most)
                under_way += most
        if not pending:
            return done
        ended, _ = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in ended:
            kind, _ = pending.pop(future)
            done[kind] += jobs.take(future).counts["kills"]


def print_points(points):
    """@returns the points that nobody was killed at"""

    def cell(rows, at):
        if at >= len(rows):
            return "-"
        n, result = rows[at]
        text = "FAILED" if result.violations else "hit" if result.hit else "not passed"
        if result.hit and result.shape is SMALL_JOURNAL:
            text += " (j)"
        return f"{text} ({n:,})" if at == 2 else text

    print("\n(j): the manager kept a journal, in the other experiments an SQLite file")
    print("point                           first       second      n-th            resuming:   second      n-th")
    unhit = []
    for point in POINTS:
        both = [points.get((point, resuming), []) for resuming in (False, True)]
        if not any(both):
            continue
        cells = [cell(rows, at) for rows in both for at in range(3)]
        widths = [12, 12, 16, 12, 12, 12]
        print(f"{point:<32}" + "".join(f"{text:<{width}}" for text, width in zip(cells, widths)).rstrip())
        if not any(result.hit for rows in both for _, result in rows):
            unhit.append(point)
    return unhit


def print_windows(results):
    """@returns {victim: {window: kills}}"""
    windows = collections.defaultdict(collections.Counter)
    for result in results:
        for victim, window in result.windows:
            windows[victim][window] += 1
    if windows:
        victims = [v for v in ("manager", "resuming", "keeper") if v in windows]
        print(f"\n{'last point before a random kill':<36}" + "".join(f"{victim:>12}" for victim in victims))
        for window in ["before the first point", *POINTS]:
            counts = [windows[victim][window] for victim in victims]
            if any(counts):
                print(f"{window:<36}" + "".join(f"{count:>12}" for count in counts))
    return windows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder; the programs are in its bin/")
    parser.add_argument("--kills", default="30,10,10,10", help="random kills: manager, keeper, both, while resuming")
    parser.add_argument("--no-points", action="store_true", help="leave the named points out")
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
    sabotaged = {sabotage: jobs.take(future) for sabotage, future in sabotaged.items()}

    unhit = print_points(points)
    windows = print_windows(jobs.results)
    total = collections.Counter()
    for result in jobs.results:
        total.update(result.counts)
    failed = sum(bool(result.violations) for result in jobs.results)
    for point in unhit if not options.only else []:
        print(f"   FAILED: nobody was killed at the point '{point}'")
        failed += 1
    passed = len(jobs.results) - sum(bool(result.violations) for result in jobs.results)
    print(f"\nrandom kills: {', '.join(f'{count} {kind}' for kind, count in done.items())}")
    for key in sorted(total):
        print(f"{key.replace('_', ' ')}: {total[key]:,}")
    for sabotage, result in sabotaged.items():
        print(f"{sabotage}: {'caught: ' + result.note if result.hit else 'NOT CAUGHT'}")
    print(f"{time.monotonic() - begin:.0f} s in all; repeat with --seed {options.seed}")
    if options.json:
        hits = {f"{p}{' while resuming' if r else ''}": sum(x.hit for _, x in rows) for (p, r), rows in points.items()}
        report = {"seed": options.seed, "seconds": round(time.monotonic() - begin), "failed": failed, "passed": passed}
        report |= {"kills": done, "counts": total, "hits": hits, "windows": windows}
        report["sabotage"] = {sabotage: result.note if result.hit else None for sabotage, result in sabotaged.items()}
        report["violations"] = [f"{r.name}: {kind}: {text}" for r in jobs.results for kind, text in r.violations]
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="ascii")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
