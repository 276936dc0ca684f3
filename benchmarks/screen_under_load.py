"""What the screen costs the engine, and the engine the screen, while many streams run.

    python benchmarks/screen_under_load.py [--streams 32] [--pairs 5] [--samples 300] [--json FILE]

Runs the real application on a pseudo-terminal of 140×36 (the narrowest that shows chat and KV map side
by side), a chat answer and STREAMS other requests generating in its engine, and prints

* *key to echo*: from the byte of a printable key to the prompt cell that shows it, read by `pyte`;
  keys come at random instants;
* *loop lag*: how late a task that sleeps 20 ms on the application's event loop wakes up;
* *processor*: the share of one core that the application's own thread takes, from its scheduler's
  account, which other programs hardly move;
* *throughput*: generated tokens per second with the screen over the same without it, in alternating
  pairs of fresh processes; the median ratio. What the screen writes is read from the pseudo-terminal
  and put aside meanwhile: emulating a terminal in Python would be a third program in the comparison.

Gates: key to echo p95 < 50 ms, loop lag p95 < 25 ms, ratio ≥ 0.95.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import string
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.client import EngineClient

ROOT = Path(__file__).resolve().parents[1]
WARM_UP_S = 10.0
MEASURED_S = 20.0
PROMPT_TOKENS, NEW_TOKENS = 64, 256
HEARTBEAT_S = 0.02
SAMPLE_S = 0.25
COLUMNS, ROWS = 140, 36
PROMPT_ROWS = range(ROWS - 5, ROWS - 1)
TYPED = 24
"""Characters typed before they are deleted again; both directions are measured."""
ENTER, BACKSPACE, CTRL_Q = "\r", "\x7f", "\x11"
LONG = "Write a very long story about a river."


# -- inside the measured process -------------------------------------------------------------------


def keep_busy(client: "EngineClient", streams: int, report: Path) -> None:
    """Keep `streams` requests generating, and append (seconds, tokens generated) to `report`."""
    from app.runtime import wait_loaded
    from engine.request import Request, SamplingParams

    generator = random.Random(1)

    def submit() -> str:
        prompt = tuple(generator.randrange(100, 40_000) for _ in range(PROMPT_TOKENS))
        sampling = SamplingParams(temperature=0.0, max_tokens=NEW_TOKENS, ignore_eos=True)
        return client.submit(Request(prompt, sampling))

    wait_loaded(client)
    requests = [submit() for _ in range(streams)]
    with report.open("a") as file:
        while True:
            time.sleep(SAMPLE_S)
            for index, request in enumerate(requests):
                batch = client.drain(request)
                if batch is not None and batch.finish_reason is not None:
                    requests[index] = submit()
            figures = [time.monotonic(), client.snapshot().totals.generation_tokens]
            file.write(json.dumps(figures) + "\n")
            file.flush()


def start_load(client: "EngineClient", streams: int, report: Path) -> None:
    """Run `keep_busy` beside the application."""
    threading.Thread(target=keep_busy, args=(client, streams, report), daemon=True).start()


def run_headless(streams: int, report: Path) -> None:
    """The engine alone, until killed."""
    from app.runtime import open_client
    from app.settings_sources import load_settings

    with open_client(load_settings({})) as opened:
        opened.start()
        keep_busy(opened.client, streams, report)


def run_screen(streams: int, report: Path) -> None:
    """The application as `pravaha` starts it, with the load beside and a heartbeat inside."""
    from app.commands.screen import open_screen
    from app.tui.app import PravahaApp

    async def beat() -> None:
        with report.with_suffix(".lag").open("a") as file:
            while True:
                beats = []
                for _ in range(round(1 / HEARTBEAT_S)):
                    due = time.monotonic() + HEARTBEAT_S
                    await asyncio.sleep(HEARTBEAT_S)
                    woken = time.monotonic()
                    beats.append(f"[{woken}, {woken - due}]\n")
                file.write("".join(beats))
                file.flush()

    def on_load(self: PravahaApp) -> None:
        self.heart = asyncio.create_task(beat())  # kept, or it would be collected
        start_load(self.client, streams, report)

    # A subclass would look for its style sheet beside this file.
    PravahaApp.on_load = on_load
    sys.exit(open_screen({}))


# -- the measuring process -------------------------------------------------------------------------


def command(kind: str, streams: int, report: Path) -> list[str]:
    """This file, as the measured process."""
    return [sys.executable, __file__, "--child", kind, str(streams), str(report)]


@contextmanager
def fresh_home() -> Iterator[tuple[Path, dict[str, str]]]:
    """A report's path, and an environment with conversations of its own."""
    with tempfile.TemporaryDirectory() as directory:
        environ = os.environ | {
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PRAVAHA_DATA_DIR": f"{directory}/data",
            "PRAVAHA_CONFIG_DIR": f"{directory}/config",
            "PRAVAHA_TEMPERATURE": "0",
            "PRAVAHA_MAX_TOKENS": "4096",
        }
        environ.pop("TMUX", None)
        yield Path(directory) / "report", environ


def lines(report: Path) -> list[list[float]]:
    """The whole lines of a report that may be being written."""
    if not report.exists():
        return []
    return [json.loads(line) for line in report.read_text().splitlines(True) if line[-1] == "\n"]


def throughput(report: Path, begin: float, end: float) -> float:
    """Tokens per second between two instants of the monotonic clock."""
    window = [(at, tokens) for at, tokens in lines(report) if begin <= at <= end]
    (first_at, first), (last_at, last) = window[0], window[-1]
    return (last - first) / (last_at - first_at)


def wait_for_load(report: Path) -> float:
    """Wait until the streams have run for `WARM_UP_S`; the instant."""
    while not lines(report):
        time.sleep(0.1)
    time.sleep(WARM_UP_S)
    return time.monotonic()


def measure_headless(streams: int) -> float:
    """Tokens per second without a screen."""
    with fresh_home() as (report, environ):
        child = subprocess.Popen(command("headless", streams, report), env=environ)
        try:
            begin = wait_for_load(report)
            time.sleep(MEASURED_S)
            return throughput(report, begin, time.monotonic())
        finally:
            child.kill()
            child.wait()


@dataclass(frozen=True, slots=True)
class WithScreen:
    """What one process with a screen gave.

    Attributes:
        tokens_per_second: generated while nobody typed.
        processor: share of a core its own thread took meanwhile.
        lag: how late its event loop was meanwhile, seconds.
        echo: from key to echo, seconds; taken afterwards.
    """

    tokens_per_second: float
    processor: float
    lag: list[float]
    echo: list[float]


def processor_seconds(pid: int) -> float:
    """What a process's first thread has taken so far."""
    account = Path(f"/proc/{pid}/task/{pid}/schedstat")
    return int(account.read_text().split()[0]) / 1e9 if account.exists() else float("nan")


def measure_screen(streams: int, samples: int) -> WithScreen:
    """One process with a screen."""
    sys.path.insert(0, str(ROOT))
    from tests.pty.terminal import Terminal

    with fresh_home() as (report, environ):
        child = command("screen", streams, report)
        terminal = Terminal(child, environ, columns=COLUMNS, rows=ROWS)
        try:
            terminal.wait_until(lambda text: "ready" in text or "working" in text, "a loaded model")
            terminal.type(LONG)
            terminal.wait_for(LONG)
            terminal.type(ENTER)
            with terminal.unread():
                begin = wait_for_load(report)
                taken = processor_seconds(terminal.pid)
                time.sleep(MEASURED_S)
                end = time.monotonic()
                taken = processor_seconds(terminal.pid) - taken
            lag = [late for at, late in lines(report.with_suffix(".lag")) if begin <= at <= end]
            rate = throughput(report, begin, end)
            echo = list(key_to_echo(terminal, samples))
            return WithScreen(rate, taken / (end - begin), lag, echo)
        finally:
            terminal.kill()


def key_to_echo(terminal: Any, samples: int) -> Iterator[float]:
    """Seconds from a key's byte to the changed prompt, one after another."""
    generator = random.Random(7)
    typed = ""
    alphabet = "".join(generator.sample(string.ascii_letters + string.digits, TYPED))
    growing = True
    for _ in range(samples):
        time.sleep(generator.uniform(0.02, 0.2))
        if growing:
            before, typed = typed, alphabet[: len(typed) + 1]
        else:
            before, typed = typed, typed[:-1]
        started = time.perf_counter()
        terminal.type(typed[-1] if growing else BACKSPACE)
        if growing:
            terminal.wait_until(lambda text, t=typed: t in text, typed, rows=PROMPT_ROWS)
        else:
            terminal.wait_until(lambda text, b=before: b not in text, typed, rows=PROMPT_ROWS)
        yield time.perf_counter() - started
        if len(typed) == TYPED:
            growing = False
        elif len(typed) <= 1:
            growing = True


def spread(seconds: list[float]) -> dict[str, float]:
    """Median, p95, p99 and maximum, in milliseconds."""
    ordered = sorted(seconds)

    def at(share: float) -> float:
        return round(1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)

    return {"median": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": at(1.0)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=300, help="keys pressed, all pairs together")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, streams, report = options.child
        (run_screen if kind == "screen" else run_headless)(int(streams), Path(report))
        return
    ratios, echo, lag, processor = [], [], [], []
    for number in range(options.pairs):
        headless = measure_headless(options.streams)
        screen = measure_screen(options.streams, -(-options.samples // options.pairs))
        ratios.append(screen.tokens_per_second / headless)
        echo += screen.echo
        lag += screen.lag
        processor.append(screen.processor)
        print(
            f"pair {number + 1}: {headless:,.0f} tok/s headless, "
            f"{screen.tokens_per_second:,.0f} with the screen, "
            f"which took {screen.processor:.1%} of a core; "
            f"key to echo p95 {spread(screen.echo)['p95']} ms",
            file=sys.stderr,
            flush=True,
        )
    result = {
        "streams": options.streams,
        "key_to_echo_ms": spread(echo),
        "loop_lag_ms": spread(lag),
        "screen_share_of_a_core": round(statistics.median(processor), 3),
        "throughput_ratio": round(statistics.median(ratios), 3),
        "throughput_ratios": [round(ratio, 3) for ratio in ratios],
    }
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
