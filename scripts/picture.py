#!/usr/bin/env python3
"""Renders the terminal output of a command as SVG, for the documents.

    scripts/picture.py --out docs/images/run.svg [--size 110x24] [--when REGEX] [--title TITLE] -- COMMAND [ARGUMENT...]

The command runs on a terminal of its own. The picture is the screen when REGEX matches one of its lines for the first time, or the last
screen. Needs the Python packages pyte and rich.
"""

import argparse
import os
import pty
import re
import struct
import sys
import fcntl
import termios

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

COLORS = {"brown": "yellow"}


def show(command, columns, lines, when):
    """Runs the command and returns the screen as pyte keeps it."""
    screen = pyte.Screen(columns, lines)
    stream = pyte.ByteStream(screen)
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(columns), LINES=str(lines))
        os.environ.pop("NO_COLOR", None)
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    taken = None
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the terminal is gone with its last process
            break
        if not data:
            break
        stream.feed(data)
        if when and taken is None and any(re.search(when, line) for line in screen.display):
            taken = draw(screen)
    os.waitpid(child, 0)
    if when and taken is None:
        sys.exit(f"picture.py: nothing matched {when!r}")
    return taken or draw(screen)


def draw(screen):
    """The screen as styled text, without empty lines at its end."""
    rows = []
    for y in range(screen.lines):
        row = Text()
        for x in range(screen.columns):
            cell = screen.buffer[y][x]
            color = COLORS.get(cell.fg, cell.fg)
            if re.fullmatch("[0-9a-f]{6}", color):
                color = "#" + color
            elif color.startswith("bright"):
                color = "bright_" + color.removeprefix("bright")
            style = Style(color=None if color == "default" else color, bold=cell.bold, reverse=cell.reverse)
            row.append(cell.data, style)
        row.rstrip()
        rows.append(row)
    while rows and not rows[-1].plain:
        rows.pop()
    return Text("\n").join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--size", default="110x24", help="columns x lines")
    parser.add_argument("--when", default="")
    parser.add_argument("--title", default="")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    columns, lines = (int(number) for number in options.size.split("x"))
    console = Console(record=True, width=columns, file=open(os.devnull, "w"), force_terminal=True, color_system="truecolor")
    console.print(show(options.command, columns, lines, options.when), soft_wrap=True)
    svg = console.export_svg(title=options.title or " ".join(options.command))
    # A picture in a repository asks no other server for its letters.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.S).replace("Fira Code", "DejaVu Sans Mono")
    # Rich cuts off what hangs below the last line.
    svg = re.sub(r'(clip-terminal">\s*<rect [^>]*height=")([0-9.]+)', lambda at: f"{at[1]}{float(at[2]) + 4:.1f}", svg)
    with open(options.out, "w") as file:
        file.write(svg)


if __name__ == "__main__":
    main()
