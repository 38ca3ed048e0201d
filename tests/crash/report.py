"""What came out of all jobs, as tables for people and as JSON."""

import collections
import json

from experiments import POINTS, SMALL_JOURNAL

def print_points(points):
    """@returns the points that nobody was killed at"""

    def cell(rows, at):
        if at >= len(rows):
            return "-"
        n, result = rows[at]
        text = "FAILED" if result.violations else "hit" if result.hit else "not passed"
        if result.hit and result.shape is SMALL_JOURNAL:
            text += " (j)"
        return f"{text} ({n:,})" if at == 2 else text

    print("\n(j): the manager kept a journal, in the other experiments an SQLite file")
    print("point                           first       second      n-th            resuming:   second      n-th")
    unhit = []
    for point in POINTS:
        both = [points.get((point, resuming), []) for resuming in (False, True)]
        if not any(both):
            continue
        cells = [cell(rows, at) for rows in both for at in range(3)]
        widths = [12, 12, 16, 12, 12, 12]
        print(f"{point:<32}" + "".join(f"{text:<{width}}" for text, width in zip(cells, widths)).rstrip())
        if not any(result.hit for rows in both for _, result in rows):
            unhit.append(point)
    return unhit


def print_windows(results):
    """@returns {victim: {window: kills}}"""
    windows = collections.defaultdict(collections.Counter)
    for result in results:
        for victim, window in result.windows:
            windows[victim][window] += 1
    if windows:
        victims = [v for v in ("manager", "resuming", "keeper") if v in windows]
        print(f"\n{'last point before a random kill':<36}" + "".join(f"{victim:>12}" for victim in victims))
        for window in ["before the first point", *POINTS]:
            counts = [windows[victim][window] for victim in victims]
            if any(counts):
                print(f"{window:<36}" + "".join(f"{count:>12}" for count in counts))
    return windows


def print_faults(faults):
    if faults:
        print(f"\n{'fault':<28}{'made':>8}{'failed':>8}")
    for fault, row in faults.items():
        made, failed = sum(r.hit for r in row), sum(bool(r.violations) for r in row)
        note = next((f"  {r.note}" for r in row if r.note), "")
        print(f"{fault:<28}{made:>8}{failed:>8}{note}")


def print_totals(done, total, sabotaged):
    print(f"\nrandom kills: {', '.join(f'{count} {kind}' for kind, count in done.items())}")
    for key in sorted(total):
        print(f"{key.replace('_', ' ')}: {total[key]:,}")
    for sabotage, result in sabotaged.items():
        print(f"{sabotage}: {'caught: ' + result.note if result.hit else 'NOT CAUGHT'}")


def write_json(path, report, points, results, sabotaged):
    """Adds what each point, each sabotage and each job came to, and writes the whole."""
    report["hits"] = {
        f"{point}{' while resuming' if resuming else ''}": sum(result.hit for _, result in rows)
        for (point, resuming), rows in points.items()
    }
    report["sabotage"] = {sabotage: result.note if result.hit else None for sabotage, result in sabotaged.items()}
    report["violations"] = [f"{r.name}: {kind}: {text}" for r in results for kind, text in r.violations]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="ascii")
