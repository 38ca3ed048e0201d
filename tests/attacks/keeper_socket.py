"""Attacks on the socket of a keeper by another program of the same user."""

import contextlib
import json
import os
import pathlib
import re
import socket
import struct
import time

from target import Failed

PROTOCOL = pathlib.Path(__file__).resolve().parents[2] / "include" / "nni" / "keeper" / "wire" / "protocol.hpp"
VERSION = int(re.search(r"protocol_version = (\d+);", PROTOCOL.read_text(encoding="ascii")).group(1))
HELLO, START, KILL, FINISH, ASK_STATUS = 1, 3, 4, 7, 8
REFUSED, STATUS = 65, 69
MEBIBYTE = 1024 * 1024


def number(value):
    """An integer in groups of seven bits."""
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def text(value):
    return number(len(value)) + value


def frame(kind, payload=b"", sequence=0, version=VERSION, size=None):
    return struct.pack("<IBBHQ", len(payload) if size is None else size, version, kind, 0, sequence) + payload


def greeting(experiment):
    """A hello as far as its environment: id, life, whether it can resume, owner, process."""
    return text(experiment) + text(b"life") + b"\x01" + text(b"attack") + number(os.getpid())


def hello(experiment, environment=()):
    return greeting(experiment) + number(len(environment)) + b"".join(text(one) for one in environment)


def connect(target, limit=10.0):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(limit)
    try:
        # The name may be longer than an address can be.
        folder = os.open(target.socket.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            peer.connect(f"/proc/self/fd/{folder}/{target.socket.name}")
        finally:
            os.close(folder)
    except BaseException:
        peer.close()
        raise
    return peer


def send(peer, data):
    with contextlib.suppress(OSError):
        peer.sendall(data)


def read_frame(peer):
    """@returns (type, payload), None when the connection ended"""
    data = b""
    while len(data) < 16 or len(data) < 16 + struct.unpack_from("<I", data)[0]:
        try:
            more = peer.recv(65_536)
        except ConnectionError:
            return None
        if not more:
            return None
        data += more
    size, _, kind, _, _ = struct.unpack_from("<IBBHQ", data)
    return kind, data[16 : 16 + size]


def expect_refusal(target, data):
    """Sends bytes and sees a refusal or the end of the connection."""
    with connect(target) as peer:
        send(peer, data)
        try:
            answer = read_frame(peer)
        except TimeoutError:
            raise Failed("neither a refusal nor the end of the connection within 10 s") from None
        if answer and answer[0] != REFUSED:
            raise Failed(f"answered with a frame of type {answer[0]}")


def status(target):
    with connect(target) as peer:
        send(peer, frame(ASK_STATUS))
        answer = read_frame(peer)
        if not answer or answer[0] != STATUS:
            raise Failed(f"no status but {answer}")
        return json.loads(answer[1][answer[1].index(b"{") :])


def expect_trials(target):
    live = len(status(target)["live"])
    if live != len(target.channels):
        raise Failed(f"{live} trials live, not {len(target.channels)}")


# ---- attacks ----------------------------------------------------------------------------------------------------------


def garbage(target):
    expect_refusal(target, b"\xff" * 65_536)
    expect_refusal(target, os.urandom(16) + b"\x00" * 65_536)
    expect_refusal(target, b"GET / HTTP/1.1\r\n\r\n")
    expect_trials(target)


def huge_lengths(target):
    for size in (0xFFFFFFFF, 0x80000000, 64 * MEBIBYTE + 1):
        expect_refusal(target, frame(HELLO, b"x" * 100, size=size))
    expect_trials(target)


def versions(target):
    for version in (0, VERSION - 1, VERSION + 1, 255):
        expect_refusal(target, frame(ASK_STATUS, version=version))
    expect_trials(target)


def no_hello(target):
    run = number(0) + number(0)
    for kind in (START, KILL, FINISH, 2, 5, 6, 64, 66, 200):
        expect_refusal(target, frame(kind, run * 4, sequence=1))
    expect_trials(target)


def other_experiment(target):
    expect_refusal(target, frame(HELLO, hello(b"another")))
    expect_trials(target)


def second_manager(target):
    expect_refusal(target, frame(HELLO, hello(b"attacked")))
    expect_trials(target)


def lying_counts(target):
    for payload in (number(2**62) + b"x", text(b"attacked") + number(2**63), greeting(b"attacked") + number(2**60),
                    b"\xff" * 11, b"", greeting(b"attacked") + number(10**9) + text(b"A=1")):  # fmt: skip
        expect_refusal(target, frame(HELLO, payload))
    expect_trials(target)


def many_small_texts(target):
    """As many entries as fit into a frame, each of which costs more than it takes on the wire."""
    count = 60 * MEBIBYTE
    expect_refusal(target, frame(HELLO, greeting(b"another") + number(count) + b"\x00" * count))
    count = 7 * MEBIBYTE
    expect_refusal(target, frame(HELLO, greeting(b"another") + number(count) + b"\x00" * count))
    expect_trials(target)


def half_frames(target):
    peers = []
    try:
        for _ in range(60):
            peer = connect(target)
            peers.append(peer)
            send(peer, frame(HELLO, b"", size=64 * MEBIBYTE) + b"h" * 1000)
            peer = connect(target)
            peers.append(peer)
            send(peer, frame(HELLO)[:7])
        expect_trials(target)
    finally:
        for peer in peers:
            peer.close()


def large_unfinished_frames(target):
    """Frames of 64 MB that nobody finishes."""
    peers = []
    try:
        for _ in range(20):
            peer = connect(target, 0.5)
            peers.append(peer)
            size = (64 if len(peers) % 2 else 7) * MEBIBYTE
            send(peer, frame(HELLO, b"", size=size) + b"h" * min(20 * MEBIBYTE, size - 1))
        time.sleep(0.5)
    finally:
        for peer in peers:
            peer.close()
    expect_trials(target)


def flood(target):
    peers = []
    try:
        for _ in range(600):
            try:
                peers.append(connect(target, 0.2))
            except OSError:
                break
        time.sleep(1)
        target.check_alive()
    finally:
        for peer in peers:
            peer.close()
    until = time.monotonic() + 10
    while True:
        try:
            return expect_trials(target)
        except (OSError, Failed):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def many_questions(target):
    for _ in range(300):
        expect_trials(target)


FEW_FILES = {"open_files": 256}
ATTACKS = [
    ("garbage", "random bytes", "a refusal or the end", garbage, {}),
    ("huge lengths", "frames above the limit", "a refusal", huge_lengths, {}),
    ("versions", "frames of other versions", "a refusal", versions, {}),
    ("no hello", "orders of somebody who did not greet", "a refusal, nothing is carried out", no_hello, {}),
    ("other experiment", "a hello for another experiment", "a refusal", other_experiment, {}),
    ("second manager", "a hello while the manager is there", "a refusal", second_manager, {}),
    ("lying counts", "counts beyond the frame", "a refusal", lying_counts, {}),
    ("many small texts", "a hello with 60 million entries", "a refusal, little memory", many_small_texts, {}),
    ("half frames", "120 half frames", "others are served", half_frames, {}),
    ("large unfinished frames", "20 frames of 7 and 64 MB that never end", "little memory", large_unfinished_frames, {}),
    ("flood", "600 connections, 256 files", "trials go on, the keeper answers again", flood, FEW_FILES),
    ("many questions", "300 questions for the status", "300 answers", many_questions, {}),
]  # fmt: skip
TARGETS = ("keeper",)
