"""How an engine is driven by a benchmark: orders in, seconds out, one JSON object a line.

A driver is a script run by the engine's own Python. It says hello (`engine`, `version`, `weights` and
whatever else it knows), then answers each order with the seconds it took, by its own clock, from the
order in hand to all text or tokens in hand. All engines get the same orders, so the work is the same by
construction. Only the standard library is imported here.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Order:
    """One run: all prompts at once, greedy, end-of-sequence ignored.

    Attributes:
        prompts: token ids; empty if `text` is the one prompt.
        text: the one prompt, special tokens written out.
        new_tokens: of each stream.
        shared_prefix: how many tokens all prompts begin with; 0 where sharing is not the point.
    """

    new_tokens: int
    prompts: list[list[int]]
    text: str = ""
    shared_prefix: int = 0


class NotRunnable(Exception):
    """The engine cannot do this order, for a reason that another order need not share."""


def arguments() -> argparse.Namespace:
    """What every driver is started with."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True, help="in the engine's own format")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--max-tokens", type=int, default=2048, help="of a prompt with its answer")
    parser.add_argument("--kv-tokens", type=int, default=16384, help="of all streams together")
    parser.add_argument("--prefix-caching", action="store_true")
    parser.add_argument("--speculation", action="store_true")
    parser.add_argument("--kv-dtype", default="auto")
    return parser.parse_args()


def timed(run: Callable[[Order], float | None]) -> Callable[[Order], float]:
    """Seconds of a run: those it gives back, or all it took."""

    def seconds(order: Order) -> float:
        start = time.perf_counter()
        own = run(order)
        return time.perf_counter() - start if own is None else own

    return seconds


def serve(hello: dict[str, object], run: Callable[[Order], float | None]) -> None:
    """Answer orders until standard input ends.

    Args:
        hello: told first.
        run: carries an order out; returns the seconds it took where part of its time is not the
            engine's work, else None.
    """
    # Engines write to standard output as they please: answers have a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(what: dict[str, object]) -> None:
        print(json.dumps(what), file=answers, flush=True)

    seconds = timed(run)
    answer(hello)
    for line in sys.stdin:
        try:
            answer({"seconds": seconds(Order(**json.loads(line)))})
        except NotRunnable as reason:
            answer({"refused": str(reason)})
