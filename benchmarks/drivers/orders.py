"""The protocol between a benchmark and an engine's driver: JSON lines with orders and durations.

A driver is a script run by the engine's Python interpreter. It first writes a hello line (`engine`,
`version`, `weights` and optional fields), then answers each order with its duration in seconds, by its
own clock, from receiving the order to having all text or tokens. All engines get the same orders. Only
the standard library is imported here.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_answers = 1


@dataclass(frozen=True)
class Order:
    """One run: all prompts concurrently, greedy, ignoring end-of-sequence.

    Attributes:
        new_tokens: tokens to generate per stream.
        prompts: token ids of each prompt; empty if `text` is the prompt.
        text: the only prompt, with special tokens written out.
        shared_prefix: length of the prefix common to all prompts; 0 if prefix sharing is not measured.
    """

    new_tokens: int
    prompts: list[list[int]]
    text: str = ""
    shared_prefix: int = 0


class NotRunnable(Exception):
    """The engine cannot run this order; other orders may still run."""


def arguments() -> argparse.Namespace:
    """Parse the command line common to all drivers; from here on standard output is for answers alone."""
    global _answers
    # Engines may write to standard output, so answers use a duplicate and descriptor 1 becomes stderr.
    _answers = os.dup(1)
    os.dup2(2, 1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True, help="model in the engine's format")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--max-tokens", type=int, default=2048, help="context length of a stream")
    parser.add_argument("--kv-tokens", type=int, default=16384, help="KV tokens of all streams")
    parser.add_argument("--slots", type=int, default=1, help="concurrent requests of a server")
    parser.add_argument("--prefix-caching", action="store_true")
    parser.add_argument("--speculation", action="store_true")
    parser.add_argument("--kv-dtype", default="auto")
    parser.add_argument("--weight-cache", type=Path, help="where ours keeps packed weights")
    parser.add_argument("--flash-attention", choices=("auto", "on", "off"), default="auto")
    parser.add_argument("--no-mmap", action="store_true", help="llama.cpp reads the file instead")
    return parser.parse_args()


def timed(run: Callable[[Order], float | None]) -> Callable[[Order], float]:
    """Wrap `run` so that it returns its duration: the seconds it returns, or the elapsed time."""

    def seconds(order: Order) -> float:
        start = time.perf_counter()
        own = run(order)
        return time.perf_counter() - start if own is None else own

    return seconds


def serve(hello: dict[str, object], run: Callable[[Order], float | None]) -> None:
    """Answer orders until standard input ends.

    Args:
        hello: the hello line.
        run: runs an order; returns its duration if part of the elapsed time is not the engine's
            work, else None.
    """
    answers = os.fdopen(_answers, "w")

    def answer(what: dict[str, object]) -> None:
        print(json.dumps(what), file=answers, flush=True)

    seconds = timed(run)
    answer(hello)
    for line in sys.stdin:
        try:
            answer({"seconds": seconds(Order(**json.loads(line)))})
        except NotRunnable as reason:
            answer({"refused": str(reason)})
