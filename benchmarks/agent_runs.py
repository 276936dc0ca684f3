"""What parallel runs of agents cost on a KV pool of half their size: tokens computed over new tokens.

    python benchmarks/agent_runs.py                                      # simulated, no model: seconds
    python benchmarks/agent_runs.py --model FILE [--json FILE]           # the real server, in this process
    python benchmarks/agent_runs.py --model FILE --llama-server BINARY   # the same on llama.cpp's server

The runs are those of `benchmarks.run_shapes`: 1 with six sub-agents, and 16. Each client sends its next
request when it has its answer and its tools have paused. The pool holds half of the tokens that all runs
have together at their end, or the longest run if that is more. *computed/new* is 1 if each token is computed
once; at each border of turns a partly filled block is computed again.

Settings of this program: *lru* knows no sessions; *sessions* evicts by price; *runs* also holds runs
(the default); *swap* has a swap tier in memory, too. llama.cpp's server has 16 slots and a KV cache of
the same tokens, unified, without its cache in RAM (`-cram 0`), then with it. Divided into slots
(`--no-kv-unified`) a sixteenth of such a cache is smaller than a run.
"""

import argparse
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import httpx

from benchmarks.llama_server import llama_server
from benchmarks.machine import say, write_result
from benchmarks.run_shapes import Run, half_pool, ideal_tokens, longest, make_runs
from benchmarks.simulate import BLOCK_SIZE, STORED
from benchmarks.simulated_runs import SimulatedRuns
from engine.api.config import DEFAULT_MAX_HOLD_S, EngineConfig
from engine.api.step_costs import StepCosts
from engine.runtime.engine import AsyncPravahaEngine
from tests.server.live import live

COUNTS = (1, 16)
SETTINGS = ("sessions", "runs", "swap")
SCALE = 0.4
"""Of the sizes with a model, so that a context of 8,192 tokens is enough."""
SPEEDS = {"slow machine": 1.0, "3 × faster": 0.3}
HEADER = ("runs", "setting", "requests", "new", "computed/new", "first token p50", "max", "seconds")

Ask = Callable[[Run, list[int], int], tuple[list[int], int]]
"""Answers a prompt of a run with so many tokens: their ids, and the number of computed prompt tokens."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What some runs have cost under one setting."""

    runs: int
    setting: str
    requests: int
    new: int
    computed: int
    first_token_p50: float
    longest_wait: float
    seconds: float

    def row(self) -> str:
        """A row of the table."""
        ratio = self.computed / self.new
        cells = (self.runs, self.setting, self.requests, f"{self.new:,}", f"{ratio:.2f}")
        times = (f"{self.first_token_p50:.1f}", f"{self.longest_wait:.0f}", f"{self.seconds:.0f}")
        return "| " + " | ".join(map(str, (*cells, *times))) + " |"


def simulated(counts: Sequence[int], seed: int) -> Iterator[Cost]:
    """The settings in virtual time."""
    for words, factor in SPEEDS.items():
        costs = StepCosts(*(value * factor for value in asdict(STORED).values()))
        for count in counts:
            runs = make_runs(count, seed=seed)
            for name, sessions, hold in (
                ("lru", False, 0.0),
                ("sessions", True, 0.0),
                ("runs", True, DEFAULT_MAX_HOLD_S),
            ):
                one = SimulatedRuns(
                    runs,
                    num_blocks=half_pool(runs, BLOCK_SIZE),
                    sessions=sessions,
                    max_hold_s=hold,
                    costs=costs,
                ).play()
                yield Cost(
                    count,
                    f"{name}, {words}",
                    one.requests,
                    one.ideal,
                    one.computed,
                    one.first_token_p50,
                    one.longest_wait,
                    one.seconds,
                )


class Clients:
    """Clients of runs against a server, a thread each."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self.waits: list[float] = []
        self.computed = 0
        self._errors: list[Exception] = []

    def play(self, runs: Sequence[Run], setting: str) -> Cost:
        """Play all runs to their end."""
        begun = time.monotonic()
        self._together([(one, one.start_s) for one in runs])
        if self._errors:
            raise self._errors[0]
        waits = sorted(self.waits)
        return Cost(
            len(runs),
            setting,
            len(waits),
            ideal_tokens(runs),
            self.computed,
            waits[len(waits) // 2],
            waits[-1],
            time.monotonic() - begun,
        )

    def _together(self, runs: Sequence[tuple[Run, float]]) -> None:
        threads = [threading.Thread(target=self._play, args=one) for one in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _play(self, run: Run, delay: float) -> None:
        try:
            time.sleep(delay)
            tokens = run.head.tolist()
            for turn in run.turns:
                tokens += turn.added.tolist()
                begun = time.monotonic()
                answer, computed = self._ask(run, tokens, turn.answer)
                with self._lock:
                    self.waits.append(time.monotonic() - begun)
                    self.computed += computed
                tokens += answer
                if turn.starts:
                    self._together([(one, 0.0) for one in turn.starts])
                elif turn is not run.turns[-1]:
                    time.sleep(turn.pause_s)
        except Exception as error:
            self._errors.append(error)


def ask_pravaha(url: str) -> Ask:
    """Asks this program's server."""
    http = httpx.Client(base_url=url, timeout=3600, limits=httpx.Limits(max_connections=64))

    def ask(run: Run, tokens: list[int], answer: int) -> tuple[list[int], int]:
        body = {
            "model": "model",
            "prompt": tokens,
            "max_tokens": answer,
            "temperature": 0,
            "ignore_eos": True,
            "logprobs": 0,
            "return_tokens_as_token_ids": True,
            "service_class": "agent",
            "session_id": run.name,
        }
        given = _posted(http, "/v1/completions", body)
        ids = [int(one.partition(":")[2]) for one in given["choices"][0]["logprobs"]["tokens"]]
        usage = given["usage"]
        return ids, usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]

    return ask


def ask_llamacpp(url: str) -> Ask:
    """Asks llama.cpp's server."""
    http = httpx.Client(base_url=url, timeout=3600, limits=httpx.Limits(max_connections=64))

    def ask(run: Run, tokens: list[int], answer: int) -> tuple[list[int], int]:
        body = {
            "prompt": tokens,
            "n_predict": answer,
            "temperature": 0,
            "ignore_eos": True,
            "cache_prompt": True,
            "return_tokens": True,
        }
        given = _posted(http, "/completion", body)
        return given["tokens"], given["timings"]["prompt_n"]

    return ask


def _posted(http: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = http.post(path, json=body)
    if response.status_code != 200:
        raise RuntimeError(f"{path}: {response.status_code} {response.text[:300]}")
    answer: dict[str, Any] = response.json()
    return answer


def measured(model: Path, count: int, seed: int, names: Sequence[str]) -> Iterator[Cost]:
    """The settings of this program's server with a model."""
    runs = make_runs(count, seed=seed, scale=SCALE)
    for name in names:
        config = EngineConfig(
            model,
            "model",
            max_model_len=longest(runs) + BLOCK_SIZE,
            block_size=BLOCK_SIZE,
            max_hold_s=0.0 if name == "sessions" else DEFAULT_MAX_HOLD_S,
            swap_bytes=2 << 30 if name == "swap" else 0,
        )
        block_bytes = _block_bytes(config)
        config = replace(config, kv_cache_bytes=half_pool(runs, BLOCK_SIZE) * block_bytes)
        engine = AsyncPravahaEngine(config)
        engine.start()
        engine.wait_ready()
        try:
            with live(engine) as server:
                say(f"{count} runs, {name}")
                yield Clients(ask_pravaha(server.url)).play(runs, name)
        finally:
            engine.shutdown()


def _block_bytes(config: EngineConfig) -> int:
    engine = AsyncPravahaEngine(replace(config, kv_cache_bytes=64 << 20))
    engine.start()
    engine.wait_ready()
    try:
        return engine.snapshot().blocks.block_bytes
    finally:
        engine.shutdown()


def beside(binary: Path, model: Path, count: int, seed: int) -> Iterator[Cost]:
    """The settings of llama.cpp's server."""
    runs = make_runs(count, seed=seed, scale=SCALE)
    tokens = half_pool(runs, BLOCK_SIZE) * BLOCK_SIZE
    sizes = ("-c", str(tokens), "-np", "16", "--kv-unified")
    for words, options in (("llama.cpp", ("-cram", "0")), ("llama.cpp, RAM", ())):
        with llama_server(binary, model, *sizes, *options) as url:
            say(f"{count} runs, {words}")
            yield Clients(ask_llamacpp(url)).play(runs, words)


def main() -> None:
    """Play the runs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--llama-server", type=Path, help="play them on this server instead")
    parser.add_argument("--runs", type=int, nargs="*", default=list(COUNTS))
    parser.add_argument("--setting", nargs="*", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.llama_server and not options.model:
        parser.error("--llama-server needs --model")
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER), flush=True)
    costs: list[Cost] = []

    def show(found: Iterator[Cost]) -> None:
        for one in found:
            print(one.row(), flush=True)
            costs.append(one)

    if options.model is None:
        show(simulated(options.runs, options.seed))
    for count in options.runs if options.model else ():
        if options.llama_server:
            show(beside(options.llama_server, options.model, count, options.seed))
        else:
            show(measured(options.model, count, options.seed, options.setting))
    if options.json:
        write_result(options.json, {"costs": [asdict(one) for one in costs]})


if __name__ == "__main__":
    main()
