"""Time to first token of a chat beside agents, unloaded and under load.

    python benchmarks/agents_beside_chat.py --model FILE [--chats 20] [--classes agent interactive]

A chat has a prompt of 200 random tokens. It arrives in an idle engine, then beside 51 agents that decode
after a shared document of 3,000 tokens, then at a random instant of the prefill of such a document.
`--classes` are the service classes of the agents: as `interactive` they have no class of their own, which is
the comparison.
The engine has its default configuration.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import write_result
from engine.api.config import EngineConfig
from engine.api.request import Request, SamplingParams
from engine.api.service_class import SERVICE_CLASSES, ServiceClass
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.request_handle import RequestHandle

CHAT, DOCUMENT, CARD, AGENTS = 200, 3000, 80, 51
AGENT_TOKENS = 1500
SETTLE_S = 3.0
LIMIT_S = 600.0
VOCABULARY = range(1000, 40_000)


class Load:
    """Submits chats and agents with random prompts."""

    def __init__(self, engine: AsyncPravahaEngine, *, chats: int, seed: int = 1) -> None:
        self._engine = engine
        self._chats = chats
        self._random = random.Random(seed)

    def alone(self) -> list[float]:
        """Times to first token in an idle engine."""
        return [self._chat_after(0.2) for _ in range(self._chats)]

    def beside_decodes(self, name: ServiceClass) -> tuple[list[float], float]:
        """Times beside 51 decoding agents, and the agents' tokens per second meanwhile."""
        document = self._tokens(DOCUMENT)
        agents = self._engine.submit_all(
            [self._agent((*document, *self._tokens(CARD)), name) for _ in range(AGENTS)]
        )
        _wait(lambda: all(agent.has_new_output() for agent in agents))
        before, started = self._generated(), time.perf_counter()
        times = [self._chat_after(self._random.uniform(0.05, 0.3)) for _ in range(self._chats)]
        seconds = time.perf_counter() - started
        assert not any(agent.finished for agent in agents), "the agents finished too early"
        speed = (self._generated() - before) / seconds
        for agent in agents:
            agent.abort()
            agent.wait_result(LIMIT_S)
        return times, speed

    def beside_prefill(self, name: ServiceClass) -> list[float]:
        """Times of chats that arrive while an agent's document is computed."""
        times = []
        for _ in range(self._chats):
            agent = self._engine.submit(self._agent(self._tokens(DOCUMENT), name))
            times.append(self._chat_after(self._random.uniform(0.05, 0.3)))
            agent.abort()
            agent.wait_result(LIMIT_S)
        return times

    def prefill_alone(self, name: ServiceClass) -> float:
        """Seconds to the first token of an agent's document in an idle engine."""
        return _ttft(self._engine.submit(self._agent(self._tokens(DOCUMENT), name)), abort=True)

    def _chat_after(self, seconds: float) -> float:
        time.sleep(seconds)
        sampling = SamplingParams(temperature=0.0, max_tokens=2, ignore_eos=True)
        return _ttft(self._engine.submit(Request(self._tokens(CHAT), sampling)))

    def _agent(self, prompt: tuple[int, ...], name: ServiceClass) -> Request:
        sampling = SamplingParams(temperature=0.0, max_tokens=AGENT_TOKENS, ignore_eos=True)
        return Request(prompt, sampling, service_class=name)

    def _tokens(self, count: int) -> tuple[int, ...]:
        return tuple(self._random.choice(VOCABULARY) for _ in range(count))

    def _generated(self) -> int:
        return self._engine.snapshot().totals.generation_tokens


def _wait(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < limit, "the engine is too slow"
        time.sleep(0.01)


def _ttft(handle: RequestHandle, *, abort: bool = False) -> float:
    """Seconds from queueing to the first token."""
    if abort:
        _wait(handle.has_new_output)
        handle.abort()
    seconds = handle.wait_result(LIMIT_S).timings.ttft
    assert seconds is not None
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="GGUF file or directory")
    parser.add_argument("--chats", type=int, default=20, help="chats per figure")
    parser.add_argument(
        "--classes", nargs="*", choices=SERVICE_CLASSES, default=["agent", "interactive"]
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    options = parser.parse_args()
    engine = AsyncPravahaEngine(EngineConfig(model=options.model, name=options.model.stem))
    engine.start()
    result: dict[str, list[float]] = {}
    try:
        engine.wait_ready()
        time.sleep(SETTLE_S)
        load = Load(engine, chats=options.chats)
        alone = result["alone"] = load.alone()
        _show("chat alone", alone, alone)
        for name in options.classes:
            documents = result[f"document {name}"] = [load.prefill_alone(name) for _ in range(3)]
            print(f"a document alone ({name}): {statistics.median(documents):.2f} s")
            times, speed = load.beside_decodes(name)
            result[f"decodes {name}"] = times
            _show(f"beside {AGENTS} decodes ({name}, {speed:.0f} tok/s)", times, alone)
            times = result[f"prefill {name}"] = load.beside_prefill(name)
            _show(f"beside a prefill ({name})", times, alone)
    finally:
        engine.shutdown()
    if options.json:
        write_result(options.json, {"seconds": result})


def _show(name: str, times: list[float], alone: list[float]) -> None:
    median, worst = statistics.median(times), max(times)
    ratio = median / statistics.median(alone)
    print(f"{name}: {1e3 * median:.0f} ms (at most {1e3 * worst:.0f}), {ratio:.2f} × alone")


if __name__ == "__main__":
    main()
