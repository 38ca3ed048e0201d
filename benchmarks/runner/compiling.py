"""Time, memory and size of compiling against the library."""

import json
import pathlib
import sys

from session import ROOT, Missing, run

COMPILE_ROWS = [f"compile_{name}" for name in ("compiled", "header_only", "local", "journal", "session")]
COMPILE_ROWS += [f"single_header{suffix}" for suffix in ("", ".memory", ".size")]


def compile_budget(session):
    """What compiling costs; scripts/compile_budget.py measures it and makes the rows."""
    rows = pathlib.Path(session.work) / "compile.json"
    command = [sys.executable, str(ROOT / "scripts" / "compile_budget.py"), "--json", str(rows)]

    def measure():
        if session.peers_only:
            raise Missing("not asked for (--peers-only)")
        return run([*command, "--rounds", str(session.size(3, 1))])

    result = session.attempt(measure)
    if isinstance(result, Exception):
        for name in COMPILE_ROWS:
            session.row(name, "-", result, None, None)
    else:
        session.rows += [row for row in json.loads(rows.read_text()) if session.wants(row["name"])]
