"""Attacks on the channel of the trials: by strangers, who know its port, and by a trial, which knows an address."""

import contextlib
import select
import socket
import time

from target import (
    BATCH, Failed, batch, connect, exchange, head, is_closed, metric, read_answer, request, send_quietly,
)  # fmt: skip

MEBIBYTE = 1024 * 1024
LARGEST = 50 * MEBIBYTE


def expect(holds, text):
    if not holds:
        raise Failed(text)


def expect_status(answer, *statuses):
    expect(answer is not None, f"the connection ended without an answer, not {statuses}")
    expect(answer.status in statuses, f"answer {answer.status} {answer.body[:80]!r}, not one of {statuses}")


@contextlib.contextmanager
def many(channel, count):
    """Up to so many connections; fewer when the other side takes no more."""
    peers = []
    try:
        for _ in range(count):
            try:
                peers.append(connect(channel, 2))
            except OSError:
                break
        yield peers
    finally:
        for peer in peers:
            peer.close()


def raw(target, data, *statuses):
    """Sends bytes and sees one of the answers, after which the connection ends."""
    with connect(target.attacker) as peer:
        send_quietly(peer, data)
        answer = read_answer(peer)
        expect_status(answer, *statuses)
        expect(is_closed(peer), f"the connection stays open after {answer.status}")


def refused_forever(target, data, part, limit=64 * MEBIBYTE):
    """Sends bytes, and parts without end: it must be refused at once, and take nothing more."""
    with connect(target.attacker) as peer:
        send_quietly(peer, data)
        expect_status(read_answer(peer), 400, 404, 411, 413, 431)
        peer.settimeout(5)
        sent, until = 0, time.monotonic() + 10
        while sent < limit and time.monotonic() < until and send_quietly(peer, part):
            sent += len(part)
        expect(sent < limit, f"{sent} bytes were taken after the refusal")


# ---- strangers: framing -----------------------------------------------------------------------------------------------

STRANGE = "/0123456789abcdef0123456789abcdef/env/local-env/x"


def garbage(target):
    raw(target, b"\x00\x01\x02 garbage\r\n\r\n", 400)
    raw(target, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400)
    raw(target, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400)
    raw(target, b"GET\r\n\r\n", 400)
    raw(target, b"GET / HTTP/0.9\r\n\r\n", 400)
    raw(target, b"\r\n\r\n\r\n\r\n", 400)


def oversized_header(target):
    raw(target, b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 20_000 + b"\r\n\r\n", 431)
    raw(target, b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", 431)


def endless_header(target):
    with connect(target.attacker) as peer:
        peer.settimeout(5)
        peer.sendall(b"GET / HTTP/1.1\r\n")
        for _ in range(64):
            if not send_quietly(peer, b"X-More: " + b"y" * 1000 + b"\r\n"):
                break
        expect_status(read_answer(peer), 431)


def chunk_extension(target):
    for path in (STRANGE, target.attacker.path):
        start = head("PUT", path, more="Transfer-Encoding: chunked\r\n") + b"5;x="
        refused_forever(target, start, b"e" * 65_536)


def chunk_trailer(target):
    for path in (STRANGE, target.attacker.path):
        start = head("PUT", path, more="Transfer-Encoding: chunked\r\n") + b"0\r\n"
        refused_forever(target, start, b"X-Trailer: 1\r\n" * 4096)


def last_chunk_in_pieces(target):
    for path in (STRANGE, target.attacker.path):
        for pieces in ([b"0\r\n", b"x"], [b"0\r\n", b"\r"], [b"5\r\nhello\r\n0\r\n", b"\r", b"\n"], [b"0;a\r\n", b"y"]):
            with connect(target.attacker) as peer:
                send_quietly(peer, head("PUT", path, more="Transfer-Encoding: chunked\r\n"))
                for piece in pieces:
                    time.sleep(0.02)  # a segment of its own
                    send_quietly(peer, piece)
                expect_status(read_answer(peer), 404, 411)


def codings(target):
    for name in ("chunked", " chunked", "xchunked", "gzip", "chunked, gzip", "identity", "CHUNKED", "\tchunked"):
        for path in (STRANGE, target.attacker.path):
            raw(target, head("PUT", path, more=f"Transfer-Encoding:{name}\r\n") + b"0\r\n\r\n", 400, 404, 411)
    raw(target, head("PUT", target.attacker.path, more="Transfer-Encoding : chunked\r\n"), 400)


def smuggling(target):
    """A request inside the body of another one must never be carried out."""
    hidden = request(target.attacker, "PUT", metric(77, "666"))
    for more in (
        f"Content-Length: {len(hidden)}\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Content-Length: 3\r\nContent-Length: 40\r\n",
        "Content-Length: 3, 40\r\n",
    ):
        with connect(target.attacker) as peer:
            peer.sendall(head("PUT", target.attacker.path, more=more) + b"0\r\n\r\n" + hidden)
            answer = read_answer(peer)
            expect_status(answer, 400, 411)
            rest = answer.rest
            with contextlib.suppress(OSError):
                while more_bytes := peer.recv(65_536):
                    rest += more_bytes
            expect(b"200 OK" not in rest, "the request inside the body was carried out")


def lengths(target):
    for length in ("-1", "+5", "0x10", "5 5", "", "1e3", "18446744073709551616", "99999999999999999999999", "\xb2"):
        for path in (STRANGE, target.attacker.path):
            raw(target, head("PUT", path, more=f"Content-Length: {length}\r\n"), 400)
    raw(target, head("PUT", target.attacker.path, LARGEST + 1), 413)
    raw(target, head("PUT", target.attacker.path, 2**63), 413)
    raw(target, head("PUT", STRANGE, 2**63), 404)


def line_ends(target):
    for data in (b"GET / HTTP/1.1\nHost: x\n\n\r\n\r\n", b"GET / HTTP/1.1\r\nA\0B: x\r\n\r\n", b"GET /\0 HTTP/1.1\r\n\r\n",
                 b"GET / HTTP/1.1\r\nNo colon\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n"):  # fmt: skip
        raw(target, data, 400)


def methods(target):
    for method in ("DELETE", "POST", "CONNECT", "BREW", "OPTIONS"):
        expect_status(exchange(target.attacker, method, b"x"), 405)
    with connect(target.attacker) as peer:
        peer.sendall(head("GET", STRANGE, more="Connection: Upgrade\r\nUpgrade: websocket\r\n"))
        expect_status(read_answer(peer), 404)
        peer.sendall(head("GET", "http://localhost" + target.attacker.path))
        expect_status(read_answer(peer), 404)


# ---- strangers: addresses ---------------------------------------------------------------------------------------------


def wrong_tokens(target):
    path = target.attacker.path
    token = path[1:33]
    with connect(target.attacker) as peer:
        for guess in range(1000):
            wrong = f"/{guess:032x}{path[33:]}"
            peer.sendall(head("PUT", wrong, 3) + b"{ }")
            answer = read_answer(peer)
            expect_status(answer, 404)
            expect(token.encode() not in answer.body, "an answer holds a token")
    near = (path.upper(), path[:32] + path[33:], path + "/", path[:-1], "/" + path, f"/{token}", "/", f"/{token}/env//x")
    for wrong in near:
        with connect(target.attacker) as peer:
            peer.sendall(head("PUT", wrong, 3) + b"{ }")
            expect_status(read_answer(peer), 404)


def answered_before_body(target):
    for more in ("", "Expect: 100-continue\r\n"):
        with many(target.attacker, 40) as peers:
            for peer in peers:
                peer.sendall(head("PUT", STRANGE, LARGEST - 1, more=more))
            for peer in peers:
                expect_status(read_answer(peer), 404)


def unfinished_bodies(target):
    with many(target.attacker, 40) as peers:
        for peer in peers:
            peer.settimeout(0.5)
            peer.sendall(head("PUT", STRANGE, LARGEST - 1))
        for _ in range(40):
            for peer in peers:
                send_quietly(peer, b"x" * 65_536)


# ---- strangers: many of them ------------------------------------------------------------------------------------------


def idle_flood(target):
    with many(target.attacker, 1500):
        time.sleep(1)


def half_sent_heads(target):
    with many(target.attacker, 1500) as peers:
        for peer in peers:
            send_quietly(peer, b"PUT " + target.attacker.path.encode() + b" HTTP/1.1\r\nX-Half: " + b"h" * 8000)
        time.sleep(1)


def slow_heads(target):
    with many(target.attacker, 200) as peers:
        for letter in head("GET", STRANGE)[:40]:
            for peer in peers:
                send_quietly(peer, bytes([letter]))
            time.sleep(0.05)


def pipelining_stranger(target):
    """Requests without end, whose answers nobody reads."""
    lines = head("GET", STRANGE) * 500
    with many(target.attacker, 50) as peers:
        for peer in peers:
            peer.setblocking(False)
        until = time.monotonic() + 3
        while time.monotonic() < until:
            _, ready, _ = select.select([], peers, [], 0.1)
            for peer in ready:
                with contextlib.suppress(OSError):
                    peer.send(lines)


def connect_and_leave(target):
    until = time.monotonic() + 3
    while time.monotonic() < until:
        with many(target.attacker, 50) as peers:
            for peer in peers:
                send_quietly(peer, b"G")


# ---- a trial that is an attacker --------------------------------------------------------------------------------------


def announced_lengths(target):
    """Lengths that are announced and bodies that do not come: nothing may be set aside for them."""
    with many(target.attacker, 60) as peers:
        for peer in peers:
            send_quietly(peer, head("PUT", target.attacker.path, LARGEST - 1) + b"{")
        time.sleep(1)
        target.check_alive()


def unfinished_large_bodies(target):
    with many(target.attacker, 40) as peers:
        for peer in peers:
            peer.settimeout(0.05)
            send_quietly(peer, head("PUT", target.attacker.path, LARGEST - 1))
        for _ in range(30):
            for peer in peers:
                send_quietly(peer, b"x" * 65_536)


def unfinished_small_bodies(target):
    with many(target.attacker, 700) as peers:
        for peer in peers:
            send_quietly(peer, head("PUT", target.attacker.path, 65_000) + b"x" * 64_000)
        time.sleep(2)


def half_sent_by_a_trial(target):
    with many(target.attacker, 1500) as peers:
        for peer in peers:
            send_quietly(peer, head("PUT", target.attacker.path, 100) + b"{")
        time.sleep(2)


def large_batch(target):
    values = batch([(0, b"1")])
    body = values * ((49 * MEBIBYTE) // len(values))
    answer = exchange(target.attacker, "PUT", body, BATCH, limit=60)
    expect_status(answer, 413)
    expect(b"values" in answer.body, f"the refusal does not say why: {answer.body!r}")


def many_finals(target):
    body = batch([(0, b"%d" % number) for number in range(60_000)], "f")
    expect_status(exchange(target.attacker, "PUT", body, BATCH, limit=60), 413)


def as_many_finals_as_allowed(target):
    for begin in (0, 8000, 0):
        body = batch([(0, b"%d" % number) for number in range(begin, begin + 8000)], "f")
        expect_status(exchange(target.attacker, "PUT", body, BATCH, limit=60), 200)


def batches_at_full_rate(target):
    body = batch([(number, b"%d" % number) for number in range(8000)])
    with many(target.attacker, 10) as peers:
        for _ in range(2):
            for peer in peers:
                send_quietly(peer, request(target.attacker, "PUT", body, BATCH))
        for peer in peers:
            peer.settimeout(60)
            expect_status(read_answer(peer), 200)


def large_value(target):
    body = batch([(0, b'"' + b"v" * (48 * MEBIBYTE) + b'"')])
    expect_status(exchange(target.attacker, "PUT", body, BATCH, limit=60), 200)


def large_single_value(target):
    expect_status(exchange(target.attacker, "PUT", metric(5, '"' + "v" * (16 * MEBIBYTE) + '"'), limit=60), 200)


def large_garbage(target):
    expect_status(exchange(target.attacker, "PUT", b"{" * (48 * MEBIBYTE), limit=60), 200)


def not_understood(target):
    bodies = (b"\xff\xfe\x80", b'{"type": "metric", "metric": "\xed\xa0\x80"}', b"[" * 100_000, b"{}", b"null", b"",
              b'{"type": "unheard"}', metric(0, "[" * 100_000), metric(0, "0." + "5" * 100_000),
              b'{"type": "metric", "metric": "' + b"\\u0000" * 1000 + b'"}', metric(2**32, "1"), metric(-1, "1"),
              metric(4294967295, "1"), metric(0, "NaN"), metric(0, "1", "STRANGE"))  # fmt: skip
    for body in bodies:
        expect_status(exchange(target.attacker, "PUT", body), 200)


def broken_batches(target):
    bodies = (b"i 0 9\n1\n", b"i 0 18446744073709551615\n1\n", b"i 0 -1\n1\n", b"i 99999999999 1\n1\n", b"x 0 1\n1\n",
              b"i 0 1\n1", b"i", b"\n", b"i 0 18446744073709551616\n1\n", b"f 0 1\n1\nbroken")  # fmt: skip
    for body in bodies:
        expect_status(exchange(target.attacker, "PUT", body, BATCH), 400)
    expect_status(exchange(target.attacker, "PUT", batch([(0, b"\xff\xff"), (1, b"nonsense")]), BATCH), 200)


def pipelined_values(target):
    with connect(target.attacker) as peer:
        peer.settimeout(30)
        count = 2000
        data = b"".join(request(target.attacker, "PUT", metric(number, "1")) for number in range(count))
        peer.setblocking(False)
        rest, answers, sent = b"", 0, 0
        until = time.monotonic() + 60
        while answers < count and time.monotonic() < until:
            ready, writable, _ = select.select([peer], [peer] if sent < len(data) else [], [], 1)
            if writable:
                sent += peer.send(data[sent : sent + 65_536])
            if ready:
                more = peer.recv(65_536)
                expect(more, "the connection was ended")
                rest += more
                answers += rest.count(b"HTTP/1.1 200")
                rest = rest[-12:] if not rest.endswith(b"HTTP/1.1 200") else b""
        expect(answers == count, f"{answers} of {count} requests were answered")


def many_polls(target):
    """Questions for parameters that nobody announced: few are held, the others are answered."""
    with many(target.attacker, 300) as peers:
        for peer in peers:
            send_quietly(peer, head("GET", target.attacker.path))
        time.sleep(1)


def unread_answers(target):
    lines = request(target.attacker, "PUT", b'{"type": "request_parameter"}') + head("GET", target.attacker.path)
    with many(target.attacker, 30) as peers:
        for peer in peers:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.setblocking(False)
        until = time.monotonic() + 3
        while time.monotonic() < until:
            _, ready, _ = select.select([], peers, [], 0.1)
            for peer in ready:
                with contextlib.suppress(OSError):
                    peer.send(lines * 100)


def another_run(target):
    """The token of one trial opens no other trial's address."""
    for other in target.channels[2:]:
        mixed = target.attacker.path[:33] + other.path[33:]
        with connect(target.attacker) as peer:
            peer.sendall(head("PUT", mixed, 2) + b"{}")
            expect_status(read_answer(peer), 404)


# name, what is sent, what must be seen, how, and limits of the target. Each must also leave the target alive and within
# its memory, and the honest trial served.
FEW_FILES = {"open_files": 256}
LITTLE_SPACE = {"address_space": 3 << 30}
ATTACKS = [
    ("garbage", "what is not HTTP", "400 and the end", garbage, {}),
    ("oversized header", "20,000 bytes of header", "431", oversized_header, {}),
    ("endless header", "header lines without end", "431", endless_header, {}),
    ("chunk extension", "a chunk extension without end", "404 or 411 before it", chunk_extension, {}),
    ("chunk trailer", "a trailer without end", "404 or 411 before it", chunk_trailer, {}),
    ("last chunk", "a last chunk in pieces", "404 or 411, no abort", last_chunk_in_pieces, {}),
    ("codings", "transfer encodings of all kinds", "400, 404 or 411 and the end", codings, {}),
    ("smuggling", "a request inside a body of two lengths", "400 or 411; the inner one is not carried out", smuggling, {}),
    ("lengths", "content lengths that are none or too large", "400 or 413 and the end", lengths, {}),
    ("line ends", "bare line feeds, NUL, lines without a colon", "400 and the end", line_ends, {}),
    ("methods", "other methods, upgrades, absolute targets", "405 or 404", methods, {}),
    ("wrong tokens", "1,000 guesses and near misses", "404, and never a token", wrong_tokens, {}),
    ("announced by strangers", "50 MB announced to a wrong address", "404 before a body", answered_before_body, {}),
    ("bodies of strangers", "40 bodies of 50 MB to a wrong address", "nothing is kept", unfinished_bodies, {}),
    ("idle flood", "1,500 idle connections, 256 files", "the oldest are closed", idle_flood, FEW_FILES),
    ("half-sent heads", "1,500 half-sent requests, 256 files", "the oldest are closed", half_sent_heads, FEW_FILES),
    ("slow heads", "200 requests, a byte at a time", "others notice nothing", slow_heads, {}),
    ("pipelining", "requests whose answers nobody reads", "reading stops", pipelining_stranger, {}),
    ("connect and leave", "connections that end at once", "others notice nothing", connect_and_leave, {}),
    ("announced lengths", "60 x 50 MB announced, 3 GB of addresses", "no memory is set aside", announced_lengths, LITTLE_SPACE),
    ("large bodies", "40 bodies of 50 MB, none finished", "they take turns", unfinished_large_bodies, {}),
    ("small bodies", "700 bodies of 64 KB, none finished", "they have a second under pressure", unfinished_small_bodies, {}),
    ("half-sent by a trial", "1,500 half-sent requests with a token", "the oldest are closed", half_sent_by_a_trial, FEW_FILES),
    ("large batch", "a batch of 49 MB of small values", "413 with the limit", large_batch, {}),
    ("many finals", "60,000 final values in a batch", "413 with the limit", many_finals, {}),
    ("8,000 finals", "3 x 8,000 final values", "200", as_many_finals_as_allowed, {}),
    ("full rate", "10 x 8,000 values at once, twice", "200", batches_at_full_rate, {}),
    ("large value", "a value of 48 MB in a batch", "200", large_value, {}),
    ("large single value", "a value of 16 MB in NNI's form", "200", large_single_value, {}),
    ("large garbage", "48 MB that are no command", "200: counted as garbage", large_garbage, {}),
    ("not understood", "invalid UTF-8, nesting, numbers", "200: counted as garbage", not_understood, {}),
    ("broken batches", "framing with wrong lengths", "400", broken_batches, {}),
    ("pipelined values", "2,000 values on a connection at once", "2,000 answers", pipelined_values, {}),
    ("polls", "300 questions for parameters", "few are held", many_polls, {}),
    ("unread answers", "parameters that nobody reads", "reading stops", unread_answers, {}),
    ("another run", "a token with the id of another trial", "404", another_run, {}),
]  # fmt: skip
TARGETS = ("keeper", "http")
