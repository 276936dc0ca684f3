"""Serving at given rates: Pravāha's server beside llama.cpp's, on the same requests.

    python benchmarks/serve_rates.py --model FILE --llama-server BINARY [--rates 0.2,0.4,0.8]
        [--seconds 45] [--rounds 1] [--slots 16] [--slo 4,0.25] [--json FILE]

Requests arrive as a Poisson process, whether those before them are answered or not. Each has a random prompt
of token ids (median 96, log-normal) and 16 to 48 new tokens, greedy, without an end of sequence, and goes to
`/completion`, which both servers have; so both compute as many tokens of the same file. Both are started
once; of each rate they run one after the other, in an order that alternates, while the other one is stopped
(SIGSTOP). `peers_setup.sh DIR llama_server` builds llama.cpp's server for this machine; it gets `--slots`
slots, both get `--threads` threads. On a machine with other work give one: llama.cpp's threads wait for each
other by spinning, and lose most of their time where one of them has no core.

Prints for each rate and server, over all rounds:

* *TTFT*: seconds from the arrival to the first token, with all waiting; *ITL*: seconds between two tokens of
  a request. Of a piece with several tokens the first one has the wait, the others none;
* *goodput*: requests a second that kept the objective of `--slo`: seconds to the first token, and the mean of
  seconds for each further one.

The client is this process; it takes part of a core from both alike.
"""

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.llama_server import free_port
from benchmarks.machine import say, write_result

ROOT = Path(__file__).resolve().parents[1]
VOCABULARY = range(1000, 40_000)
MEDIAN_PROMPT, PROMPT_SIGMA, LONGEST_PROMPT = 96, 0.5, 384
NEW_TOKENS = (16, 48)
CONTEXT = 512
START_S = 300.0
PERCENTILES = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: seconds after the begin, prompt, and number of new tokens."""

    at: float
    prompt: list[int]
    new_tokens: int


def arrivals(rate: float, seconds: float, seed: int) -> list[Arrival]:
    """A Poisson process; at least two requests, so that a slow rate has any."""
    generator = random.Random(seed)
    found: list[Arrival] = []
    at = 0.0
    while at < seconds or len(found) < 2:
        length = round(MEDIAN_PROMPT * generator.lognormvariate(0, PROMPT_SIGMA))
        prompt = [generator.choice(VOCABULARY) for _ in range(min(length, LONGEST_PROMPT))]
        found.append(Arrival(at, prompt, generator.randint(*NEW_TOKENS)))
        at += generator.expovariate(rate)
    return found


@dataclass
class Answered:
    """When the tokens of a request arrived, in seconds after its arrival."""

    times: list[float] = field(default_factory=list)

    def keeps(self, first_s: float, further_s: float) -> bool:
        """Whether it kept the objective."""
        further = (self.times[-1] - self.times[0]) / max(1, len(self.times) - 1)
        return self.times[0] <= first_s and further <= further_s


# ---- servers ----


@dataclass(frozen=True, slots=True)
class Server:
    """A running server; it is stopped outside `running`."""

    name: str
    port: int
    process: "subprocess.Popen[bytes]"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let it run."""
        self.process.send_signal(signal.SIGCONT)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGSTOP)


def start(name: str, command: list[str], port: int) -> Server:
    """Start a server, wait until it answers, and stop it."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            body = json.dumps({"prompt": [1000], "n_predict": 1}).encode()
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/completion", body, {"content-type": "application/json"}
            )
            urllib.request.urlopen(request, timeout=60).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
            continue
        process.send_signal(signal.SIGSTOP)
        return Server(name, port, process)
    process.kill()
    raise SystemExit(f"{name} does not answer")


def our_command(model: Path, port: int, threads: int) -> list[str]:
    """Pravāha's server with its defaults, and a pool for all requests."""
    run = "import sys; from app.cli import main; sys.exit(main())"
    options = ["--serve", "--port", str(port), "--model", str(model), "--kv-cache", "1GiB"]
    return [sys.executable, "-c", run, *options, "--threads", str(threads)]


def their_command(
    binary: Path, model: Path, port: int, slots: int, threads: int, *, context: int = CONTEXT
) -> list[str]:
    """llama.cpp's server with continuous batching, which is its default; `context` tokens a slot."""
    return [
        str(binary),
        *("--model", str(model), "--host", "127.0.0.1", "--port", str(port)),
        *("--threads", str(threads), "--threads-batch", str(threads)),
        *("--parallel", str(slots), "--ctx-size", str(slots * context), "--no-webui"),
    ]


# ---- the client ----


async def answered(port: int, arrival: Arrival, begun: float) -> Answered:
    """Send a request when it arrives, and note when its tokens do."""
    await asyncio.sleep(max(0.0, begun + arrival.at - time.perf_counter()))
    fields = {
        "prompt": arrival.prompt,
        "n_predict": arrival.new_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "return_tokens": True,
    }
    body = json.dumps(fields).encode()
    head = (
        "POST /completion HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + body)
    found = Answered()
    async for line in reader:
        if not line.startswith(b"data: "):
            continue
        event = json.loads(line[6:])
        now = time.perf_counter() - begun - arrival.at
        if not event["stop"]:
            found.times += [now] * len(event["tokens"])
        elif len(found.times) < event["tokens_predicted"]:
            found.times += [now] * (event["tokens_predicted"] - len(found.times))
    writer.close()
    if len(found.times) != arrival.new_tokens:
        raise RuntimeError(f"got {len(found.times)} of {arrival.new_tokens} tokens")
    return found


async def run(server: Server, asked: list[Arrival]) -> tuple[list[Answered], float]:
    """All answers of one rate, and the seconds until the last one."""
    begun = time.perf_counter()
    found = await asyncio.gather(*(answered(server.port, one, begun) for one in asked))
    return list(found), time.perf_counter() - begun


@dataclass
class Outcome:
    """What one server did at one rate, in all rounds."""

    answers: list[Answered] = field(default_factory=list)
    seconds: float = 0.0

    def figures(self, slo: tuple[float, float]) -> dict[str, object]:
        """Percentiles and goodput."""
        first = [one.times[0] for one in self.answers]
        gaps = [gap for one in self.answers for gap in np.diff(one.times)]
        kept = sum(one.keeps(*slo) for one in self.answers)
        return {
            "requests": len(self.answers),
            "seconds": round(self.seconds, 1),
            "tokens_per_s": round(sum(len(one.times) for one in self.answers) / self.seconds, 2),
            "ttft_s": percentiles(first),
            "itl_s": percentiles(gaps),
            "kept": kept,
            "goodput_per_s": round(kept / self.seconds, 4),
        }


def percentiles(values: list[float]) -> dict[str, float]:
    """Percentiles by name."""
    found = np.percentile(values, PERCENTILES)
    return {
        f"p{name}": round(float(value), 4) for name, value in zip(PERCENTILES, found, strict=True)
    }


def numbers(text: str) -> list[float]:
    """An argparse type: numbers separated by commas."""
    return [float(one) for one in text.split(",")]


def main() -> None:
    """Start both servers and run all rates."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--llama-server", type=Path, required=True)
    parser.add_argument("--rates", type=numbers, default=[0.2, 0.4, 0.8], help="requests a second")
    parser.add_argument("--seconds", type=float, default=45.0, help="of arrivals at each rate")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--slots", type=int, default=16, help="of llama.cpp's server")
    parser.add_argument("--threads", type=int, default=2, help="of either server")
    parser.add_argument("--slo", type=numbers, default=[4.0, 0.25])
    parser.add_argument("--note", default="", help="about the machine, for the result")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    slo = (options.slo[0], options.slo[1])
    ports = free_port(), free_port()
    binary = options.llama_server
    their = their_command(binary, options.model, ports[1], options.slots, options.threads)
    servers: list[Server] = []
    outcomes: dict[float, dict[str, Outcome]] = {}
    try:
        servers.append(
            start("pravaha", our_command(options.model, ports[0], options.threads), ports[0])
        )
        servers.append(start("llama.cpp", their, ports[1]))
        for round_ in range(options.rounds):
            for number, rate in enumerate(options.rates):
                asked = arrivals(rate, options.seconds, seed=100 * round_ + number)
                in_turn = servers if (round_ + number) % 2 == 0 else servers[::-1]
                for server in in_turn:
                    with server.running():
                        found, seconds = asyncio.run(run(server, asked))
                    outcome = outcomes.setdefault(rate, {}).setdefault(server.name, Outcome())
                    outcome.answers += found
                    outcome.seconds += seconds
                    say(f"{rate:g}/s {server.name}: {json.dumps(outcome.figures(slo))}")
    finally:
        for server in servers:
            server.process.send_signal(signal.SIGCONT)
            server.process.terminate()
            server.process.wait(60)
    told = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
    result: dict[str, object] = {
        "note": options.note,
        "llama_cpp": (told.stderr or told.stdout).splitlines()[0],
        "slo": {"ttft_s": slo[0], "s_per_further_token": slo[1]},
        "rates": {
            f"{rate:g}": {name: one.figures(slo) for name, one in by_name.items()}
            for rate, by_name in outcomes.items()
        },
    }
    print(json.dumps(result, indent=1))
    if options.json:
        write_result(options.json, result)


if __name__ == "__main__":
    main()
