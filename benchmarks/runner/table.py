"""The rows of a session for people."""

import textwrap


def table(rows):
    """The rows as lines of text, and below them what is missing and why."""

    def number(value):
        if value is None:
            return "-"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

    met = {None: "-", True: "yes", False: "no"}
    head = ["name", "ours", "unit", "peer", "peer name", "ratio", "goal", "met"]
    cells = [
        [row["name"], number(row["ours"]), row["unit"], number(row["peer"]), row["peer_name"] or "-"]
        + [number(row["ratio"]), row["goal"] or "-", met[row["met"]]]
        for row in rows
    ]
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
    right = {1, 3, 5}
    lines = [
        "  ".join(cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(line))
        for line in [head, ["-" * width for width in widths], *cells]
    ]
    reasons = {}
    for row in rows:
        if "note" in row:
            reasons.setdefault(row["note"], []).append(row["name"])
    wrapped = {note: textwrap.fill(", ".join(names), 116) for note, names in reasons.items()}
    notes = [f"{note}:\n{textwrap.indent(names, '    ')}" for note, names in wrapped.items()]
    return "\n".join(line.rstrip() for line in [*lines, *([""] if notes else []), *notes])
