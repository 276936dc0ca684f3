"""`HttpLookups`: questions to the server that the screen asks again and again, answered from a cache.

`get` never waits. It returns the last answer, or None before the first one, and asks the server if that
answer is older than `STALE_S`; the wake-up callback runs when a new one is there. A question that fails is
asked again after `STALE_S`.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from engine.api.errors import PravahaError
from engine.clients.http_connection import HttpConnection

_log = logging.getLogger(__name__)

STALE_S = 0.5
"""Age at which an answer is fetched again, if it is still asked for."""
MAX_ANSWERS = 512
"""Answers kept; the one asked for longest ago is dropped first."""

Answer = TypeVar("Answer")
Fetch = Callable[[], Coroutine[Any, Any, Answer]]


@dataclass(slots=True)
class _Entry(Generic[Answer]):
    answer: Answer | None = None
    asked_at: float = float("-inf")
    pending: bool = False


class HttpLookups:
    """Answers by question. `get` may be called from any one thread at a time."""

    def __init__(
        self,
        connection: HttpConnection,
        clock: Callable[[], float],
        wake: Callable[[], None],
    ) -> None:
        """`wake` is called on the connection's thread after an answer has changed."""
        self._connection = connection
        self._clock = clock
        self._wake = wake
        self._entries: OrderedDict[Hashable, _Entry[Any]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, question: Hashable, fetch: Fetch[Answer]) -> Answer | None:
        """The last answer to a question, which `fetch` asks the server; see the module."""
        entry = self._entries.get(question)
        if entry is None:
            entry = self._entries[question] = _Entry()
            if len(self._entries) > MAX_ANSWERS:
                self._entries.popitem(last=False)
        self._entries.move_to_end(question)
        now = self._clock()
        if not entry.pending and now - entry.asked_at >= STALE_S:
            entry.pending, entry.asked_at = True, now
            self._connection.call_soon(lambda: self._start(entry, fetch))
        return cast("Answer | None", entry.answer)

    def send(self, path: str, body: dict[str, Any]) -> None:
        """Post a body without waiting; a refusal is logged."""
        self._connection.call_soon(lambda: self._spawn(self._post(path, body)))

    async def _post(self, path: str, body: dict[str, Any]) -> None:
        try:
            await self._connection.post(path, body)
        except PravahaError as error:
            _log.warning("The server refused %s: %s", path, error)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _start(self, entry: _Entry[Any], fetch: Fetch[Any]) -> None:
        self._spawn(self._fetch(entry, fetch))

    async def _fetch(self, entry: _Entry[Any], fetch: Fetch[Any]) -> None:
        before = entry.answer
        try:
            entry.answer = await fetch()
        except PravahaError as error:
            _log.debug("A question was not answered: %s", error)
        finally:
            entry.pending = False
        if entry.answer != before:
            self._wake()
