"""Attacks by files: an experiment's directory that somebody else has made, and damaged stores.

Each attack makes a directory, starts a manager of its own on it with a limit on memory, and looks at what it says and at
files that nobody may touch. The manager that serves the honest trial is another one.
"""

import glob
import itertools
import os
import pathlib
import resource
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time

from target import Failed

TARGETS = ["keeper"]
LIMIT = 30.0  # seconds for a manager to refuse, or to start its trial
MOST_MEMORY = 200 * 1024 * 1024
COUNT = itertools.count()


class Place:
    """A directory for an experiment, and a file beside it that nobody may touch."""

    def __init__(self, target):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="foreign-", dir=target.directory))
        self.home = self.root / "attacked"
        self.home.mkdir()
        self.precious = self.root / "precious"
        self.precious.write_text("kept", encoding="ascii")
        self.program = target.manager.args[0]
        self.trial = pathlib.Path(sorted(glob.glob(f"{target.directory}/attacked/environments/*/trials/*"))[0]).name
        self.process, self.text, self.memory = None, "", 0

    def link(self, name, to=None):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(to or self.precious)

    def start(self):
        def limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        self.log = self.root / f"log-{next(COUNT)}"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [self.program, str(self.root), "keeper", "1"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=limits,
            )  # fmt: skip

    def _wait(self, limit):
        """@returns the status of the manager, None while it runs"""
        until = time.monotonic() + limit
        while True:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid != 0:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self.memory = usage.ru_maxrss * 1024
                self.text = self.log.read_text(encoding="utf-8", errors="replace")
                return self.process.returncode
            if time.monotonic() > until:
                return None
            time.sleep(0.02)

    def stop(self):
        for kind in (signal.SIGTERM, signal.SIGKILL):
            if self.process.returncode is None:
                self.process.send_signal(kind)
                self._wait(LIMIT)

    def must_refuse(self, *words):
        """The manager ends with an error that has all these words, in little memory."""
        self.start()
        code = self._wait(LIMIT)
        if code is None:
            self.stop()
            raise Failed("the manager neither refused nor ended")
        if code != 1:
            raise Failed(f"the manager ended with {code}: {self.text[-300:]!r}")
        for word in words:
            if word not in self.text:
                raise Failed(f"{word!r} is not in {self.text[-300:]!r}")
        self.check()

    def must_run(self):
        """A trial of the manager runs."""
        self.start()
        until = time.monotonic() + LIMIT
        try:
            while not glob.glob(f"{self.home}/environments/*/trials/*/channel"):
                if self._wait(0) is not None:
                    raise Failed(f"the manager ended: {self.text[-300:]!r}")
                if time.monotonic() > until:
                    raise Failed(f"no trial runs: {self.log.read_text(errors='replace')[-300:]!r}")
                time.sleep(0.02)
        finally:
            self.stop()
        self.check()

    def check(self):
        if self.precious.read_text(encoding="ascii") != "kept" or self.precious.stat().st_size != 4:
            raise Failed("a file outside the experiment was changed")
        if self.memory > MOST_MEMORY:
            raise Failed(f"the manager took {self.memory / 1e6:.0f} MB")
        if "\x1b" in self.text or "\u202e" in self.text:
            raise Failed(f"what commands a terminal was printed: {self.text[-300:]!r}")


# ---- links and rights --------------------------------------------------------------------------------------------------


def links(target):
    for name in ("owner", "db/nni.sqlite", "db/nni.sqlite-wal", "keeper/lock", "keeper/keeper.log", "keeper/spool"):
        place = Place(target)
        place.link(name)
        place.must_refuse("symbolic link", name)


def hard_links(target):
    for name in ("owner", "db/nni.sqlite", "keeper/lock", "keeper/keeper.log"):
        place = Place(target)
        (place.home / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(place.precious, place.home / name)
        place.must_refuse("hard link", name)


def directories(target):
    for name in ("db", "keeper", "environments", "environments/local-env", "environments/local-env/trials"):
        place = Place(target)
        elsewhere = place.root / "elsewhere"
        elsewhere.mkdir()
        place.link(name, elsewhere)
        place.must_refuse("symbolic link", name)
        if os.listdir(elsewhere):
            raise Failed(f"something was made behind the link {name}")


def new_files(target):
    place = Place(target)
    place.link("keeper/spool.new")
    place.link("keeper/life.new")
    place.must_run()


def outputs(target):
    place = Place(target)
    run = place.home / "environments" / "local-env" / "trials" / place.trial
    run.mkdir(parents=True)
    os.mkfifo(run / "trial.stdout")
    (run / "trial.stderr").symlink_to(place.precious)
    place.must_run()


def everybody(target):
    place = Place(target)
    place.home.chmod(0o777)
    place.must_refuse("world-writable", "chmod o-w")


def fifos(target):
    for name in ("owner", "db/nni.sqlite", "db/nni.sqlite-wal", "keeper/lock", "keeper/spool", "keeper/keeper.log"):
        place = Place(target)
        (place.home / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(place.home / name)
        place.must_refuse(name)


# ---- damaged stores ----------------------------------------------------------------------------------------------------


def recorded(target):
    """A place whose experiment has run for a moment."""
    place = Place(target)
    place.must_run()
    for one in glob.glob(f"{place.home}/environments/*/trials/*/channel"):
        os.unlink(one)
    return place


def change(place, sql):
    with sqlite3.connect(place.home / "db" / "nni.sqlite") as database:
        database.executescript(sql)
    database.close()


def lost_event(target):
    place = recorded(target)
    change(place, "DELETE FROM TrialJobEvent")
    place.must_refuse("a trial without its first event")


def escapes(target):
    place = recorded(target)
    change(place, "UPDATE nni_trials SET status = char(27) || ']0;title' || char(7) || char(8238)")
    place.must_refuse("a trial's status")


def boost_texts(target):
    for sql in (
        "INSERT INTO nni_imported VALUES (1, '{}', 0.5, '[\"text\"]', 0)",
        "UPDATE nni_runs SET placement = '[1]'",
        "UPDATE nni_trials SET attempts = 4294967295",
        "UPDATE nni_trials SET number = -5",
    ):
        place = recorded(target)
        change(place, sql)
        place.must_refuse("the data store holds")


def log_of_pages(size):
    """The header of a write-ahead log with the right checksum, and a frame's."""
    head = struct.pack(">6I", 0x377F0683, 3_007_000, size, 0, 1, 2)
    first = second = 0
    for one, two in struct.iter_unpack(">2I", head):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return head + struct.pack(">2I", first, second) + struct.pack(">4I", 1, 1, 1, 2) + b"\x01" * 8192


def page_sizes(target):
    for size in (0, 12, 500, 0xFFFFFFFF):
        place = recorded(target)
        (place.home / "db" / "nni.sqlite-wal").write_bytes(log_of_pages(size))
        place.must_run()


def endless_log(target):
    place = recorded(target)
    log = place.home / "db" / "nni.sqlite-wal"
    log.write_bytes(log_of_pages(4096))
    os.truncate(log, 1 << 40)
    place.must_run()


def endless_owner(target):
    place = Place(target)
    (place.home / "owner").touch()
    os.truncate(place.home / "owner", 1 << 40)
    place.must_run()


ATTACKS = [
    ("links", "links in the place of files that are written", "refused; the target stays", links, {}),
    ("hard links", "a second name of a foreign file", "refused; the file stays", hard_links, {}),
    ("directories", "links in the place of directories", "refused; nothing is made there", directories, {}),
    ("new files", "links in the place of files that replace others", "removed; the trial runs", new_files, {}),
    ("outputs", "a FIFO and a link in the place of a trial's output", "replaced; the trial runs", outputs, {}),
    ("everybody", "a directory of mode 0777", "refused, with what to do", everybody, {}),
    ("fifos", "FIFOs in the place of files", "refused; nobody waits for them", fifos, {}),
    ("lost event", "a database without a trial's first event", "refused as damaged", lost_event, {}),
    ("escapes", "escape sequences in a database", "refused; none is printed", escapes, {}),
    ("values", "values of the wrong type in a database", "refused as damaged, in our words", boost_texts, {}),
    ("page sizes", "a log with pages of no possible size", "ignored; the trial runs", page_sizes, {}),
    ("endless log", "a log of a terabyte", "read as far as it is intact", endless_log, {}),
    ("endless owner", "an owner file of a terabyte", "replaced; the trial runs", endless_owner, {}),
]
