"""Growth of the screen's memory over many messages.

    python benchmarks/ui/memory_growth.py [--messages 240]

240 messages are two hours of use with one message every thirty seconds. They are sent one after the other,
in conversations of twenty, to the real engine with short answers; every tenth is regenerated, which makes
branches. Prints resident memory after a quarter of them and at the end. Gate: less than 10 % more.

The KV pool is small, so that all its pages are resident after the first quarter: they become so when blocks
are first used, and a larger pool would only show how far it has been filled.
"""

import argparse
import json
import time
from pathlib import Path

if __package__ in (None, ""):
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.cold_start import resident_bytes
from benchmarks.ui.terminal import fresh_environ, pravaha
from tests.pty.terminal import Terminal

NEW, NAVIGATE, PROMPT = "\x0e", "\x1b[Z", "i"
ANSWER_S = 60.0
LENGTH = 20
"""Messages in a conversation."""


def wait_answered(terminal: Terminal, count: int) -> None:
    """Wait until the answer has ended: the status bar says so."""
    deadline = time.monotonic() + ANSWER_S
    time.sleep(0.3)
    while "answering" in terminal.text or "ready" not in terminal.text:
        if time.monotonic() > deadline:
            raise TimeoutError(f"message {count} was not answered:\n{terminal.text}")
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=240)
    arguments = parser.parse_args()
    resident = {}
    with fresh_environ() as environ:
        options = ("--ctx", "2048", "--kv-cache", "32MiB", "--max-tokens", "48")
        terminal = Terminal(pravaha(*options), environ, columns=150, rows=40)
        try:
            terminal.wait_for("ready")
            for count in range(1, arguments.messages + 1):
                if count % LENGTH == 0:
                    terminal.type(NEW)
                terminal.type(f"Tell me fact number {count} about rivers.\r")
                wait_answered(terminal, count)
                if count % 10 == 0:
                    terminal.type(NAVIGATE)
                    terminal.type("r")
                    wait_answered(terminal, count)
                    terminal.type(PROMPT)
                if count in (arguments.messages // 4, arguments.messages):
                    resident[count] = resident_bytes(terminal.pid)
        finally:
            terminal.kill()
    first, last = resident.values()
    print(
        json.dumps(
            {
                "resident_mb": {str(at): round(size / 1e6, 1) for at, size in resident.items()},
                "growth_percent": round(100 * (last / first - 1), 1),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
