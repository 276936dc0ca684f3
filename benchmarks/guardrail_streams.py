"""Processor time of the output checks: a piece of an answer, and a token of 64 streams over HTTP.

    python benchmarks/guardrail_streams.py [--json FILE]

An answer is README.md and a source file of this project, in pieces of a token's length. "event" is what the
event loop spends on one token of a stream: take it from the engine's mailbox, check it, format it as an
event. It is measured with the server's own code over streams that are ready, so it needs no model, and as
processor time of the process, so that other programs change it little. Each figure is the lowest of several
rounds.
"""

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

from agents.guardrails.guardrails import Guardrails  # noqa: E402
from agents.guardrails.policy import Mode, Policy, mode_actions  # noqa: E402
from app.server.calls.chat_answer import ChatAnswer  # noqa: E402
from app.server.calls.chat_turn import ChatTurn  # noqa: E402
from app.server.calls.generation import Generation  # noqa: E402
from app.server.calls.guarding import CallGuard  # noqa: E402
from app.server.process.context import ServerContext  # noqa: E402
from app.server.process.counters import ServerCounters  # noqa: E402
from app.server.wire.schemas import ChatCompletionRequest  # noqa: E402
from benchmarks.machine import write_result  # noqa: E402
from engine.api.request import FinishReason, Timings, TokenBatch  # noqa: E402

STREAMS = 64
TOKENS = 256
ROUNDS = 5
_TOKEN = re.compile(r"\s?\w{1,5}|\s?[^\w\s]{1,2}|\s+")
MODES: tuple[Mode, ...] = get_args(Mode)


def guardrails(mode: Mode) -> Guardrails:
    """The guardrails of a mode with its defaults."""
    return Guardrails(Policy(*mode_actions(mode)))


def pieces(path: Path, count: int) -> list[str]:
    """The first `count` pieces of a text, each about as long as a token."""
    found = _TOKEN.findall(path.read_text(encoding="utf-8"))
    return (found * (1 + count // len(found)))[:count]


def lowest(measure: Callable[[], float]) -> float:
    """The lowest of several rounds."""
    return min(measure() for _ in range(ROUNDS))


def piece_us(mode: Mode, texts: list[str]) -> float:
    """Microseconds of processor time for one piece."""

    def once() -> float:
        check = guardrails(mode).output_check()
        began = time.process_time()
        for text in texts:
            check.feed(text)
        check.finish()
        return (time.process_time() - began) / len(texts) * 1e6

    return lowest(once)


class ReadyChoices:
    """One choice whose tokens are all there; between two of them other streams run."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    async def batches(self) -> AsyncIterator[tuple[int, TokenBatch]]:
        """As of `Choices`."""
        for position, text in enumerate(self._texts):
            last = position == len(self._texts) - 1
            yield 0, TokenBatch(
                "r", (position,), text, Timings(0.0, 0.0, 0.0, 0.0), seed=0,
                finish_reason=FinishReason.LENGTH if last else None,
            )  # fmt: skip
            await asyncio.sleep(0)


def _events(checks: Guardrails | None, texts: list[str]) -> Any:
    """The event stream of one request, as the server makes it."""
    body = ChatCompletionRequest.model_validate(
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    )
    context = cast(ServerContext, SimpleNamespace(guardrails=checks, counters=ServerCounters()))
    guard = CallGuard(context, body)
    choices = cast(Any, ReadyChoices(texts))
    generation = Generation([(1,)], 1, choices, AsyncExitStack(), guard)
    model = cast(Any, SimpleNamespace(info=SimpleNamespace(name="m"), fingerprint="fp"))
    return ChatAnswer(ChatTurn(body, model, generation, None, None)).events()


def event_us(mode: Mode | None, texts: list[str]) -> float:
    """Microseconds of processor time for one token of 64 streams; None is a server without guardrails."""
    checks = None if mode is None else guardrails(mode)

    async def read(events: AsyncIterator[bytes]) -> None:
        async for _ in events:
            pass

    async def all_streams() -> None:
        await asyncio.gather(*(read(_events(checks, texts)) for _ in range(STREAMS)))

    def once() -> float:
        began = time.process_time()
        asyncio.run(all_streams())
        return (time.process_time() - began) / (STREAMS * len(texts)) * 1e6

    return lowest(once)


def figures() -> Iterator[tuple[str, dict[str, float]]]:
    """Figures by text."""
    for name in ("README.md", "engine/scheduler/scheduler.py"):
        many, few = pieces(ROOT / name, 5000), pieces(ROOT / name, TOKENS)
        without = event_us(None, few)
        result = {f"piece, {mode}": round(piece_us(mode, many), 2) for mode in MODES}
        result["event, no guardrails"] = round(without, 2)
        for mode in MODES:
            result[f"event, {mode}"] = round(event_us(mode, few), 2)
        yield name, result


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    result = {"microseconds": dict(figures()), "streams": STREAMS, "tokens": TOKENS}
    print(json.dumps(result, indent=2))
    if arguments.json is not None:
        write_result(arguments.json, result)


if __name__ == "__main__":
    main()
