"""`BuildQueue`: the order in which grammars are built.

A build starts in the *quick* lane, with a small allowance of processor time that almost every grammar
keeps within. One that exceeds it is started again in the *slow* lane, with the full allowance. Slow
builds never occupy the last worker, so a new grammar waits for other quick attempts only, however
many costly grammars are queued and whoever sent them.

The quick lane gives the oldest and the newest build in turns: after a burst of costly grammars the next
cheap one waits for about two attempts, and none waits for more than twice those before it. The slow lane
is first in, first out.
"""

from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.api.grammar import Grammar

if TYPE_CHECKING:
    from engine.grammar.compiler import CompiledGrammar


@dataclass(slots=True)
class Build:
    """A grammar that is being built or waits for it.

    Attributes:
        grammar: its source.
        parsed: what `parse_source` returned for it.
        quick: whether it has not exceeded the allowance of the quick lane yet.
        waiters: futures of the callers that still wait for it.
    """

    grammar: Grammar
    parsed: Any
    quick: bool = True
    waiters: list["Future[CompiledGrammar]"] = field(default_factory=list)


class BuildQueue:
    """Two lanes of builds. Not thread-safe: the compiler's lock guards it."""

    def __init__(self, workers: int) -> None:
        """Order builds for `workers` threads; a single one does slow builds when no other waits."""
        self._workers = workers
        self._quick: OrderedDict[Grammar, Build] = OrderedDict()
        self._slow: OrderedDict[Grammar, Build] = OrderedDict()
        self._slow_running = 0
        self._newest_next = False

    def put(self, build: Build) -> None:
        """Queue a build in its lane."""
        (self._quick if build.quick else self._slow)[build.grammar] = build

    def take(self) -> Build | None:
        """The build that a free worker should do next, or None. Call `release` after it."""
        reserved = 1 if self._workers > 1 else 0
        slow = self._slow and self._slow_running < self._workers - reserved
        if slow and (reserved or not self._quick):
            self._slow_running += 1
            return self._slow.popitem(last=False)[1]
        if not self._quick:
            return None
        newest, self._newest_next = self._newest_next, not self._newest_next
        return self._quick.popitem(last=newest)[1]

    def release(self, build: Build) -> None:
        """A worker has finished with a build that it took; `build.quick` is what it was then."""
        self._slow_running -= not build.quick

    def discard(self, build: Build) -> bool:
        """Remove a build that no worker has taken; False if one has."""
        lane = self._quick if build.quick else self._slow
        return lane.pop(build.grammar, None) is not None

    def clear(self) -> list[Build]:
        """Remove and return every build that no worker has taken."""
        left = [*self._quick.values(), *self._slow.values()]
        self._quick.clear()
        self._slow.clear()
        return left
