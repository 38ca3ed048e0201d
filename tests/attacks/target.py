"""Programs that are attacked: a manager, and perhaps its keeper, with running trials; what they hold; and the honest trial
that reports while they are attacked."""

import glob
import json
import multiprocessing
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

START_LIMIT = 60  # seconds
TRIALS = 4


class Failed(Exception):
    """Something that must be seen was not seen; the text says what."""


class Channel:
    """The address of a run, as its trial got it."""

    def __init__(self, url):
        found = re.fullmatch(r"http://([^/:]+):(\d+)(/\S+)", url.strip())
        if not found:
            raise Failed(f"no address of a channel: {url!r}")
        self.port, self.path = int(found.group(2)), found.group(3)


class Target:
    """A manager of its own, with or without a keeper, in a directory of its own."""

    def __init__(self, tools, kind, open_files=None, address_space=None):
        self.kind = kind
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="target-", dir=tools.work))
        self.log = self.directory / "manager.log"

        def limits():
            if open_files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
            if address_space and not tools.sanitized:  # a sanitizer reserves terabytes
                resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

        with open(self.log, "wb") as log:
            self.manager = subprocess.Popen(
                [str(tools.program), str(self.directory), kind, str(TRIALS)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=limits,
            )  # fmt: skip
        try:
            self.channels = self._wait_for_channels()
            self.processes = {"manager": self.manager.pid}
            if kind == "keeper":
                self.processes["keeper"] = self._keeper()
        except BaseException:
            self.stop()
            raise
        self.honest, self.attacker = self.channels[0], self.channels[1]
        self.socket = self.directory / "attacked" / "keeper" / "socket"
        exchange(self.honest, "PUT", metric(0, "0"))
        time.sleep(0.2)
        self.idle = self.resident()

    def _wait_for_channels(self):
        until = time.monotonic() + START_LIMIT
        while time.monotonic() < until:
            found = sorted(glob.glob(f"{self.directory}/**/channel", recursive=True))
            if len(found) == TRIALS:
                return [Channel(pathlib.Path(one).read_text(encoding="ascii")) for one in found]
            if self.manager.poll() is not None:
                break
            time.sleep(0.02)
        raise Failed(f"the target did not start: {self.tail()}")

    def _keeper(self):
        words = (self.directory / "attacked" / "keeper" / "lock").read_text(encoding="ascii").split()
        return int(words[0])

    def tail(self):
        return " | ".join(self.log.read_text(errors="replace").splitlines()[-6:])

    # ---- what it holds ----

    def resident(self):
        """Resident bytes by process."""
        return {name: _status(pid, "VmRSS") for name, pid in self.processes.items()}

    def forget_peaks(self):
        for pid in self.processes.values():
            with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
                file.write("5")

    def growth(self):
        """The most bytes beyond idle since `forget_peaks`, of the process that grew most."""
        return max(_status(pid, "VmHWM") - self.idle[name] for name, pid in self.processes.items())

    def check_alive(self):
        if self.manager.poll() is not None:
            raise Failed(f"the manager ended with {self.manager.returncode}: {self.tail()}")
        for name, pid in self.processes.items():
            try:
                state = _stat(pid)
            except FileNotFoundError:
                state = "gone"
            if state in ("gone", "Z", "X"):
                raise Failed(f"the {name} is {state}: {self.tail()}")

    # ---- the end ----

    def stop(self):
        """Ends everything that was started here; only processes that name our directory are touched."""
        if self.manager.poll() is None:
            self.manager.terminate()
            try:
                self.manager.wait(30)
            except subprocess.TimeoutExpired:
                self.manager.kill()
                self.manager.wait()
        marker = os.fsencode(str(self.directory))
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    ours = marker in file.read()
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    ours = ours or marker in file.read()
                if ours:
                    os.kill(int(entry), signal.SIGKILL)
            except OSError:
                continue
        shutil.rmtree(self.directory, ignore_errors=True)


def _status(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def _stat(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


# ---- HTTP by hand -----------------------------------------------------------------------------------------------------

BATCH = "application/vnd.nni.metrics.v1"


def connect(channel, limit=10.0):
    peer = socket.create_connection(("127.0.0.1", channel.port), limit)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def head(method, path, length=None, kind="application/json", more=""):
    text = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{more}"
    if length is not None:
        text += f"Content-Type: {kind}\r\nContent-Length: {length}\r\n"
    return (text + "\r\n").encode("latin-1")


def request(channel, method, body=b"", kind="application/json"):
    return head(method, channel.path, len(body), kind) + body


def metric(sequence, value, kind="PERIODICAL"):
    payload = {"parameter_id": 0, "trial_job_id": "x", "type": kind, "sequence": sequence, "value": value}
    return json.dumps({"type": "metric", "metric": json.dumps(payload)}).encode()


def batch(values, kind="i"):
    """@param values  pairs of a sequence and bytes"""
    return b"".join(b"%s %d %d\n%s\n" % (kind.encode(), sequence, len(text), text) for sequence, text in values)


class Answer:
    def __init__(self, status, body, last):
        self.status, self.body, self.last = status, body, last


def read_answer(peer, rest=b""):
    """@returns the next answer, None when the connection ended without one"""
    data = rest
    while b"\r\n\r\n" not in data:
        try:
            more = peer.recv(65536)
        except ConnectionError:
            return None
        if not more:
            return None
        data += more
    top, _, body = data.partition(b"\r\n\r\n")
    status = int(top.split(b" ", 2)[1])
    found = re.search(rb"content-length: *(\d+)", top, re.I)
    length = int(found.group(1)) if found else 0
    while len(body) < length:
        more = peer.recv(65536)
        if not more:
            return None
        body += more
    answer = Answer(status, body[:length], b"connection: close" in top.lower())
    answer.rest = body[length:]
    return answer


def exchange(channel, method, body=b"", kind="application/json", limit=30.0):
    with connect(channel, limit) as peer:
        peer.sendall(request(channel, method, body, kind))
        return read_answer(peer)


def is_closed(peer, limit=5.0):
    """True when the other side ends the connection in time; what it sends before is read away."""
    peer.settimeout(limit)
    try:
        while peer.recv(65536):
            pass
        return True
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def send_quietly(peer, data):
    """Sends as much as the other side takes. @returns False when it hung up"""
    try:
        peer.sendall(data)
        return True
    except OSError:
        return False


# ---- the honest trial -------------------------------------------------------------------------------------------------


def _report_anew(channel, sequence, failures):
    """Reports a value on a connection of its own, once, as NNI's library does."""
    try:
        answer = exchange(channel, "PUT", metric(sequence, "0.5"), limit=15)
        if answer is None or answer.status != 200:
            failures.append(f"a new connection: {answer and answer.status}")
    except OSError as error:
        failures.append(f"a new connection: {error!r}")


def _report_kept(channel, sequence, failures, peer):
    """Reports a value on a kept connection, and connects again when that was ended, as our library does.

    @returns the connection for the next value
    """
    begin = time.monotonic()
    while time.monotonic() - begin < 15:
        try:
            peer = peer or connect(channel, 15)
            peer.sendall(request(channel, "PUT", metric(sequence, "0.5")))
            answer = read_answer(peer)
            if answer is not None:
                if answer.status != 200:
                    failures.append(f"a kept connection: {answer.status} {answer.body[:80]!r}")
                return peer
        except OSError:
            time.sleep(0.01)
        if peer is not None:
            peer.close()
        peer = None
    failures.append("a kept connection: no answer in 15 s")
    return peer


def _report(channel, pipe):
    """Reports one value after the other until the pipe brings something, and sends times and failures back."""
    times, failures, peer, sequence = [], [], None, 1
    while not pipe.poll():
        begin = time.monotonic()
        if sequence % 2:
            peer = _report_kept(channel, sequence, failures, peer)
        else:
            _report_anew(channel, sequence, failures)
        times.append(time.monotonic() - begin)
        sequence += 1
        time.sleep(0.005)
    pipe.recv()
    pipe.send((times, failures))


class HonestTrial:
    """A process that reports values and times their answers."""

    def __init__(self, channel):
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_report, args=(channel, theirs), daemon=True)
        self.process.start()

    def finish(self):
        """@returns the seconds of each answer, and what went wrong"""
        self.pipe.send(None)
        times, failures = self.pipe.recv() if self.pipe.poll(60) else ([], ["the honest trial hangs"])
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
        return times, failures
