"""`LoopThread`: every accepted call ends, whenever the thread is closed."""

import asyncio
import threading
from concurrent.futures import CancelledError, Future, wait

import pytest

from agents.service.loop_thread import LoopThread

END_S = 30.0


async def nothing() -> None:
    return None


def test_runs_coroutines_of_other_threads() -> None:
    thread = LoopThread("tested")

    async def name() -> str:
        return threading.current_thread().name

    assert thread.submit(name()).result(END_S) == "tested"
    thread.close(nothing(), within_s=END_S)


def test_a_call_that_runs_when_it_is_closed_is_cancelled() -> None:
    thread = LoopThread("tested")
    waiting = thread.submit(asyncio.Event().wait())
    thread.close(nothing(), within_s=END_S)
    with pytest.raises(CancelledError):
        waiting.result(END_S)


def test_calls_after_the_end_are_refused_at_once() -> None:
    thread = LoopThread("tested")
    thread.close(nothing(), within_s=END_S)
    thread.close(nothing(), within_s=END_S)
    called: list[int] = []
    thread.call_soon(lambda: called.append(1))
    assert thread.submit(nothing()).cancelled()
    assert not called


def test_calls_are_accepted_while_the_last_work_is_done() -> None:
    thread = LoopThread("tested")
    begun, go_on = threading.Event(), asyncio.Event()

    async def last() -> None:
        begun.set()
        await go_on.wait()

    closing = threading.Thread(target=lambda: thread.close(last(), within_s=END_S))
    closing.start()
    assert begun.wait(END_S)
    assert thread.submit(nothing()).result(END_S) is None
    thread.call_soon(go_on.set)
    closing.join(END_S)
    assert not closing.is_alive()


def test_no_call_is_lost_between_the_last_turn_of_the_loop_and_its_end() -> None:
    """Calls from several threads while it is closed: each has a result or is cancelled."""
    for _ in range(50):
        thread = LoopThread("tested")
        futures: list[Future[None]] = []
        begun = threading.Barrier(4)

        def call(
            thread: LoopThread = thread,
            futures: list[Future[None]] = futures,
            begun: threading.Barrier = begun,
        ) -> None:
            begun.wait()
            futures.extend(thread.submit(nothing()) for _ in range(40))

        callers = [threading.Thread(target=call) for _ in range(3)]
        for one in callers:
            one.start()
        begun.wait()
        thread.close(nothing(), within_s=END_S)
        for one in callers:
            one.join()
        assert not wait(futures, timeout=END_S).not_done
