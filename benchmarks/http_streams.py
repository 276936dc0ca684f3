"""The cost of the HTTP server: throughput of streams over HTTP over that of the engine alone.

    python benchmarks/http_streams.py --model FILE [--faces completions,chat,…] [--streams 64]
        [--tokens 128] [--pairs 7] [--json FILE] [--profile]

A process runs the engine and the server, this one is the client; it reads the bytes of all streams and
parses none. Turns alternate: the requests of one face are sent over HTTP, then those that the engine got
are submitted to it again in its process. A request has a short random prompt and `--tokens` new tokens,
greedy; the end of the sequence is ignored, so the tokens of all faces are as many. Prints for each face

* *ratio*: tokens per second over HTTP over the mean of the engine's turns before and after; the median of
  the pairs, and the best one;
* *event loop*: processor time of the server's thread for each token, from `/proc/<pid>/task/<tid>/schedstat`,
  which other programs hardly affect;
* *client*: processor time of this process for each token. It takes a core from the engine, too.

`tools` and `tools-unread` are chats with the same tools in their prompts, whose answers are free text: of
the first, calls are searched for in every token, the second may have none (`tool_choice: none`). Their
difference is the cost of parsing.

With `--toy` instead of a model a toy engine generates letters: for machines with other work, where only the
event loop's figures mean anything. With `--profile` the server's thread runs under cProfile, which slows it
down, and its hottest functions are printed.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import say, write_result
from benchmarks.names_option import names_among

if TYPE_CHECKING:
    from engine.runtime.engine import AsyncPravahaEngine

LIMIT_S = 600.0


WORDS = (
    "river",
    "stone",
    "cloud",
    "paper",
    "engine",
    "winter",
    "garden",
    "signal",
    "copper",
    "method",
)
CHAT_WORDS = 40
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def random_text(generator: random.Random) -> str:
    """A prompt as text."""
    return " ".join(generator.choice(WORDS) for _ in range(CHAT_WORDS))


def random_messages(generator: random.Random) -> list[dict[str, str]]:
    """A conversation of one message."""
    return [{"role": "user", "content": random_text(generator)}]


@dataclass(frozen=True, slots=True)
class Face:
    """An endpoint.

    Attributes:
        path: of the endpoint.
        body: the members of a request for so many tokens, beside `model`, `temperature` and `stream`.
        end: bytes near the end of a complete stream.
    """

    path: str
    body: Callable[[random.Random, int], dict[str, Any]]
    end: bytes


def _chat(generator: random.Random, tokens: int) -> dict[str, Any]:
    return {"messages": random_messages(generator), "max_tokens": tokens}


def _with_tools(choice: str) -> Callable[[random.Random, int], dict[str, Any]]:
    fields = {"tools": [TOOL], "tool_choice": choice, "tool_decision": "model"}
    return lambda generator, tokens: _chat(generator, tokens) | fields


FACES = {
    "completions": Face(
        "/v1/completions",
        lambda generator, tokens: {"prompt": random_text(generator), "max_tokens": tokens},
        b"[DONE]",
    ),
    "chat": Face("/v1/chat/completions", _chat, b"[DONE]"),
    "tools": Face("/v1/chat/completions", _with_tools("auto"), b"[DONE]"),
    "tools-unread": Face("/v1/chat/completions", _with_tools("none"), b"[DONE]"),
    "responses": Face(
        "/v1/responses",
        lambda generator, tokens: {"input": random_text(generator), "max_output_tokens": tokens},
        b"response.incomplete",
    ),
    "messages": Face("/v1/messages", _chat, b"message_stop"),
    "ollama": Face(
        "/api/chat",
        lambda generator, tokens: {
            "messages": random_messages(generator),
            "options": {"num_predict": tokens, "temperature": 0},
        },
        b'"done":true',
    ),
    "llamacpp": Face(
        "/completion",
        lambda generator, tokens: {"prompt": random_text(generator), "n_predict": tokens},
        b'"stop":true',
    ),
}


# ---- the process of the engine and the server ----


def toy_engine(streams: int, tokens: int) -> "AsyncPravahaEngine":
    """An engine that generates letters at once."""
    from tests.server.byte_engine import new_byte_engine

    generator = random.Random(1)
    letters = {position: generator.choice(b"abcdefghijklm  .,") for position in range(tokens)}
    return new_byte_engine(
        max_num_seqs=streams, context=2048, blocks=128 * streams, force=letters, speculation=False
    )


def serve(model: Path | None, streams: int, tokens: int, profiled: bool) -> None:
    """Answer commands on standard input: run a turn in the engine, or report the thread's time."""
    from app.server.app import create_app
    from app.server.process.config import ServerConfig
    from app.server.process.server import DrainingServer, base_url, listen
    from engine.api.config import EngineConfig
    from engine.api.request import Request, SamplingParams
    from engine.runtime.engine import AsyncPravahaEngine

    if model is None:
        engine = toy_engine(streams, tokens)
    else:
        config = EngineConfig(
            model, "toy", kv_cache_bytes=1 << 30, prefix_caching=False, speculation=False
        )
        engine = AsyncPravahaEngine(config)
    engine.start()
    engine.wait_ready()
    sampling = SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True)
    last_turn: list[Request] = []
    submit_all = engine.submit_all

    def submit_recorded(requests: Sequence[Request]) -> Any:
        """Not all faces have a field for `ignore_eos`."""
        changed = [
            replace(one, sampling=replace(one.sampling, ignore_eos=True)) for one in requests
        ]
        last_turn.extend(changed)
        return submit_all(changed)

    vars(engine)["submit_all"] = submit_recorded
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
        if line.strip() == "engine":
            asked = [Request(one.prompt_ids, sampling) for one in last_turn[-streams:]]
            last_turn.clear()
            begun = time.perf_counter()
            for handle in submit_all(asked):
                handle.wait_result(LIMIT_S)
            print(time.perf_counter() - begun, flush=True)
            last_turn.extend(asked)
        else:
            stat = Path(f"/proc/self/task/{threads[0]}/schedstat").read_text()
            print(int(stat.split()[0]) / 1e9, flush=True)
    server.should_exit = True
    thread.join()
    engine.shutdown()
    if profiled:
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(40)


# ---- the client ----


async def stream(host: str, port: int, face: Face, fields: dict[str, Any]) -> int:
    """Read one stream to its end; the number of its bytes."""
    body = json.dumps({"model": "toy", "temperature": 0, "stream": True, **fields}).encode()
    head = (
        f"POST {face.path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
        f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(head.encode() + body)
    size, tail = 0, b""
    while data := await reader.read(65_536):
        size += len(data)
        tail = (tail + data)[-4096:]
    writer.close()
    if face.end not in tail:
        raise RuntimeError(f"a stream ended with {tail[-500:]!r}")
    return size


async def http_turn(
    url: str, face: Face, streams: int, tokens: int, seed: int
) -> tuple[float, int]:
    """Seconds and bytes of one turn over HTTP; no two turns have a prompt in common."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    generator = random.Random(seed)
    bodies = [face.body(generator, tokens) for _ in range(streams)]
    begun = time.perf_counter()
    sizes = await asyncio.gather(*(stream(host, int(port), face, body) for body in bodies))
    return time.perf_counter() - begun, sum(sizes)


@dataclass
class Turns:
    """The turns of one face.

    Attributes:
        engine_s: seconds of the engine's turns, one before the first and one after each HTTP turn.
        http_s: seconds of the HTTP turns.
        loop_us: processor time of the server's thread for each token.
        client_us: that of this process.
    """

    engine_s: list[float]
    http_s: list[float]
    loop_us: list[float]
    client_us: list[float]

    def figures(self, tokens: int) -> dict[str, object]:
        """The figures of the face, of turns with so many tokens."""
        ratios = [
            (self.engine_s[i] + self.engine_s[i + 1]) / 2 / seconds
            for i, seconds in enumerate(self.http_s)
        ]
        return {
            "engine_tok_s": tokens / statistics.median(self.engine_s),
            "http_tok_s": tokens / statistics.median(self.http_s),
            "ratio": statistics.median(ratios),
            "best_ratio": min(self.engine_s) / min(self.http_s),
            "ratios": ratios,
            "event_loop_us_per_token": statistics.median(self.loop_us),
            "best_event_loop_us_per_token": min(self.loop_us),
            "client_us_per_token": statistics.median(self.client_us),
        }


def measure(
    server: "subprocess.Popen[str]",
    url: str,
    faces: list[str],
    streams: int,
    new_tokens: int,
    pairs: int,
) -> dict[str, object]:
    """Alternating turns, the first of which warm up."""

    def ask(command: str) -> float:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{command}\n")
        server.stdin.flush()
        return float(server.stdout.readline())

    tokens = streams * new_tokens
    turns: dict[str, Turns] = {}
    for name in faces:
        asyncio.run(http_turn(url, FACES[name], streams, new_tokens, 0))
        turns[name] = Turns([ask("engine")], [], [], [])
    for pair in range(pairs):
        for name, one in turns.items():
            before, mine = ask("time"), time.process_time()
            seconds, size = asyncio.run(http_turn(url, FACES[name], streams, new_tokens, pair + 1))
            one.client_us.append((time.process_time() - mine) / tokens * 1e6)
            one.loop_us.append((ask("time") - before) / tokens * 1e6)
            one.http_s.append(seconds)
            one.engine_s.append(ask("engine"))
            say(
                f"{name}: engine {tokens / one.engine_s[-1]:,.0f} tok/s, HTTP {tokens / seconds:,.0f}, "
                f"event loop {one.loop_us[-1]:.0f} µs a token, client {one.client_us[-1]:.0f} µs, "
                f"{size / tokens:.0f} bytes a token"
            )
    figures = {name: one.figures(tokens) for name, one in turns.items()}
    return {"streams": streams, "new_tokens": new_tokens, "faces": figures}


def main() -> None:
    """Start the server's process and measure it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("--model", type=Path)
    model.add_argument("--toy", action="store_true", help="a toy engine instead of a model")
    parser.add_argument("--faces", type=names_among(FACES), default=["completions"])
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=128, help="new tokens of each stream")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.model, options.streams, options.tokens, options.profile)
        return
    sizes = ["--streams", str(options.streams), "--tokens", str(options.tokens)]
    served = ["--toy"] if options.toy else ["--model", str(options.model)]
    arguments = ["--serve", *served, *sizes]
    server = subprocess.Popen(
        [sys.executable, __file__, *arguments, *["--profile"] * options.profile],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    try:
        result = measure(server, url, options.faces, options.streams, options.tokens, options.pairs)
    finally:
        server.communicate()
    print(json.dumps(result, indent=1))
    if options.json:
        write_result(options.json, result)


if __name__ == "__main__":
    main()
