"""Faults beside plain kills: what users, administrators and machines do to a running experiment.

Each fault is a function that disturbs one running experiment; the job then lets it come to its end and checks it like any
other (oracle.py). A fault that this machine cannot make is skipped, with the reason.
"""

import errno
import os
import pathlib
import shutil
import signal
import subprocess
import time

import oracle
from experiments import LOOK_AGAIN, Experiment, Shape, Trouble
from jobs import guarded

TIMED = [Shape(store, 8, 4, "timed") for store in ("sqlite", "journal")]
THREADS = [Shape(store, 4, 2, "threads", "4", "200", ordered=False) for store in ("sqlite", "journal")]
LINGERING = [Shape(store, 4, 2, "lingering", "6", "1500") for store in ("sqlite", "journal")]
STRAY = [Shape(store, 4, 2, "stray", "6", "700") for store in ("sqlite", "journal")]
MEMORY = [Shape("memory", 6, 3, "timed")]


class Skipped(Exception):
    """The fault cannot be made here; the text says why."""


def wait_until(holds, what, limit=60):
    """Waits until holds() is true. @returns what it returned"""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
        time.sleep(LOOK_AGAIN)
    raise Trouble(f"waited {limit} s for {what}")


def live_trials(experiment):
    """Runs that have begun and not reported their final value."""
    account = oracle.read_account(experiment.directory / "account")
    return [name for name, run in account.items() if run.starts and not run.last]


def finished_runs(experiment):
    """Runs whose final value was acknowledged: {(sequence, attempt): pid}"""
    account = oracle.read_account(experiment.directory / "account")
    return {name: run.starts[0][0] for name, run in account.items() if run.last and run.starts}


def is_alive(process):
    return pathlib.Path(f"/proc/{process}").exists()


# ---- the faults; each gets the running experiment and random numbers ----


def freeze(experiment, numbers):
    """The keeper or the manager is stopped for a while, as by a debugger or a machine that swaps."""
    for _ in range(2):
        time.sleep(numbers.uniform(0.05, 0.6))
        keeper = experiment.keeper()
        victim = numbers.choice([keeper, experiment.process.pid])
        if victim is None or experiment.wait(0) is not None:
            return
        os.kill(victim, signal.SIGSTOP)
        try:
            time.sleep(numbers.uniform(0.2, 1.5))
            if victim == keeper and numbers.random() < 0.5:
                experiment.kill_manager()
                experiment.start()
                time.sleep(numbers.uniform(0, 0.5))
        finally:
            os.kill(victim, signal.SIGCONT)


def stray(experiment, numbers):
    """A trial leaves a process behind and ends; while nobody listens its keeper dies."""
    before = set(finished_runs(experiment))
    name, process = wait_until(
        lambda: next(((n, p) for n, p in finished_runs(experiment).items() if n not in before), None), "a final value"
    )
    experiment.kill_manager()
    wait_until(lambda: not is_alive(process), f"the end of run {name}")
    time.sleep(numbers.uniform(0.1, 0.4))
    experiment.kill_keeper()
    experiment.start()


def copy(experiment, numbers):
    """A copy of the experiment is resumed while the trials of the original run."""
    wait_until(lambda: live_trials(experiment), "a live trial")
    time.sleep(numbers.uniform(0.1, 0.6))
    experiment.kill_manager()
    other = Experiment(experiment.tools, experiment.shape)
    try:
        ignored = shutil.ignore_patterns("socket")
        shutil.copytree(experiment.directory / "crash", other.directory / "crash", ignore=ignored)
        other.start()
        other.finish()
    finally:
        other.remove()
    experiment.start()


def disorder(experiment, numbers):
    """Values come from several threads, in no order, while the manager or the keeper dies."""
    wait_until(lambda: live_trials(experiment), "a live trial")
    time.sleep(numbers.uniform(0, 0.5))
    if experiment.wait(0) is not None:
        return
    if numbers.random() < 0.5:
        experiment.kill_manager()
        experiment.start()
    else:
        experiment.kill_keeper()


def after_final(experiment, numbers):
    """Somebody dies, or the experiment is stopped, between the final value of a trial and its end."""
    wait_until(lambda: finished_runs(experiment), "a final value")
    time.sleep(numbers.uniform(0, 0.3))
    how = numbers.choice(["keeper", "both", "stop"])
    if how == "stop":
        experiment.process.send_signal(signal.SIGINT)
        if experiment.wait(120) is None:
            raise Trouble("the manager did not end after SIGINT")
        experiment.keepers_killed = True  # trials were stopped with the experiment, and run again
    else:
        experiment.kill_keeper()
    if how == "both":
        experiment.kill_manager()
    if how != "keeper":
        experiment.start()


def program_away(experiment, numbers):
    """The keeper's program is away for a moment, as while a package is upgraded, and the keeper dies."""
    wait_until(lambda: live_trials(experiment), "a live trial")
    time.sleep(numbers.uniform(0.1, 0.6))
    program, away = experiment.keeper_program, experiment.keeper_program.with_name("away")
    program.rename(away)
    try:
        experiment.kill_keeper()
        time.sleep(numbers.uniform(0.3, 2))
    finally:
        away.rename(program)


def socket_gone(experiment, numbers):
    """Somebody removes the keeper's socket, and the manager dies."""
    wait_until(lambda: live_trials(experiment), "a live trial")
    time.sleep(numbers.uniform(0.1, 0.4))
    socket = experiment.directory / "crash" / "keeper" / "socket"
    socket.unlink(missing_ok=True)
    time.sleep(numbers.uniform(0, 0.3))
    experiment.kill_manager()
    experiment.start()


def fill(directory, numbers):
    """Takes all space, or all inodes. @returns what has to be removed again"""
    ballast = directory / "ballast"
    ballast.mkdir()
    try:
        if numbers.random() < 0.5:
            with open(ballast / "0", "wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 65536)
        for number in range(1 << 20):
            (ballast / str(number)).touch()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
    return ballast


def full(experiment, numbers):
    """No space or no inode is left for a while, and somebody dies meanwhile."""
    wait_until(lambda: live_trials(experiment), "a live trial")
    time.sleep(numbers.uniform(0.1, 0.6))
    ballast = fill(experiment.directory / "crash", numbers)
    try:
        time.sleep(numbers.uniform(0, 0.5))
        victim = numbers.choice(["keeper", "manager", "nobody"])
        if victim == "keeper":
            experiment.kill_keeper()
        elif victim == "manager" and experiment.wait(0) is None:
            experiment.kill_manager()
        time.sleep(numbers.uniform(0.2, 1.5))
    finally:
        shutil.rmtree(ballast)
    if victim == "manager":
        experiment.start()


def reused_id(experiment, numbers):
    """A manager that keeps its records in memory dies; another program takes the same id."""
    wait_until(lambda: live_trials(experiment), "a live trial")
    time.sleep(numbers.uniform(0, 0.5))
    if experiment.wait(0) is not None:
        return
    experiment.kill_manager()
    time.sleep(numbers.uniform(0, 0.3))
    experiment.start()


FAULTS = {
    "freeze": (freeze, TIMED),
    "stray": (stray, STRAY),
    "copy": (copy, TIMED),
    "values out of order": (disorder, THREADS),
    "after a final value": (after_final, LINGERING),
    "program away": (program_away, TIMED),
    "socket gone": (socket_gone, TIMED),
    "full disk": (full, TIMED),
    "reused id": (reused_id, MEMORY),
}  # fmt: skip


def prepare(experiment, fault):
    """What must be there before the first manager starts."""
    if fault == "full disk":
        own = experiment.directory / "crash"
        own.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=24m,nr_inodes=600", "nni-crash", str(own)],
            capture_output=True,
            text=True,
        )
        if mounted.returncode:
            raise Skipped(f"no file system can be mounted here: {mounted.stderr.strip()}")
        experiment.mounted = own


@guarded
def fault_job(tools, result, fault):
    """Starts an experiment, disturbs it, lets it finish, and checks it."""
    disturb, shapes = FAULTS[fault]
    numbers = tools.numbers(result.name)
    experiment = Experiment(tools, numbers.choice(shapes))
    result.shape = experiment.shape
    try:
        prepare(experiment, fault)
        experiment.start()
        disturb(experiment, numbers)
        experiment.finish()
        result.violations = experiment.check(tools.expected.get(experiment.shape))
        result.hit = True
        result.counts = experiment.counts
        result.counts["faults"] = 1
    except Skipped as reason:
        result.note = f"skipped: {reason}"
    finally:
        experiment.remove()


def run_faults(jobs, times):
    """@returns {fault: [result]}"""
    futures = {}
    for fault in FAULTS:
        for number in range(times):
            name = f"fault {fault} {number + 1}"
            if jobs.wants(name):
                futures.setdefault(fault, []).append(jobs.submit(fault_job, name, fault))
    return {fault: [jobs.take(future) for future in row] for fault, row in futures.items()}
