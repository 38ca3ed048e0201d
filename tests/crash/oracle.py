"""What must be true of an experiment that was killed and resumed, read from the account that its trials kept, from what
its tuner was told, and from its store.

`check` compares the three and returns what it counted and found; each thing that is wrong is a violation, a pair of a
kind and a sentence.

As a program: `oracle.py DIRECTORY TRIALS [--keepers-killed] [--unordered]` checks, and prints a line `looked N KIND` for
each kind of thing that it looked at, N times, and `wrong KIND: SENTENCE` for each violation; `oracle.py DIRECTORY --end`
ends the processes of an experiment.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import signal
import sqlite3

SANITIZER = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:")


class Findings:
    """What was looked at, how often by its kind, and what was wrong."""

    def __init__(self):
        self.looked, self.violations = collections.Counter(), []

    def expect(self, kind, holds, text):
        """@returns whether it holds"""
        self.looked[kind] += 1
        if not holds:
            self.violations.append((kind, text))
        return holds


class Run:
    """One attempt at a trial, as it wrote itself down."""

    def __init__(self):
        self.starts = []  # (pid, ticks, parameters)
        self.values, self.kept, self.finals = [], -1, []
        self.last = False


def read_account(path):
    """@returns (sequence, attempt): Run"""
    runs = {}
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    for line in lines:
        sequence, attempt, what, *rest = line.split(" ", 4)
        run = runs.setdefault((int(sequence), int(attempt)), Run())
        if what == "start":
            ticks, parameters = rest[1].split(" ", 1)
            run.starts.append((int(rest[0]), int(ticks), parameters))
        elif what == "value":
            run.values.append(int(rest[0]))
        elif what == "kept":
            run.kept = int(rest[0])
        elif what == "final":
            run.finals.append(float(rest[0]))
        elif what == "last":
            run.last = True
    return runs


def read_tuner(path):
    """@returns session: [(sequence, value or None)]"""
    sessions = {}
    for line in path.read_text(encoding="ascii").splitlines() if path.exists() else []:
        session, sequence, value = line.split()
        sessions.setdefault(int(session), []).append((int(sequence), None if value == "none" else float(value)))
    return sessions


class Store:
    """What the experiment recorded, read without the library."""

    def __init__(self):
        self.status, self.damage = None, None
        self.trials = {}  # sequence: (status, attempts)
        self.parameters = {}  # sequence: what it was to try
        self.runs = {}  # (sequence, attempt): (job, ended, code, message)
        self.values, self.finals = {}, {}  # (sequence, attempt): values in the order of the store

    def keep(self, run, kind, value):
        number = value["default"] if isinstance(value, dict) else value
        (self.finals if kind == "FINAL" else self.values).setdefault(run, []).append(number)


def read_store(directory):
    """@returns the `Store` of an experiment, whichever kind it has"""
    file = directory / "db" / "nni.sqlite"
    return read_sqlite(file) if file.exists() else read_journal(directory / "db" / "nni.journal")


def read_sqlite(file):
    store = Store()
    base = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    store.status = base.execute("SELECT status FROM nni_experiment").fetchone()[0]
    integrity = base.execute("PRAGMA integrity_check").fetchone()[0]
    store.damage = None if integrity == "ok" else integrity
    for number, status, attempts in base.execute("SELECT number, status, attempts FROM nni_trials"):
        store.trials[number - 1] = (status, attempts)
    for number, attempt, *rest in base.execute(
        "SELECT trial, attempt, job, ended, code, message FROM nni_runs ORDER BY trial, attempt"
    ):
        store.runs[number - 1, attempt] = tuple(rest)
    sequences = dict(base.execute("SELECT trialJobId, sequenceId FROM TrialJobEvent WHERE event = 'WAITING'"))
    for sequence, record in base.execute("SELECT sequenceId, data FROM TrialJobEvent WHERE data IS NOT NULL"):
        store.parameters[sequence] = json.loads(record)["parameters"]
    latest = {}
    for sequence, attempt in store.runs:
        latest[sequence] = max(attempt, latest.get(sequence, 0))
    # A value is JSON text in a JSON string.
    for job, kind, data in base.execute("SELECT trialJobId, type, data FROM MetricData ORDER BY rowid"):
        store.keep((sequences[job], latest.get(sequences[job], 0)), kind, json.loads(json.loads(data)))
    for number, attempt, kind, data in base.execute(
        "SELECT trial, attempt, type, data FROM nni_earlier_metrics ORDER BY trial, attempt, position"
    ):
        store.keep((number - 1, attempt), kind, json.loads(json.loads(data)))
    base.close()
    return store


def read_journal(file):
    store = Store()
    what = {"event": None}
    for line in file.read_text(encoding="ascii").splitlines()[1:]:
        what = json.loads(line[9:])
        if what["event"] == "profile":
            store.status = what["status"]
        if "trial" not in what:
            continue
        sequence = what["trial"] - 1
        run = (sequence, what.get("attempt", 0))
        status, attempts = store.trials.get(sequence, ("WAITING", 0))
        if what["event"] == "ordered":
            store.parameters[sequence] = what["parameters"]
        else:
            attempts = max(attempts, run[1] + 1)
        if what["event"] == "metric":
            store.keep(run, what["kind"], what["value"])
        elif what["event"] == "ended":
            status = what["status"]
            job = store.runs.get(run, (None,))[0]
            store.runs[run] = (job, what["how"], what["code"], what["message"])
        elif what["event"] == "started":
            store.runs[run] = (what["job"], *store.runs.get(run, (None, None, None, None))[1:])
        elif what["event"] == "intended":
            store.runs[run] = (None, None, None, None)
        store.trials[sequence] = (status, attempts)
    if what["event"] != "closed":
        store.damage = f"the last line is {what}"
    return store


def processes_of(directory):
    """Processes that belong to an experiment's directory: trials by their environment, keepers by their command."""
    wanted, found = os.fsencode(str(directory)) + b"/", []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        is_keeper = len(words) > 2 and words[0] == b"nni-keeper" and words[2].startswith(wanted)
        if is_keeper or any(entry.startswith(b"NNI_OUTPUT_DIR=" + wanted) for entry in environment):
            found.append(int(entry.name))
    return found


def results(directory):
    """What must not depend on any kill: of each trial its parameters and its result."""
    found = {}
    for (sequence, _), run in read_account(directory / "account").items():
        if run.finals:  # of the last attempt: an earlier one may have come as far and not have been heard
            found[sequence] = (run.starts[0][2], run.finals[0])
    return found


def complaints(directory):
    """What a sanitizer found in a keeper or a trial; a manager's exit code tells of its own."""
    own = directory / "crash"
    files = [own / "keeper" / "keeper.log", *own.glob("environments/*/trials/*/trial.stderr")]
    texts = {file: file.read_text(errors="replace") for file in files if file.exists()}
    return [("sanitizer", f"{f}: {text[:2000]}") for f, text in texts.items() if SANITIZER.search(text)]


def check(directory, trials, expected, manager_only, ordered=True):
    """Checks an experiment that has come to its end.

    @param directory     parent of the experiment; holds the accounts
    @param trials        how many there had to be
    @param expected      `results` of an experiment that nobody killed; None where there is none to compare with
    @param manager_only  only managers were killed
    @param ordered       each trial reports its values one after the other
    @returns             (counts, `Findings`)
    """
    findings = Findings()
    expect = findings.expect
    account, tuner = read_account(directory / "account"), read_tuner(directory / "tuner")
    store = read_store(directory / "crash")
    counts = {"trials": trials, "runs": len(account), "values": 0, "values_acknowledged": 0}
    counts |= {"finished_trials_lost": 0, "trials_doubled": 0, "values_lost": 0, "values_doubled": 0}

    expect("store", store.damage is None, f"the store is damaged: {store.damage}")
    expect("status", store.status == "DONE", f"the experiment ended as {store.status}")
    recorded = sorted(store.trials)
    expect("count", recorded == list(range(trials)), f"trials {recorded} are recorded, 0 to {trials - 1} had to run")
    for sequence, (status, attempts) in store.trials.items():
        check_trial(sequence, status, attempts, account, store, manager_only, counts, expect)
    for name, run in account.items():
        known = name in store.runs
        counts["trials_doubled"] += not known
        expect("intent", known, f"run {name} was started, and no record says so")
        for _, _, parameters in run.starts:
            wanted = store.parameters.get(name[0])
            expect(
                "parameters",
                json.loads(parameters) == wanted,
                f"run {name} was given {parameters}; recorded are {wanted}",
            )
        check_values(name, run, store, counts, expect, ordered)
    check_tuner(tuner, store, account, trials, expect)

    if expected is not None:
        found = results(directory)
        differing = [s for s in range(trials) if found.get(s) != expected.get(s)]
        expect("result", found == expected, f"trials {differing} had other parameters or results than without a kill")
    left = processes_of(directory)
    expect("process", not left, f"processes {left} are left")
    found = complaints(directory)
    expect("sanitizer", not found, "; ".join(text for _, text in found))
    return counts, findings


def check_trial(sequence, status, attempts, account, store, manager_only, counts, expect):
    """The attempts at one trial: each started once, another only for a reason, the last one complete."""
    name = f"trial {sequence}"
    expect("status", status == "SUCCEEDED", f"{name} ended as {status}")
    rows = [attempt for (s, attempt) in store.runs if s == sequence]
    expect("attempt", rows == list(range(attempts)), f"{name} has {attempts} attempts, and records of {rows}")
    started = 0
    for attempt in rows:
        job, ended, code, message = store.runs[sequence, attempt]
        run = account.get((sequence, attempt))
        starts = run.starts if run else []
        started += bool(starts)
        once = expect("doubled", len(starts) <= 1, f"run {sequence}.{attempt} was started {len(starts)} times")
        counts["trials_doubled"] += not once
        if attempt == rows[-1]:
            # A run that reported its final value is over, however it ended after that.
            has_final = bool(store.finals.get((sequence, attempt)))
            well = (ended, code) == ("exited", 0)
            complete = bool(starts) and (run.last or (has_final and not well))
            text = f"the last run of {name} ended as {ended} {code}: {message}"
            expect("status", well or (has_final and ended in ("lost", "killed")), text)
            expect("count", complete, f"the last run of {name} is recorded as complete and is not")
            right = not starts or (job or "").split(":")[1:] == [str(starts[0][0]), str(starts[0][1])]
            text = f"run {sequence}.{attempt} is recorded as {job} and was {starts and starts[0][:2]}"
            expect("attempt", right, text)
        else:
            reason = f"({ended}: {message})"
            has_reason = bool(message) and ended != "exited"
            expect("attempt", has_reason, f"run {sequence}.{attempt} was repeated without a reason {reason}")
            honest = ended != "not started" or not starts
            expect("attempt", honest, f"run {sequence}.{attempt} was started, its record says that it was not")
            lost = bool(run) and run.last  # its final value was acknowledged, so it was over, also if it was lost then
            counts["finished_trials_lost"] += lost
            expect("attempt", not lost, f"run {sequence}.{attempt} had finished and was repeated {reason}")
    if manager_only:
        text = f"{name} was started {started} times although only managers were killed"
        counts["trials_doubled"] += not expect("adoption", started <= 1, text)


def check_values(name, run, store, counts, expect, ordered):
    """The values of one run: what was acknowledged is in the store, once and, where they were reported in an order, in that
    order; of a complete run, all is."""
    stored, finals = store.values.get(name, []), store.finals.get(name, [])
    counts["values"] += len(run.values)
    counts["values_acknowledged"] += run.kept + 1 + len(run.finals if run.last else [])
    doubled = len(stored) - len(set(stored)) + max(len(finals) - 1, 0)
    counts["values_doubled"] += doubled
    text = f"run {name}: values are stored more than once: {stored[-20:]}, final {finals}"
    if expect("doubled value", doubled == 0, text) and ordered:
        expect("order", stored == run.values[: len(stored)], f"run {name}: values are stored as {stored[-20:]}")
    lost = sorted(set(run.values if run.last else range(run.kept + 1)) - set(stored))
    counts["values_lost"] += len(lost)
    expect("lost value", not lost, f"run {name}: {len(lost)} values were acknowledged and are not stored, {lost[:20]}")
    if run.last or finals:
        text = f"run {name}: the final value {run.finals} was acknowledged, stored is {finals}"
        counts["values_lost"] += not expect("lost value", finals[:1] == run.finals[:1], text)


def check_tuner(tuner, store, account, trials, expect):
    """Each tuner hears of a trial at most once; the last one has heard of all, with their values."""
    for session, told in tuner.items():
        sequences = [sequence for sequence, _ in told]
        text = f"in session {session} the tuner was told more than once: {sequences}"
        expect("tuner", len(set(sequences)) == len(sequences), text)
    final = dict(tuner.get(max(tuner, default=0), []))
    expect("tuner", sorted(final) == list(range(trials)), f"in the last session the tuner was told of {sorted(final)}")
    for sequence, value in final.items():
        attempts = store.trials.get(sequence, ("", 1))[1]
        run = account.get((sequence, attempts - 1))
        right = run is None or run.finals[:1] == [value]
        expect("tuner", right, f"the tuner was told {value} of trial {sequence}, which reported {run and run.finals}")


def check_output(directory, output, trials):
    """Checks an experiment whose records are gone: what its last manager printed, `ended SEQUENCE VALUE PARAMETERS` for each
    trial. @returns (counts, `Findings`)"""
    findings = Findings()
    counts = {"trials": trials, "results_of_others": 0}
    ended = {}
    for line in output.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("ended "):
            _, sequence, value, parameters = line.split(" ", 3)
            ended[int(sequence)] = (value, json.loads(parameters))
    findings.expect("count", sorted(ended) == list(range(trials)), f"trials {sorted(ended)} ended")
    for sequence, (value, parameters) in ended.items():
        own = (parameters["x"] - 0.3) ** 2
        right = value != "none" and abs(float(value) - own) < 1e-12
        counts["results_of_others"] += not right
        text = f"trial {sequence} has the result {value}; its own parameters {parameters} give {own}"
        findings.expect("result", right, text)
    left = processes_of(directory)
    findings.expect("process", not left, f"processes {left} are left")
    return counts, findings


def end_processes(directory):
    """Ends what is left of an experiment."""
    for process in processes_of(directory):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("trials", type=int, nargs="?", default=0)
    parser.add_argument("--keepers-killed", action="store_true")
    parser.add_argument("--unordered", action="store_true", help="values of a trial come in no order")
    parser.add_argument("--end", action="store_true")
    options = parser.parse_args()
    if options.end:
        return end_processes(options.directory)
    _, findings = check(options.directory, options.trials, None, not options.keepers_killed, not options.unordered)
    for kind, number in findings.looked.items():
        print(f"looked {number} {kind}")
    for kind, text in findings.violations:
        print(f"wrong {kind}: {' '.join(text.split())}")


if __name__ == "__main__":
    main()
