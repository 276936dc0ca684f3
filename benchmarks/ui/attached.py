"""How fast keys act on a screen that is attached to a server far away.

    python benchmarks/ui/attached.py [--round-trip 0.15] [--samples 20]

A relay between the screen and `pravaha --serve` on this machine delays all data by half the round trip.
Measured once without and once with the delay, in milliseconds: from start to `ready`, from a key to its
echo while an answer is written, and from `L` to the token cursor.
Gate: the echo's p95 below 50 ms with a round trip of 150 ms.
"""

import argparse
import json
import random
import statistics
import string
import time
from collections.abc import Callable
from pathlib import Path

if __package__ in (None, ""):
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.ui.terminal import fresh_environ, pravaha
from tests.pty.terminal import Terminal
from tests.server.cutting_proxy import cutting_proxy
from tests.server.process import server_process

LONG = "Write a very long story about a river. Never end it."
CTRL_C, ENTER, BACKSPACE, NEW, SHIFT_TAB = "\x03", "\r", "\x7f", "\x0e", "\x1b[Z"
COLUMNS, ROWS = 120, 36
PROMPT_ROWS = range(ROWS - 5, ROWS - 1)


def measure(url: str, environ: dict[str, str], samples: int) -> dict[str, float]:
    """The figures over one connection."""
    started = time.monotonic()
    terminal = Terminal(
        pravaha("--attach", url, "--temperature", "0", "--no-stop-repetition"),
        environ,
        columns=COLUMNS,
        rows=ROWS,
    )
    try:
        terminal.wait_for("● ready")
        ready = time.monotonic() - started
        echoes: list[float] = []
        while len(echoes) < samples:
            _begin_answer(terminal)
            echoes += _echoes(terminal, samples - len(echoes))
            if "answering" in terminal.text:
                terminal.type(CTRL_C)
            terminal.wait_for("● ready")
            terminal.type(BACKSPACE * samples)
            terminal.wait_for("Ask anything")
        terminal.type(SHIFT_TAB)
        terminal.wait_for("NAVIGATE")
        cursor = _seconds(terminal, "L", lambda text: "token 1/" in text)
    finally:
        terminal.kill()
    echoes.sort()
    return {
        "ready_ms": round(1e3 * ready),
        "echo_p50_ms": round(1e3 * statistics.median(echoes), 1),
        "echo_p95_ms": round(1e3 * echoes[int(0.95 * (len(echoes) - 1))], 1),
        "token_cursor_ms": round(1e3 * cursor),
    }


def _begin_answer(terminal: Terminal) -> None:
    terminal.type(NEW)
    terminal.wait_for("Ask anything")
    terminal.type(LONG)
    terminal.wait_for(LONG[-20:])
    terminal.type(ENTER)
    terminal.wait_until(lambda text: "answering" in text and "sending" not in text, "an answer")


def _echoes(terminal: Terminal, samples: int) -> list[float]:
    generator = random.Random(7)
    echoes: list[float] = []
    typed = ""
    for letter in generator.sample(string.ascii_letters + string.digits, samples):
        time.sleep(generator.uniform(0.05, 0.2))
        if "answering" not in terminal.text:
            break
        typed += letter
        echoes.append(
            _seconds(terminal, letter, lambda text, shown=typed: shown in text, PROMPT_ROWS)
        )
    return echoes


def _seconds(
    terminal: Terminal, keys: str, seen: Callable[[str], bool], rows: range | None = None
) -> float:
    started = time.monotonic()
    terminal.type(keys)
    terminal.wait_until(seen, keys, rows=rows)
    return time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--round-trip", type=float, default=0.15, help="seconds")
    parser.add_argument("--samples", type=int, default=20, help="keys typed")
    options = parser.parse_args()
    figures = {}
    serve = pravaha("--serve", "--port", "0", "--ctx", "4096", "--kv-cache", "256MiB")
    with server_process(serve) as server:
        host, _, port = server.url.removeprefix("http://").rpartition(":")
        for seconds in (0.0, options.round_trip):
            with (
                fresh_environ() as environ,
                cutting_proxy((host, int(port)), delay_s=seconds / 2) as proxy,
            ):
                figures[f"round trip {seconds} s"] = measure(proxy.url, environ, options.samples)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
