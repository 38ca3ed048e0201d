"""Experiments that are killed: what passes in them, how they are started, killed and looked at."""

import collections
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

import oracle

LIMIT = 600  # seconds after which a manager counts as hanging
LOOK_AGAIN = 0.02  # seconds between two looks at what other processes wrote

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
    """What kind of experiment is killed. `ordered`: each trial reports its values one after the other."""

    def __init__(self, store, trials, concurrency, *arguments, ordered=True):
        self.store, self.trials, self.concurrency, self.arguments = store, trials, concurrency, arguments
        self.ordered = ordered


SMALL = Shape("sqlite", 4, 2, "values", "6", "0")
SMALL_JOURNAL = Shape("journal", 4, 2, "values", "6", "0")
LARGE = Shape("sqlite", 4, 2, "values", "25", "100000")  # enough to checkpoint the log and to rewrite the spool
TIMED = Shape("sqlite", 8, 4, "timed")  # 50 to 2,000 ms each, a value every 10 ms
TIMED_JOURNAL = Shape("journal", 8, 4, "timed")

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
        self.mounted = None  # a file system of its own
        self.keeper_program = self.directory / "keeper-program"
        self.keeper_program.symlink_to(tools.manager)

    # ---- processes ----

    def start(self, point=None):
        """Starts a manager, which kills itself, or its keeper, at a point, NAME#N."""
        self.session += 1
        environment = dict(os.environ, NNI_CRASH_TRACE=str(self.trace()), NNI_CRASH_KEEPER=str(self.keeper_program))
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
        if self.shape.store == "memory":
            counts, findings = oracle.check_output(self.directory, self.output(), self.shape.trials)
            self.counts.update(counts)
            return findings.violations
        counts, findings = oracle.check(
            self.directory, self.shape.trials, expected, not self.keepers_killed, self.shape.ordered
        )
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
        if self.mounted is not None and not self.tools.keep:
            subprocess.run(["umount", "-l", str(self.mounted)], check=False)
        if not self.tools.keep:
            shutil.rmtree(self.directory, ignore_errors=True)


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

    def numbers(self, name):
        """Random numbers of a job, the same for the same seed."""
        return random.Random(f"{self.seed} {name}")

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
