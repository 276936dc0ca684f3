"""How long the server's event loop stops for one request body of 4 MB, by the form of the body.

    python benchmarks/body_lag.py [--repeats 5] [--json FILE]

Parsing and validating hold the GIL, so streams stop meanwhile. The server runs without a model: every
request ends before it reaches one. Prints for each body the status and the median of

* *processor time* of the longest interval between two ticks of a task on the loop, which sleeps for a
  millisecond; other programs hardly affect it;
* *time*: the longest interval by the clock.
"""

import argparse
import asyncio
import gc
import json
import statistics
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import httpx

from app.server.app import create_app
from app.server.process.config import MAX_BODY_BYTES, ServerConfig
from app.server.process.server import DrainingServer, base_url, listen
from app.server.wire.json_size import MAX_CONTAINERS, MAX_STRINGS, MAX_VALUES
from benchmarks.machine import write_result
from engine.api.errors import EngineUnavailable

ROOM = MAX_BODY_BYTES - 4096
TICK_S = 0.001


def items(item: str, count: int | None = None) -> str:
    """An array of an item, of 4 MB without a count."""
    return f"[{','.join([item] * (count or ROOM // (len(item) + 1)))}]"


def completion(prompt: str, more: str = "") -> tuple[str, str]:
    """Path and body of a completion."""
    return "/v1/completions", f'{{"model": "none", "prompt": {prompt}{more}}}'


def chat(content: str, count: int = 1) -> tuple[str, str]:
    """Path and body of a chat of equal messages."""
    message = f'{{"role": "user", "content": {content}}}'
    return "/v1/chat/completions", f'{{"model": "none", "messages": {items(message, count)}}}'


PART = '{"type": "text", "text": "x"}'
BODIES = {
    "one text": completion(json.dumps("x " * (ROOM // 2))),
    "one text of code": completion(json.dumps('f({"a": [b, c]})\n' * (ROOM // 24))),
    "4,096 messages": chat(json.dumps("x" * 950), 4096),
    "most token ids": completion(items("1", MAX_VALUES)),
    "most content parts": chat(items(PART, MAX_CONTAINERS - 4)),
    "most names": completion(
        '"x"', "".join(f', "f{number}": 1' for number in range(MAX_STRINGS - 8))
    ),
    "4 MB of content parts": chat(items(PART)),
    "4 MB of token ids": completion(items("1")),
    "4 MB of texts": completion(items('"x"')),
    "4 MB of empty lists": completion('"x"', f', "metadata": {items("[]")}'),
}


class Unloaded:
    """Stands for an engine whose model is not loaded: each valid request is answered with a 503."""

    config = SimpleNamespace(name="none")
    embedder = SimpleNamespace(name="none")

    def snapshot(self) -> Any:
        """As the engine's."""
        raise EngineUnavailable("The model is not loaded.")


class Ticker:
    """Ticks on the event loop and keeps the longest intervals."""

    def __init__(self) -> None:
        self.worst_s = self.worst_cpu_s = 0.0
        self.running = True

    async def run(self) -> None:
        """Tick until `running` is cleared."""
        last, last_cpu = time.perf_counter(), time.thread_time()
        while self.running:
            await asyncio.sleep(TICK_S)
            now, cpu = time.perf_counter(), time.thread_time()
            self.worst_s = max(self.worst_s, now - last - TICK_S)
            self.worst_cpu_s = max(self.worst_cpu_s, cpu - last_cpu)
            last, last_cpu = now, cpu


def measure(repeats: int) -> dict[str, dict[str, float]]:
    """Send every body `repeats` times."""
    settings = ServerConfig(port=0)
    listener = listen(settings)
    server = DrainingServer(create_app(Unloaded(), settings))  # type: ignore[arg-type]
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        await server.serve(sockets=[listener])

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    result = {}
    with httpx.Client(base_url=base_url(listener), timeout=60) as client:
        client.get("/health")
        gc.freeze()  # as `pravaha --serve` does
        for name, (path, body) in BODIES.items():
            seconds, cpu = [], []
            for _ in range(repeats):
                ticker = Ticker()
                ticking = asyncio.run_coroutine_threadsafe(ticker.run(), loops[0])
                time.sleep(0.02)
                response = client.post(
                    path, content=body.encode(), headers={"content-type": "application/json"}
                )
                time.sleep(0.02)
                ticker.running = False
                ticking.result()
                seconds.append(ticker.worst_s)
                cpu.append(ticker.worst_cpu_s)
            result[name] = {
                "status": response.status_code,
                "cpu_ms": statistics.median(cpu) * 1e3,
                "ms": statistics.median(seconds) * 1e3,
            }
            print(
                f"{name:24}{response.status_code:5}{result[name]['cpu_ms']:8.1f} ms of processor "
                f"time{result[name]['ms']:8.1f} ms",
                flush=True,
            )
    server.should_exit = True
    thread.join()
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = measure(options.repeats)
    if options.json:
        write_result(options.json, {"bodies": result})


if __name__ == "__main__":
    main()
