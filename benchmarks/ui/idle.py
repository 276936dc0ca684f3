"""What an idle screen costs: processor time and bytes written, with each pane open.

    python benchmarks/ui/idle.py [--seconds 30]

The model is loaded, an answer has ended and nothing runs. Prints, for each pane, the share of one core that
the whole process used and the bytes it wrote to the terminal. Gates: below 1 %, and no byte.
"""

import argparse
import json
import os
import time
from pathlib import Path

if __package__ in (None, ""):
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.ui.terminal import fresh_environ, pravaha
from tests.pty.terminal import Terminal

KEYS = {"chat": "", "kv": "\x1bOR", "stats": "\x1b[15~", "scheduler": "\x1b[21~"}
"""The sequence that opens each pane: nothing, F3, F5, F10."""
REST_S = 15.0
"""Seconds after an answer until the figure has blinked for the last time."""
SETTLE_S = 5.0
"""Seconds until a pane has drawn its last change."""


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="duration for each pane")
    arguments = parser.parse_args()
    figures = {}
    with fresh_environ() as environ:
        terminal = Terminal(pravaha("--ctx", "2048"), environ, columns=150, rows=40)
        try:
            terminal.wait_for("ready")
            terminal.type("What is the capital of France?\r")
            terminal.wait_for("first token")
            time.sleep(REST_S)
            for pane, keys in KEYS.items():
                terminal.type(keys)
                time.sleep(SETTLE_S)
                before, written = cpu_seconds(terminal.pid), len(terminal.output)
                time.sleep(arguments.seconds)
                used = cpu_seconds(terminal.pid) - before
                figures[pane] = {
                    "core_percent": round(100 * used / arguments.seconds, 2),
                    "bytes": len(terminal.output) - written,
                }
        finally:
            terminal.kill()
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
