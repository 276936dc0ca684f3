"""Processor time of searching answers for calls of tools: a token of a stream with and without tools.

    python benchmarks/tool_parsing.py [--streams 64] [--json FILE]

Answers are README.md and a source file of this project, in pieces of a token's length, which have no calls
but much that could begin one. A token is what the event loop spends on it before the socket: take it from the
engine's mailbox, parse it, format it as an event. It is measured with the server's own code over streams that
are ready, so it needs no model, and as processor time of the process, so that other programs change it
little. The forms take turns, and each figure is the lowest, or the median, of several rounds. *share* is the
difference to an answer without tools over the time of a token where `--rate` tokens a second are generated,
by all streams together.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

from app.server.calls.chat_answer import ChatAnswer  # noqa: E402
from app.server.calls.chat_turn import ChatTurn  # noqa: E402
from app.server.calls.generation import Generation  # noqa: E402
from app.server.calls.guarding import CallGuard  # noqa: E402
from app.server.calls.tool_calling import TurnTools  # noqa: E402
from app.server.process.context import ServerContext  # noqa: E402
from app.server.process.counters import ServerCounters  # noqa: E402
from app.server.wire.schemas import ChatCompletionRequest  # noqa: E402
from benchmarks.guardrail_streams import ReadyChoices, pieces  # noqa: E402
from benchmarks.machine import write_result  # noqa: E402
from engine.api.tools import Tool, ToolChoice  # noqa: E402
from engine.text.tool_calls.choosing import FORMS  # noqa: E402

TOKENS = 128
ROUNDS = 5
WITHOUT = "without tools"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = tuple(Tool(name, "", SCHEMA) for name in ("get_weather", "search", "read_file"))


def events(form: str, texts: list[str]) -> Any:
    """The event stream of one request, as the server makes it."""
    body = ChatCompletionRequest.model_validate(
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    )
    context = cast(ServerContext, SimpleNamespace(guardrails=None, counters=ServerCounters()))
    choices = cast(Any, ReadyChoices(texts))
    generation = Generation([(1,)], 1, choices, AsyncExitStack(), CallGuard(context, body))
    model = cast(Any, SimpleNamespace(info=SimpleNamespace(name="m"), fingerprint="fp"))
    tools = None
    if form != WITHOUT:
        tools = TurnTools(TOOLS, ToolChoice(), FORMS[form], cast(Any, None))
    return ChatAnswer(ChatTurn(body, model, generation, None, None, tools)).events()


def token_us(form: str, texts: list[str], streams: int) -> float:
    """Microseconds of processor time for one token of all streams."""

    async def read(found: Any) -> None:
        async for _ in found:
            pass

    async def all_streams() -> None:
        await asyncio.gather(*(read(events(form, texts)) for _ in range(streams)))

    began = time.process_time()
    asyncio.run(all_streams())
    return (time.process_time() - began) / (streams * len(texts)) * 1e6


def figures(texts: list[str], streams: int, rate: float) -> dict[str, dict[str, float]]:
    """Microseconds of a token by form."""
    forms = [WITHOUT, *FORMS]
    times: dict[str, list[float]] = {form: [] for form in forms}
    for _ in range(ROUNDS):
        for form in forms:
            times[form].append(token_us(form, texts, streams))
    base, base_median = min(times[WITHOUT]), statistics.median(times[WITHOUT])
    return {
        form: {
            "best_us": round(min(found), 2),
            "median_us": round(statistics.median(found), 2),
            "best_share": round((min(found) - base) * rate / 1e6, 4),
            "median_share": round((statistics.median(found) - base_median) * rate / 1e6, 4),
        }
        for form, found in times.items()
    }


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--rate", type=float, default=2000.0, help="tokens a second of all streams")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    names = ("README.md", "engine/scheduler/scheduler.py")
    by_text = {
        name: figures(pieces(ROOT / name, TOKENS), options.streams, options.rate) for name in names
    }
    result = {"streams": options.streams, "tokens": TOKENS, "rate": options.rate, "texts": by_text}
    print(json.dumps(result, indent=1))
    if options.json:
        write_result(options.json, result)


if __name__ == "__main__":
    main()
