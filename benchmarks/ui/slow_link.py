"""How fast keys act on a slow link, while an answer is written.

    python benchmarks/ui/slow_link.py [--rate 15000] [--samples 10]

The reader of the pseudo-terminal takes `--rate` bytes a second, once with the kernel's buffers alone and
once behind a buffer that accepts everything at once, as ssh does. Measured during an answer: from a key to
its echo in the prompt, and from Ctrl+C to "stopped". Gate: 500 ms.
"""

import argparse
import json
import random
import string
import time
from collections.abc import Iterator
from pathlib import Path

if __package__ in (None, ""):
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.ui.terminal import SlowTerminal, fresh_environ, pravaha

LONG = "Write a very long story about a river. Never end it."
CTRL_C, ENTER, BACKSPACE, NEW = "\x03", "\r", "\x7f", "\x0e"
COLUMNS, ROWS = 120, 36
PROMPT_ROWS = range(ROWS - 5, ROWS - 1)
BEFORE_S = 2.0
"""Seconds of an answer before the first key: the text then scrolls."""


def measure(rate: int, samples: int, *, buffered: bool) -> dict[str, object]:
    """Seconds to the echo of each key and to "stopped", and the bytes written a second."""
    with fresh_environ() as environ:
        command = pravaha("--ctx", "4096", "--kv-cache", "256MiB", "--temperature", "0")
        terminal = SlowTerminal(
            [*command, "--no-stop-repetition"],
            environ,
            bytes_per_second=rate,
            buffered=buffered,
            columns=COLUMNS,
            rows=ROWS,
        )
        try:
            terminal.wait_for("ready")
            echoes: list[float] = []
            while len(echoes) < samples:
                _answer(terminal)
                began, before = time.monotonic(), len(terminal.output)
                echoes += _echoes(terminal, samples - len(echoes))
                written = (len(terminal.output) - before) / (time.monotonic() - began)
                terminal.type(CTRL_C)
                terminal.wait_for("ready")
                terminal.type(BACKSPACE * samples)
            _answer(terminal)
            started = time.monotonic()
            terminal.type(CTRL_C)
            terminal.wait_for("stopped")
            stop = time.monotonic() - started
        finally:
            terminal.kill()
    return {
        "echo_ms": [round(1e3 * each) for each in echoes],
        "echo_max_ms": round(1e3 * max(echoes)),
        "stop_ms": round(1e3 * stop),
        "bytes_per_second": round(written),
    }


def _answer(terminal: SlowTerminal) -> None:
    """Begin an answer in a new conversation, and wait until its text scrolls."""
    terminal.type(NEW)
    terminal.wait_for("Ask anything")
    terminal.type(LONG)
    terminal.wait_for(LONG[-20:])
    terminal.type(ENTER)
    terminal.wait_for("answering")
    time.sleep(BEFORE_S)


def _echoes(terminal: SlowTerminal, samples: int) -> Iterator[float]:
    generator = random.Random(7)
    typed = ""
    for letter in generator.sample(string.ascii_letters + string.digits, samples):
        time.sleep(generator.uniform(0.2, 0.6))
        if "answering" not in terminal.text:
            return
        typed += letter
        started = time.monotonic()
        terminal.type(letter)
        terminal.wait_until(lambda text, t=typed: t in text, typed, rows=PROMPT_ROWS)
        yield time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=int, default=15_000, help="bytes a second")
    parser.add_argument("--samples", type=int, default=10, help="keys typed")
    options = parser.parse_args()
    print(
        json.dumps(
            {
                name: measure(options.rate, options.samples, buffered=buffered)
                for name, buffered in (("kernel_buffers", False), ("ssh_like_buffer", True))
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
