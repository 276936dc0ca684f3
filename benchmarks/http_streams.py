"""The cost of the HTTP server: throughput of streams over HTTP over that of the engine alone.

    python benchmarks/http_streams.py --model FILE [--streams 64] [--pairs 7] [--json FILE] [--profile]

A process runs the engine and the server, this one is the client; it reads the bytes of all streams and
parses none. Turns alternate: the same requests are submitted to the engine in its process, then over HTTP
to `/v1/completions`, with as many streams, random prompts of 64 tokens, and 128 new tokens, greedy. Prints

* *ratio*: tokens per second over HTTP over the mean of the turns before and after; the median of the pairs;
* *event loop*: processor time of the server's thread for each token, from `/proc/<pid>/task/<tid>/schedstat`,
  which other programs hardly affect;
* *client*: processor time of this process for each token. It takes a core from the engine, too.

With `--profile` the server's thread runs under cProfile, which slows it down, and its hottest functions
are printed.
"""

import argparse
import asyncio
import cProfile
import json
import pstats
import random
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import say, write_result

PROMPT_TOKENS, NEW_TOKENS = 64, 128
VOCABULARY = range(1000, 40_000)
LIMIT_S = 600.0


def prompts(count: int, seed: int) -> list[list[int]]:
    """Random prompts of one turn; no two turns have a prompt in common."""
    generator = random.Random(seed)
    return [[generator.choice(VOCABULARY) for _ in range(PROMPT_TOKENS)] for _ in range(count)]


# ---- the process of the engine and the server ----


def serve(model: Path, streams: int, profiled: bool) -> None:
    """Answer commands on standard input: run a turn in the engine, or report the thread's time."""
    from app.server.app import create_app
    from app.server.process.config import ServerConfig
    from app.server.process.server import DrainingServer, base_url, listen
    from engine.api.config import EngineConfig
    from engine.api.request import Request, SamplingParams
    from engine.runtime.engine import AsyncPravahaEngine

    config = EngineConfig(
        model, "demo", kv_cache_bytes=1 << 30, prefix_caching=False, speculation=False
    )
    engine = AsyncPravahaEngine(config)
    engine.start()
    engine.wait_ready()
    settings = ServerConfig(port=0)
    listener = listen(settings)
    server = DrainingServer(create_app(engine, settings))
    profile = cProfile.Profile()
    threads: list[int] = []

    def run() -> None:
        threads.append(threading.get_native_id())
        if profiled:
            profile.enable()
        server.run(sockets=[listener])
        if profiled:
            profile.disable()

    thread = threading.Thread(target=run)
    thread.start()
    print(base_url(listener), flush=True)
    for line in sys.stdin:
        command, _, seed = line.partition(" ")
        if command == "engine":
            sampling = SamplingParams(temperature=0.0, max_tokens=NEW_TOKENS, ignore_eos=True)
            begun = time.perf_counter()
            requests = [Request(tuple(ids), sampling) for ids in prompts(streams, int(seed))]
            for handle in [engine.submit(request) for request in requests]:
                handle.wait_result(LIMIT_S)
            print(time.perf_counter() - begun, flush=True)
        else:
            stat = Path(f"/proc/self/task/{threads[0]}/schedstat").read_text()
            print(int(stat.split()[0]) / 1e9, flush=True)
    server.should_exit = True
    thread.join()
    engine.shutdown()
    if profiled:
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(40)


# ---- the client ----


async def stream(host: str, port: int, ids: list[int]) -> int:
    """Read one stream to its end; the number of its bytes."""
    fields = {"model": "demo", "prompt": ids, "max_tokens": NEW_TOKENS, "temperature": 0}
    body = json.dumps(fields | {"ignore_eos": True, "stream": True}).encode()
    head = (
        f"POST /v1/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
        f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(head.encode() + body)
    size, tail = 0, b""
    while data := await reader.read(65_536):
        size += len(data)
        tail = (tail + data)[-64:]
    writer.close()
    if b"[DONE]" not in tail:
        raise RuntimeError(f"a stream ended with {tail!r}")
    return size


async def http_turn(url: str, streams: int, seed: int) -> tuple[float, int]:
    """Seconds and bytes of one turn over HTTP."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    asked = prompts(streams, seed)
    begun = time.perf_counter()
    sizes = await asyncio.gather(*(stream(host, int(port), ids) for ids in asked))
    return time.perf_counter() - begun, sum(sizes)


def measure(
    server: "subprocess.Popen[str]", url: str, streams: int, pairs: int
) -> dict[str, object]:
    """Alternating turns, the first of which warm up."""

    def ask(command: str) -> float:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{command}\n")
        server.stdin.flush()
        return float(server.stdout.readline())

    tokens = streams * NEW_TOKENS
    asyncio.run(http_turn(url, streams, 0))
    engine_s, http_s, loop_us, client_us = [ask("engine 1")], [], [], []
    for pair in range(pairs):
        before, mine = ask("time"), time.process_time()
        seconds, size = asyncio.run(http_turn(url, streams, 2 * pair + 2))
        client_us.append((time.process_time() - mine) / tokens * 1e6)
        loop_us.append((ask("time") - before) / tokens * 1e6)
        http_s.append(seconds)
        engine_s.append(ask(f"engine {2 * pair + 3}"))
        say(
            f"engine {tokens / engine_s[-1]:,.0f} tok/s, HTTP {tokens / seconds:,.0f}, "
            f"event loop {loop_us[-1]:.0f} µs a token, client {client_us[-1]:.0f} µs, "
            f"{size / tokens:.0f} bytes a token"
        )
    ratios = [(engine_s[i] + engine_s[i + 1]) / 2 / seconds for i, seconds in enumerate(http_s)]
    return {
        "streams": streams,
        "engine_tok_s": tokens / statistics.median(engine_s),
        "http_tok_s": tokens / statistics.median(http_s),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "event_loop_us_per_token": statistics.median(loop_us),
        "client_us_per_token": statistics.median(client_us),
    }


def main() -> None:
    """Start the server's process and measure it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.model, options.streams, options.profile)
        return
    arguments = ["--serve", "--model", str(options.model), "--streams", str(options.streams)]
    server = subprocess.Popen(
        [sys.executable, __file__, *arguments, *["--profile"] * options.profile],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    try:
        result = measure(server, url, options.streams, options.pairs)
    finally:
        server.communicate()
    print(json.dumps(result, indent=1))
    if options.json:
        write_result(options.json, result)


if __name__ == "__main__":
    main()
