"""Mutual interference of TUI and engine while many streams run: UI latency and throughput.

    python benchmarks/screen_under_load.py [--streams 32] [--pairs 5] [--turns 8] [--samples 300]
        [--json FILE]

Runs the application on a pseudo-terminal of 140×36 (the narrowest that shows chat and KV map side by
side), with a chat answer and STREAMS other requests generating in its engine; and, for comparison, the
same engine without a TUI and the same load. Both processes are started anew for each pair. Prints

* *key to echo*: from the byte of a printable key to the prompt cell that shows it, read by `pyte`;
  keys are typed at random instants;
* *loop lag*: how late a task that sleeps 20 ms on the application's event loop wakes up;
* *processor*: the fraction of one core used by the application's main thread, from
  `/proc/<pid>/task/<tid>/schedstat`, which other programs hardly affect;
* *throughput*: generated tokens per second with the TUI over those without. The two processes run in
  alternating turns of a few seconds, with the other one stopped, because the speed of a shared machine
  varies by a fifth within a minute. Each turn with the TUI is compared with the mean of the turns before
  and after it, and the median of the ratios is reported. The TUI's output is read from the pseudo-terminal
  but not emulated meanwhile, since a terminal emulator in Python would compete for the CPU.

Gates: key to echo p95 < 50 ms, loop lag p95 < 25 ms, ratio ≥ 0.95.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import string
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.machine import write_result

if TYPE_CHECKING:
    from engine.clients.engine_client import EngineClient

ROOT = Path(__file__).resolve().parents[1]
WARM_UP_S = 10.0
LOAD_TIMEOUT_S = 120.0
SETTLE_S, TURN_S = 0.5, 4.0
PROMPT_TOKENS, NEW_TOKENS, CHAT_TOKENS = 64, 256, 4096
HEARTBEAT_S = 0.02
SAMPLE_S = 0.25
COLUMNS, ROWS = 140, 36
PROMPT_ROWS = range(ROWS - 5, ROWS - 1)
TYPED = 24
"""Characters typed before they are deleted; both directions are measured."""
ENTER, BACKSPACE, CTRL_Q = "\r", "\x7f", "\x11"
LONG = "Write a very long story about a river."


# -- inside the measured process -------------------------------------------------------------------


def keep_busy(client: "EngineClient", streams: int, report: Path, *, chat: bool) -> None:
    """Keep `streams` requests generating, and append (seconds, tokens generated) to `report`.

    With `chat`, also run one long request, in place of a chat answer.
    """
    from app.runtime.opening import wait_loaded
    from engine.api.request import Request, SamplingParams

    generator = random.Random(1)

    def submit(tokens: int) -> str:
        prompt = tuple(generator.randrange(100, 40_000) for _ in range(PROMPT_TOKENS))
        sampling = SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True)
        return client.submit(Request(prompt, sampling))

    wait_loaded(client)
    if chat:
        submit(CHAT_TOKENS)
    # The first requests have random lengths, so that later ones finish at evenly spread times.
    requests = [submit(generator.randint(1, NEW_TOKENS)) for _ in range(streams)]
    with report.open("a") as file:
        while True:
            time.sleep(SAMPLE_S)
            for index, request in enumerate(requests):
                batch = client.drain(request)
                if batch is not None and batch.finish_reason is not None:
                    requests[index] = submit(NEW_TOKENS)
            figures = [time.monotonic(), client.snapshot().totals.generation_tokens]
            file.write(json.dumps(figures) + "\n")
            file.flush()


def heartbeat_switch(report: Path) -> Path:
    """The file whose existence turns the heartbeat in the application on."""
    return report.with_suffix(".heart")


def start_load(client: "EngineClient", streams: int, report: Path) -> None:
    """Run `keep_busy` on a thread of the application."""
    arguments = (client, streams, report)
    threading.Thread(target=keep_busy, args=arguments, kwargs={"chat": False}, daemon=True).start()


def run_headless(streams: int, report: Path) -> None:
    """Run the engine without a TUI until killed."""
    from app.runtime.opening import open_client
    from app.settings.sources import load_settings

    with open_client(load_settings({})) as opened:
        opened.start()
        keep_busy(opened.client, streams, report, chat=True)


def run_screen(streams: int, report: Path) -> None:
    """Run the application as `pravaha` does, with the load and a heartbeat task."""
    from app.commands.screen import open_screen
    from app.tui.app import PravahaApp

    async def beat() -> None:
        with report.with_suffix(".lag").open("a") as file:
            while True:
                if not heartbeat_switch(
                    report
                ).exists():  # waking up so often would cost throughput
                    await asyncio.sleep(SAMPLE_S)
                    continue
                beats = []
                for _ in range(round(1 / HEARTBEAT_S)):
                    due = time.monotonic() + HEARTBEAT_S
                    await asyncio.sleep(HEARTBEAT_S)
                    woken = time.monotonic()
                    beats.append(f"[{woken}, {woken - due}]\n")
                file.write("".join(beats))
                file.flush()

    def on_load(self: PravahaApp) -> None:
        self.heart = asyncio.create_task(beat())  # a reference, so that it is not collected
        start_load(self.client, streams, report)

    # Patched, since a subclass would look for its style sheet in this directory.
    PravahaApp.on_load = on_load
    sys.exit(open_screen({}))


# -- the measuring process -------------------------------------------------------------------------


def command(kind: str, streams: int, report: Path) -> list[str]:
    """The command line that runs this file as a measured process."""
    return [sys.executable, __file__, "--child", kind, str(streams), str(report)]


@contextmanager
def fresh_home() -> Iterator[tuple[Path, dict[str, str]]]:
    """Path of a report, and an environment with new data and configuration directories."""
    with tempfile.TemporaryDirectory() as directory:
        environ = os.environ | {
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PRAVAHA_DATA_DIR": f"{directory}/data",
            "PRAVAHA_CONFIG_DIR": f"{directory}/config",
            "PRAVAHA_TEMPERATURE": "0",
            "PRAVAHA_MAX_TOKENS": str(CHAT_TOKENS),
        }
        environ.pop("TMUX", None)
        yield Path(directory) / "report", environ


def lines(report: Path) -> list[list[float]]:
    """The complete lines of a report that may still be written to."""
    if not report.exists():
        return []
    return [json.loads(line) for line in report.read_text().splitlines(True) if line[-1] == "\n"]


def throughput(report: Path, begin: float, end: float) -> float:
    """Tokens per second between two instants of the monotonic clock."""
    window = [(at, tokens) for at, tokens in lines(report) if begin <= at <= end]
    (first_at, first), (last_at, last) = window[0], window[-1]
    return (last - first) / (last_at - first_at)


def wait_for_load(report: Path) -> None:
    """Wait until the streams have run for `WARM_UP_S`.

    Raises:
        TimeoutError: they did not start within `LOAD_TIMEOUT_S`.
    """
    deadline = time.monotonic() + LOAD_TIMEOUT_S
    while not lines(report):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the engine generated nothing within {LOAD_TIMEOUT_S:.0f} s")
        time.sleep(0.1)
    time.sleep(WARM_UP_S)


@dataclass(slots=True)
class Pair:
    """The measurements of a pair of processes.

    Attributes:
        headless: tokens per second without the TUI, per turn; one turn more than with it.
        screen: tokens per second with the TUI, per turn, without typing.
        processor: fraction of a core used by the TUI's main thread, per turn.
        lag: event loop lag in seconds; measured after the turns.
        echo: seconds from key to echo; measured last.
    """

    headless: list[float] = field(default_factory=list)
    screen: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    lag: list[float] = field(default_factory=list)
    echo: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """Each turn with the TUI over the mean of the headless turns before and after it."""
        around = zip(self.headless[:-1], self.headless[1:], strict=True)
        return [2 * own / sum(two) for own, two in zip(self.screen, around, strict=True)]


@contextmanager
def running(pid: int) -> Iterator[None]:
    """Resume a stopped process within the context."""
    os.kill(pid, signal.SIGCONT)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGSTOP)


def take_turn(pid: int, report: Path) -> float:
    """Resume a stopped process for one turn; returns its tokens per second."""
    with running(pid):
        time.sleep(SETTLE_S)
        begin = time.monotonic()
        time.sleep(TURN_S)
        return throughput(report, begin, time.monotonic())


def processor_seconds(pid: int) -> float:
    """CPU seconds used so far by a process's main thread."""
    account = Path(f"/proc/{pid}/task/{pid}/schedstat")
    return int(account.read_text().split()[0]) / 1e9 if account.exists() else float("nan")


@contextmanager
def start_headless(streams: int) -> Iterator[tuple[int, Path]]:
    """Start the process without a TUI and its load, and stop it; yields its pid and report."""
    with fresh_home() as (report, environ):
        child = subprocess.Popen(command("headless", streams, report), env=environ)
        try:
            wait_for_load(report)
            child.send_signal(signal.SIGSTOP)
            yield child.pid, report
        finally:
            child.kill()
            child.wait()


@contextmanager
def start_screen(streams: int) -> Iterator[tuple[Any, Path]]:
    """Start the process with a TUI and its load, and stop it; yields its terminal and report."""
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
            wait_for_load(report)
            terminal.signal(signal.SIGSTOP)
            yield terminal, report
        finally:
            terminal.kill()


def measure_pair(streams: int, turns: int, samples: int) -> Pair:
    """Measure two new processes."""
    pair = Pair()
    with start_headless(streams) as (headless, account), start_screen(streams) as (screen, report):
        with screen.unread():
            pair.headless.append(take_turn(headless, account))
            for _ in range(turns):
                began, taken = time.monotonic(), processor_seconds(screen.pid)
                pair.screen.append(take_turn(screen.pid, report))
                taken = processor_seconds(screen.pid) - taken
                pair.processor.append(taken / (time.monotonic() - began))
                pair.headless.append(take_turn(headless, account))
            heartbeat_switch(report).touch()
            with running(screen.pid):
                time.sleep(1 + SETTLE_S)
                begin = time.monotonic()
                time.sleep(turns * TURN_S / 2)
                end = time.monotonic()
            heartbeat_switch(report).unlink()
            beats = lines(report.with_suffix(".lag"))
            pair.lag = [late for at, late in beats if begin <= at <= end]
        with running(screen.pid):
            time.sleep(SETTLE_S)
            pair.echo = list(key_to_echo(screen, samples))
    return pair


def key_to_echo(terminal: Any, samples: int) -> Iterator[float]:
    """Yields the seconds from a key's byte to the changed prompt, for each key."""
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
    parser.add_argument("--streams", type=int, default=32, help="concurrent requests")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of processes")
    parser.add_argument("--turns", type=int, default=8, help="turns of each process in a pair")
    parser.add_argument("--samples", type=int, default=300, help="total number of keys typed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, streams, report = options.child
        (run_screen if kind == "screen" else run_headless)(int(streams), Path(report))
        return
    pairs = []
    for number in range(options.pairs):
        pair = measure_pair(options.streams, options.turns, -(-options.samples // options.pairs))
        pairs.append(pair)
        print(
            f"pair {number + 1}: {statistics.median(pair.headless):,.0f} tok/s headless, "
            f"{statistics.median(pair.screen):,.0f} with the screen (ratio "
            f"{statistics.median(pair.ratios):.3f}), "
            f"which took {statistics.median(pair.processor):.1%} of a core; "
            f"key to echo p95 {spread(pair.echo)['p95']} ms",
            file=sys.stderr,
            flush=True,
        )
    ratios = [ratio for pair in pairs for ratio in pair.ratios]
    processor = [share for pair in pairs for share in pair.processor]
    result = {
        "streams": options.streams,
        "key_to_echo_ms": spread([each for pair in pairs for each in pair.echo]),
        "loop_lag_ms": spread([each for pair in pairs for each in pair.lag]),
        "screen_share_of_a_core": round(statistics.median(processor), 3),
        "throughput_ratio": round(statistics.median(ratios), 3),
        "throughput_ratios": [round(ratio, 3) for ratio in ratios],
    }
    print(json.dumps(result, indent=1))
    if options.json:
        write_result(options.json, result)


if __name__ == "__main__":
    main()
