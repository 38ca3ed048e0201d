#!/usr/bin/env python3
"""Finds statements with co_await that g++ 12 miscompiles (the rules are in nni/async/awaitable.hpp).

usage: check_coroutines.py [--self-test] [FILE...]      without files: all sources that git knows

In the same statement as co_await there must be no braced initializers, no lambda that captures
by value, and no conditional operator; and an assertion of Catch2, which names its argument twice, holds no co_await,
because g++ then waits twice. A line with the comment "co_await-ok: REASON" is accepted.
"""
import re
import subprocess
import sys

NOISE = re.compile(
    r'R"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)"'  # raw string
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'"  # not a digit separator
    r"|//[^\n]*|/\*.*?\*/"
    r"|^[ \t]*#(?:[^\n\\]|\\.)*(?:\\\n[^\n]*)*", re.S | re.M)
HEADER = re.compile(  # the end of what stands before a function body
    r"\)\s*(?:const\b|noexcept(?:\s*\([^()]*\))?|override\b|final\b|mutable\b|&&?|\s)*"
    r"(?:->[^;{}=]*|requires\b[^;{}]*)?$")
ASSERTION = re.compile(r"\b(?:CHECK|REQUIRE)[A-Z_]*\s*(?=\()")
OPEN, CLOSE = "([{", ")]}"


def blank(text):
    """Comments, literals and preprocessor lines become spaces of the same length; a literal keeps its quotes."""
    def spaces(match):
        kept = re.sub(r"[^\n]", " ", match.group())
        return '"' + kept[1:-1] + '"' if match.group()[0] in "\"'R" and len(kept) > 1 else kept
    return NOISE.sub(spaces, text)


class Source:
    def __init__(self, text):
        self.raw_lines = text.split("\n")
        self.text = blank(text)
        self.partner = {}
        stack = []
        for at, letter in enumerate(self.text):
            if letter in OPEN:
                stack.append(at)
            elif letter in CLOSE and stack:
                begin = stack.pop()
                self.partner[begin], self.partner[at] = at, begin

    def before(self, at):
        """Position of the last visible character before `at`, or -1."""
        at -= 1
        while at >= 0 and self.text[at].isspace():
            at -= 1
        return at

    def is_lambda(self, at):
        """Whether the [ at this place opens the captures of a lambda."""
        if self.text[at + 1:at + 2] == "[" or self.text[at - 1:at] == "[":
            return False  # attribute
        head = self.text[:at].rstrip()
        if re.search(r"\b(?:return|co_return|co_await|co_yield|case)$", head):
            return True
        return not re.search(r"(?:[\w)\]\"]|\bauto\s*&{0,2})$", head)

    def is_block(self, at):
        """Whether the { at this place opens statements rather than a value."""
        last = self.before(at)
        if last < 0 or self.text[last] in ";}:":
            return True
        if self.text[last] == "{":
            return self.is_block(last)
        if self.text[last] == "]":
            return self.is_lambda(self.partner.get(last, 0))
        head = self.text[:at]
        boundary = max(head.rfind(letter) for letter in ";{}")
        head = head[boundary + 1:]
        return bool(HEADER.search(head) or re.search(r"\b(?:else|do|try)\s*$", head))

    def start_of_statement(self, at):
        while at > 0:
            at -= 1
            letter = self.text[at]
            if letter == ";":
                return at + 1
            if letter == "{" and self.is_block(at):
                return at + 1
            if letter == "}":
                rest = self.text[at + 1:].lstrip()
                if self.is_block(self.partner.get(at, 0)) and rest[:1] not in (")", ",", ";", ".", "("):
                    return at + 1
            if letter in CLOSE:
                at = self.partner.get(at, at)
        return 0

    def statement(self, at):
        """Yields the positions of the statement around `at`, without the bodies of lambdas in it."""
        at = self.start_of_statement(at)
        depth = 0
        while at < len(self.text):
            letter = self.text[at]
            if letter == ";" or (letter == "}" and depth == 0):
                return
            if letter == "{" and self.is_block(at):
                if depth == 0 and not re.search(r"\][^;{}]*$", self.text[max(0, at - 200):at]):
                    return
                at = self.partner.get(at, at) + 1
                continue
            depth += (letter in OPEN) - (letter in CLOSE)
            yield at
            at += 1

    def problems(self):
        """Yields (line, what) for everything that is wrong."""
        seen = set()
        for match in re.finditer(r"\bco_await\b", self.text):
            for at in self.statement(match.start()):
                if at in seen:
                    continue
                seen.add(at)
                what = self.problem_at(at)
                line = self.text.count("\n", 0, at) + 1
                if what and "co_await-ok:" not in self.raw_lines[line - 1]:
                    yield line, what
        for match in ASSERTION.finditer(self.text):
            argument = self.text[match.end():self.partner.get(match.end(), match.end())]
            if re.search(r"\bco_await\b", argument):
                line = self.text.count("\n", 0, match.start()) + 1
                yield line, "co_await in an assertion, which may wait twice: name the value in a statement before"

    def problem_at(self, at):
        letter = self.text[at]
        if letter == "?":
            return "conditional operator in a statement with co_await: use if"
        if letter == "{":
            return "braces in a statement with co_await: name the value in a statement before"
        if letter == "[" and self.is_lambda(at):
            captures = self.text[at + 1:self.partner.get(at, at)].split(",")
            if any(c.strip() and c.strip() != "this" and not c.strip().startswith("&") for c in captures):
                return "lambda that captures by value in a statement with co_await: name it in a statement before"
        return None


GOOD = ["auto a = co_await f(x);", "if (co_await f()) { g({1}); }", "auto w = f({1, 2}); auto r = co_await std::move(w);",
        "// co_await f({})\nint i{3};", 'auto s = co_await f("{?}");', "co_await f([&] { return T{}; });",
        "co_await f([this, &x](int i) { return i ? 1 : 2; });", "for (auto& x : {1, 2}) { co_await f(x); }",
        "auto r = b ? 1 : 2; co_await f(r);", "auto [a, b] = co_await f();", "values[co_await f()] = 1;",
        "T x{}; co_await f(x);", "while (co_await next()) { }", "co_await f({1});  // co_await-ok: probe",
        "spawn(ex, [x]() -> awaitable<void> { co_await f(x); }, detached);", "switch (co_await f()) { case 1: { break; } }",
        "awaitable<void> f() requires C<T> { co_await g(); }", "if (a) { x = T{}; } co_await f();", "int n = 1'000; co_await f(n);",
        "auto l = [x] { return T{x}; }; co_await f(l);", "try { co_await f(); } catch (...) { g({}); }",
        "auto got = co_await f(); CHECK(got == 3);"]
BAD = ["co_await f({1, 2});", "co_await f(Options{.a = 1});", "co_await\n    f(T{});", "T t{co_await f(), 2};",
       "co_await f([x] { });", "co_await f([=] { });", "co_await f([x = std::move(y)]() mutable { });",
       "auto v = b ? co_await f() : T();", "co_await (b ? f(x) : g(y));", "std::vector<int> v{co_await a(), co_await b()};",
       "co_return co_await f(Options{});", "g(json::object{{k, co_await f()}});", "if (co_await f({})) { }",
       "CHECK(co_await f());", "REQUIRE_THAT(g(co_await f()), Is(3));",
       "co_await [x]() -> awaitable<void> { co_return; }();", "co_await f([*this] { });", "auto x = T{1}.get(co_await f());"]


def self_test():
    wrong = 0
    for snippets, expected in ((GOOD, False), (BAD, True)):
        for snippet in snippets:
            body = snippet if snippet.startswith("awaitable") else "awaitable<void> run() {\n" + snippet + "\n}\n"
            if bool(list(Source(body).problems())) != expected:
                wrong += 1
                print(f"check_coroutines --self-test: should{'' if expected else ' not'} be found: {snippet}")
    print(f"check_coroutines --self-test: {len(GOOD) + len(BAD)} snippets, {wrong} wrong")
    return wrong


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    files = arguments or subprocess.run(["git", "ls-files", "*.hpp", "*.cpp", ":!tests/compiler"],
                                        check=True, capture_output=True, text=True).stdout.split()
    count = 0
    for file in files:
        with open(file, encoding="utf-8") as stream:
            text = stream.read()
        if "co_await" not in text:
            continue
        for line, what in Source(text).problems():
            print(f"{file}:{line}: {what}")
            count += 1
    print(f"check_coroutines: {len(files)} files, {count} problems")
    return count


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
