#!/usr/bin/env python3
"""Summarizes a CTest run: one line for each test program, failures with their output, skips with their reason.

usage: test_report.py JUNIT_FILE CTEST_EXIT_CODE

The last line is "N passed, N failed, N skipped". The exit code is 1 when a test failed or CTest itself did.
"""
import collections
import re
import sys
import xml.etree.ElementTree as xml

LONGEST = 60  # lines of output shown of one failed test


def outcome(case):
    if case.find("skipped") is not None and case.get("status") == "notrun":
        reason = case.find("skipped").get("message", "")
        # A program that was never built is not a test that decided to skip.
        return "skipped" if reason.startswith("SKIP_") else "failed"
    return "passed" if case.get("status") == "run" else "failed"


def main(file, ctest_exit_code):
    try:
        cases = list(xml.parse(file).getroot().iter("testcase"))
    except (OSError, xml.ParseError) as error:
        print(f"CTest left no report: {error}")
        cases = []
    by_program = collections.OrderedDict()
    total = collections.Counter()
    skipped, failed = [], []
    for case in cases:
        result = outcome(case)
        total[result] += 1
        program = case.get("name").split(":")[0]
        by_program.setdefault(program, collections.Counter())[result] += 1
        output = case.findtext("system-out") or ""
        if result == "skipped":
            reason = re.search(r"^SKIPPED: (.*)$", output, re.M)
            skipped.append((case.get("name"), reason.group(1) if reason else "no reason given"))
        elif result == "failed":
            failure = case.find("failure")
            message = failure.get("message", "") if failure is not None else ""
            failed.append((case.get("name"), f"{output}\n{message}".strip().split("\n")))
    width = max(map(len, by_program), default=0)
    for program, counts in by_program.items():
        others = "".join(f", {counts[r]} {r}" for r in ("failed", "skipped") if counts[r])
        print(f"   {program:<{width}}  {counts['passed']:4} passed{others}")
    for name, reason in skipped:
        print(f"   skipped: {name}: {reason}")
    for name, output in failed:
        print(f"   FAILED: {name}")
        for line in output[-LONGEST:]:
            print(f"      | {line}")
    if ctest_exit_code != 0 and not failed:
        print(f"   FAILED: CTest itself ended with {ctest_exit_code}")
        total["failed"] += 1
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
