"""What must be true of an experiment that was killed and resumed, read from the account that its trials kept, from what
its tuner was told, and from its store.

`check` compares the three and returns what it counted; each thing that is wrong is a violation, a pair of a kind and a
sentence.
"""

import json
import os
import pathlib
import sqlite3


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
        if what["event"] != "ordered":
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
        if run.last:
            found[sequence] = (run.starts[0][2], run.finals[0])
    return found


def check(directory, trials, expected, manager_only):
    """Checks an experiment that has come to its end.

    @param directory     parent of the experiment; holds the accounts
    @param trials        how many there had to be
    @param expected      `results` of an experiment that nobody killed; None for that one itself
    @param manager_only  only managers were killed
    @returns             (counts, violations)
    """
    violations = []

    def wrong(kind, text):
        violations.append((kind, text))

    account, tuner = read_account(directory / "account"), read_tuner(directory / "tuner")
    store = read_store(directory / "crash")
    counts = {"trials": trials, "runs": len(account), "values": 0, "values_acknowledged": 0}
    counts |= {"finished_trials_lost": 0, "trials_doubled": 0, "values_lost": 0, "values_doubled": 0}

    if store.damage is not None:
        wrong("store", f"the store is damaged: {store.damage}")
    if store.status != "DONE":
        wrong("status", f"the experiment ended as {store.status}")
    if sorted(store.trials) != list(range(trials)):
        wrong("count", f"trials {sorted(store.trials)} are recorded, 0 to {trials - 1} had to run")
    for sequence, (status, attempts) in store.trials.items():
        check_trial(sequence, status, attempts, account, store, manager_only, counts, wrong)
    for name in sorted(set(account) - set(store.runs)):
        wrong("intent", f"run {name} was started, and no record says so")
        counts["trials_doubled"] += 1
    for name, run in account.items():
        check_values(name, run, store, counts, wrong)
    check_tuner(tuner, store, account, trials, wrong)

    if expected is not None:
        found = results(directory)
        if found != expected:
            differing = [s for s in range(trials) if found.get(s) != expected.get(s)]
            wrong("result", f"trials {differing} had other parameters or results than without a kill")
    left = processes_of(directory)
    if left:
        wrong("process", f"processes {left} are left")
    return counts, violations


def check_trial(sequence, status, attempts, account, store, manager_only, counts, wrong):
    """The attempts at one trial: each started once, another only for a reason, the last one complete."""
    name = f"trial {sequence}"
    if status != "SUCCEEDED":
        wrong("status", f"{name} ended as {status}")
    rows = [attempt for (s, attempt) in store.runs if s == sequence]
    if rows != list(range(attempts)):
        wrong("attempt", f"{name} has {attempts} attempts, and records of {rows}")
    started = 0
    for attempt in rows:
        job, ended, code, message = store.runs[sequence, attempt]
        run = account.get((sequence, attempt))
        starts = run.starts if run else []
        started += bool(starts)
        if len(starts) > 1:
            counts["trials_doubled"] += 1
            wrong("doubled", f"run {sequence}.{attempt} was started {len(starts)} times")
        if attempt == rows[-1]:
            if (ended, code) != ("exited", 0):
                wrong("status", f"the last run of {name} ended as {ended} {code}: {message}")
            if not starts or not run.last:
                wrong("count", f"the last run of {name} is recorded as complete and is not")
            if starts and (job or "").split(":")[1:] != [str(starts[0][0]), str(starts[0][1])]:
                wrong("attempt", f"run {sequence}.{attempt} is recorded as {job} and was {starts[0][:2]}")
        else:
            if not message or ended == "exited":
                wrong("attempt", f"run {sequence}.{attempt} was repeated without a reason ({ended}: {message})")
            if ended == "not_started" and starts:
                wrong("attempt", f"run {sequence}.{attempt} was started, its record says that it was not")
            if run and run.last and ended != "lost":
                counts["finished_trials_lost"] += 1
                wrong("attempt", f"run {sequence}.{attempt} had finished and was repeated ({ended}: {message})")
    if manager_only and started > 1:
        counts["trials_doubled"] += 1
        wrong("adoption", f"{name} was started {started} times although only managers were killed")


def check_values(name, run, store, counts, wrong):
    """The values of one run: what was acknowledged is in the store, once and in order; of a complete run, all is."""
    stored, finals = store.values.get(name, []), store.finals.get(name, [])
    counts["values"] += len(run.values)
    counts["values_acknowledged"] += run.kept + 1 + len(run.finals if run.last else [])
    if len(set(stored)) != len(stored) or len(finals) > 1:
        counts["values_doubled"] += len(stored) - len(set(stored)) + max(len(finals) - 1, 0)
        wrong("doubled value", f"run {name}: values are stored more than once: {stored[-20:]}, final {finals}")
    elif stored != run.values[: len(stored)]:
        wrong("order", f"run {name}: values are stored as {stored[-20:]}")
    needed = set(run.values if run.last else range(run.kept + 1))
    if needed - set(stored):
        counts["values_lost"] += len(needed - set(stored))
        wrong("lost value", f"run {name}: values {sorted(needed - set(stored))} were acknowledged and are not stored")
    if run.last and finals[:1] != run.finals[:1]:
        counts["values_lost"] += 1
        wrong("lost value", f"run {name}: the final value {run.finals} was acknowledged, stored is {finals}")


def check_tuner(tuner, store, account, trials, wrong):
    """Each tuner hears of a trial at most once; the last one has heard of all, with their values."""
    for session, told in tuner.items():
        sequences = [sequence for sequence, _ in told]
        if len(set(sequences)) != len(sequences):
            wrong("tuner", f"in session {session} the tuner was told more than once: {sequences}")
    final = dict(tuner.get(max(tuner, default=0), []))
    if sorted(final) != list(range(trials)):
        wrong("tuner", f"in the last session the tuner was told of trials {sorted(final)}")
    for sequence, value in final.items():
        attempts = store.trials.get(sequence, ("", 1))[1]
        run = account.get((sequence, attempts - 1))
        if run and run.finals[:1] != [value]:
            wrong("tuner", f"the tuner was told {value} of trial {sequence}, which reported {run.finals}")
