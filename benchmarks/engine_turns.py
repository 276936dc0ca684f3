"""Engines that are measured in turns on the same orders: starting them, their order, and their figures."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from statistics import median

from benchmarks.driven_engine import DrivenEngine, OrderRefused, Recipe
from benchmarks.driven_process import ProcessFailed
from benchmarks.drivers.orders import Order
from benchmarks.machine import say


def start(stack: ExitStack, wanted: list[Recipe], threads: int) -> list[DrivenEngine]:
    """Start the engines; those that fail are skipped with a message."""
    engines = []
    for one in wanted:
        say(f"starting {one.display_name}")
        try:
            if one.missing is not None:
                raise ProcessFailed(f"{one.missing} does not exist")
            engine = DrivenEngine(one, threads=threads)
        except ProcessFailed as reason:
            say(f"{one.display_name} is skipped: {reason}")
            continue
        stack.callback(engine.close)
        engines.append(engine)
    return engines


def fill(engine: DrivenEngine, every: list[list[int]]) -> bool:
    """Let the engine compute all prompts once; returns whether it succeeded."""
    context = max(map(len, every))
    say(f"{len(every)} × {context}: {engine.name} computes the prompts")
    try:
        engine.run(Order(1, every))
    except (ProcessFailed, OrderRefused) as reason:
        say(f"{engine.name} is skipped at {context} tokens: {reason}")
        return False
    return True


def turns(engines: list[DrivenEngine], rounds: int) -> Iterator[tuple[int, DrivenEngine]]:
    """Every engine in every round, in an order that rotates by round."""
    for number in range(rounds):
        at = number % max(1, len(engines))
        for engine in engines[at:] + engines[:at]:
            yield number, engine


def throughput(tokens: int, short: list[float], long: list[float]) -> dict[str, float | None]:
    """Best and median decode throughput: tokens over the difference of the long and the short runs.

    A figure is None if noise exceeds the difference.
    """
    differences = {
        name: typical(long) - typical(short)
        for name, typical in (("best", min), ("median", median))
    }
    return {name: tokens / taken if taken > 0 else None for name, taken in differences.items()}


def lowest_ratios(
    ours: Mapping[str, float | None], peers: Sequence[Mapping[str, float | None]]
) -> dict[str, float]:
    """Best and median: ours over the highest of the peers; without those that were not measured."""
    ratios: dict[str, float] = {}
    for name, rate in ours.items():
        others = [other for peer in peers if (other := peer[name])]
        if rate and others:
            ratios[name] = rate / max(others)
    return ratios


def versions(engines: list[DrivenEngine]) -> dict[str, dict[str, object]]:
    """Engine → version and format, as it reported them."""
    return {
        engine.name: {key: value for key, value in engine.hello.items() if key != "work"}
        for engine in engines
    }
