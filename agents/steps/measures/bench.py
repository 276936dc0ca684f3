"""`Bench` and `Suite`: what the model is asked with, and a group of items that are measured together."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from agents.model.decisions import Decider
from agents.model.layout import SharedLayout
from agents.model.session import ModelSession


@dataclass(frozen=True, slots=True)
class Bench:
    """The loaded model.

    Attributes:
        session, layout, decider: of one model.
        tick: called when an item is done.
    """

    session: ModelSession
    layout: SharedLayout
    decider: Decider
    tick: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Suite:
    """Items that are measured together.

    Attributes:
        name: in profiles.
        title: what is measured, in a few words.
        count: number of items.
        measure: whether each item is right, by its name.
    """

    name: str
    title: str
    count: int
    measure: Callable[[Bench], Awaitable[Mapping[str, bool]]]


async def each(
    bench: Bench, names: Sequence[str], tests: Sequence[Callable[[], Awaitable[bool]]], at_once: int
) -> dict[str, bool]:
    """Run the tests of items, some at once, which share their prompts' beginning.

    Raises:
        ModelFailure: the engine failed: nothing was measured.
    """
    free = asyncio.Semaphore(at_once)

    async def one(test: Callable[[], Awaitable[bool]]) -> bool:
        async with free:
            try:
                return await test()
            finally:
                bench.tick()

    tasks: list[asyncio.Task[bool]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(one(test)) for test in tests]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return {name: task.result() for name, task in zip(names, tasks, strict=True)}
