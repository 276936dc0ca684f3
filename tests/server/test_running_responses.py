"""Responses in the background: how they end."""

import asyncio
from contextlib import AsyncExitStack

from app.server.process.drain import Drain
from app.server.process.running_responses import KEPT_RESPONSES, RunningResponses


class Answer:
    """An answer whose last event is kept only when the test lets it."""

    def __init__(self, name="resp_1"):
        self.id = name
        self.status = "in_progress"
        self.kept = []
        self.gate = asyncio.Event()
        self.ending = asyncio.Event()
        self.goes_on = asyncio.Event()

    def response(self):
        return {"id": self.id, "status": self.status}

    def failure(self, error):
        self.status = "failed"
        return b"failed"

    def cancel(self):
        self.status = "cancelled"
        return b"cancelled"

    async def keep(self):
        self.kept.append(self.status)

    async def events(self):
        yield b"created"
        self.status = "completed"
        self.ending.set()
        await self.gate.wait()  # the end is being kept
        yield b"completed"

    async def endless(self):
        yield b"created"
        self.goes_on.set()
        await asyncio.Event().wait()


async def texts(running, after=-1):
    return [one async for one in running.read(after)]


async def test_a_response_whose_end_is_being_kept_is_not_cancelled():
    answer = Answer()
    running = RunningResponses(Drain()).start(
        answer, answer.events(), AsyncExitStack(), answer.keep
    )
    reader = asyncio.create_task(texts(running))
    await answer.ending.wait()
    cancelling = asyncio.create_task(running.cancel())
    await asyncio.sleep(0)
    answer.gate.set()
    await cancelling
    assert (answer.status, await reader) == ("completed", [b"created", b"completed"])


async def test_a_cancelled_response_is_kept_and_its_resources_are_closed():
    answer, closed = Answer(), []
    resources = AsyncExitStack()
    resources.callback(closed.append, True)
    running = RunningResponses(Drain()).start(answer, answer.endless(), resources, answer.keep)
    reader = asyncio.create_task(texts(running))
    await answer.goes_on.wait()
    await running.cancel()
    await running.cancel()
    assert (answer.kept, closed, await reader) == (
        ["cancelled"],
        [True],
        [b"created", b"cancelled"],
    )


async def test_the_end_of_the_drain_fails_what_runs():
    answer, drain = Answer(), Drain()
    running = RunningResponses(drain).start(answer, answer.endless(), AsyncExitStack(), answer.keep)
    drain.expire()
    assert await texts(running) == [b"created", b"failed"]
    assert answer.kept == ["failed"]


async def test_only_the_last_that_ended_are_kept():
    responses = RunningResponses(Drain())
    for number in range(KEPT_RESPONSES + 3):
        answer = Answer(f"resp_{number}")
        answer.gate.set()
        running = responses.start(answer, answer.events(), AsyncExitStack(), answer.keep)
        await texts(running)
    found = [responses.get(f"resp_{number}") is not None for number in range(KEPT_RESPONSES + 3)]
    assert found == [False] * 3 + [True] * KEPT_RESPONSES


async def test_events_that_fail_end_the_response():
    answer = Answer()

    async def events():
        yield b"created"
        raise OSError("the disk is full")

    running = RunningResponses(Drain()).start(answer, events(), AsyncExitStack(), answer.keep)
    assert await texts(running) == [b"created", b"failed"]
    assert answer.kept == ["failed"]
    await running.cancel()  # it has ended


async def test_a_response_that_cannot_be_kept_has_a_last_event_all_the_same():
    answer, closed = Answer(), []
    resources = AsyncExitStack()
    resources.callback(closed.append, True)

    async def keep():
        raise OSError("the disk is full")

    running = RunningResponses(Drain()).start(answer, answer.endless(), resources, keep)
    await answer.goes_on.wait()
    await running.cancel()
    assert (await texts(running), closed) == ([b"created", b"cancelled"], [True])
