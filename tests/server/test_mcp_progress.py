"""Progress notifications: how often, and with which numbers."""

import asyncio
from itertools import count

from app.server.mcp.progress import INTERVAL_S, Progress


class Sent:
    """Notifications, and the clock that their sender reads."""

    def __init__(self):
        self.now = 100.0
        self.values = []
        self.messages = []
        self.arrived = asyncio.Semaphore(0)

    def clock(self):
        return self.now

    async def send(self, value, total, message):
        self.values.append(value)
        self.messages.append((total, message))
        self.arrived.release()


async def test_notifications_are_apart():
    sent = Sent()
    progress = Progress(sent.send, clock=sent.clock)
    for tokens in range(1, 9):
        await progress.report(tokens, 8, f"{tokens} tokens")
        sent.now += INTERVAL_S / 2
    assert sent.values == [1, 3, 5, 7]
    assert sent.messages[-1] == (8, "7 tokens")


async def test_what_is_no_progress_is_left_out():
    sent = Sent()
    progress = Progress(sent.send, clock=sent.clock)
    for tokens in (0, 2, 2, 1, 3):
        await progress.report(tokens)
        sent.now += INTERVAL_S
    assert sent.values == [2, 3]


async def test_silence_is_broken_by_numbers_that_increase():
    sent = Sent()
    seconds = count()
    progress = Progress(sent.send, alive_s=1.0, clock=lambda: float(next(seconds)))
    async with progress.kept_alive():
        for _ in range(50):
            await sent.arrived.acquire()
        assert sent.values == sorted(set(sent.values))
        assert all(0 < value < 1 for value in sent.values)
        await progress.report(1)
        for _ in range(4):
            await sent.arrived.acquire()
    assert 1 in sent.values
    assert 1 < max(sent.values) < 2
    assert sent.values == sorted(set(sent.values))
    assert sent.messages[0][1].startswith("at work for ")


async def test_nothing_is_sent_after_the_block():
    sent = Sent()
    progress = Progress(sent.send, alive_s=0.0)
    async with progress.kept_alive():
        await sent.arrived.acquire()
    before = len(sent.values)
    await asyncio.sleep(0)
    assert len(sent.values) == before
