"""`Sessions`: the last state of each session, and what keeping it in the pool is worth.

A session is a conversation or a run of an agent that comes back with what it sent before, and more. Between
two requests its blocks are cached like any others. Before an allocation evicts cached blocks, those of
sessions that are expected back are moved to the end of the eviction order, sorted by their *price* per block:

    price = seconds to recompute / blocks / seconds until the session is back

In GreedyDual-Size caching (Cao and Irani 1997) the value of an object is its cost over its size; here it is
divided by the time for which the memory is lent, estimated by `engine.memory.pauses`. Runs that have
ended go first, then those that the scheduler holds back (`engine.scheduler.run_gate`), then the others.
Within a session the last block goes first, and blocks that several sessions share have the place of the
dearest one: the head that all share goes last. Sessions that stay away for too long have no price: their
blocks are evicted by the time of their last use like all others, before those of any expected session.

Nothing is referenced between requests, so sessions never keep an allocation from succeeding. Engine's thread
only. Cost: nothing while nothing is evicted; else one lookup of each expected session after a session has
come or gone, and once in `REORDER_S`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from engine.api.snapshot import SessionCounts
from engine.batch.sequence import Sequence
from engine.memory.allocator import Allocator
from engine.memory.image_identity import identity_tokens
from engine.memory.pauses import PERSON, Pauses
from engine.memory.prefix_cache import PrefixCache
from engine.text.common_prefix import common_prefix

MAX_SESSIONS = 256
FIRST_GROWTH = 512.0
"""Tokens by which a run is expected to grow in a turn before any has."""
FIRST_TURNS = 10.0
"""Turns that a run is expected to have before any has ended; the recorded ones have 10 to 20."""
MIN_TURNS_LEFT = 2.0
WEIGHT = 0.125
"""Of the last observation in the means of growth and turns."""
COUNT_S = 0.25
"""Seconds for which counts are shown: a snapshot is made after every step."""
REORDER_S = 1.0
"""Seconds after which prices are computed again although no session came or went."""
_NO_TOKENS: NDArray[np.int32] = np.zeros(0, np.int32)


@dataclass(slots=True, eq=False)
class Session:
    """What is known of one session.

    Attributes:
        name: names it.
        since: when it began, or came back after it had been given up; orders sessions by age.
        running: its requests that have a row.
        turns: requests that it has finished.
        tokens: [n] int32, identity tokens of its last request and answer.
        cache_salt: under which they are cached.
        finished_at: when its last request finished; None before.
        tool: what it waits for.
        held: whether the scheduler holds its requests back.
        was_held: whether one was since the session ran last.
        held_since: when the first of them was; None if none was. A client that sends a request again when
            it gave up the first waits on.
        is_run: whether its requests may be held: it is a run of an agent.
        ended: whether it was counted as a run that has ended.
    """

    name: str
    since: float
    running: int = 0
    turns: int = 0
    tokens: NDArray[np.int32] = field(default_factory=lambda: _NO_TOKENS, repr=False)
    cache_salt: bytes = b""
    finished_at: float | None = None
    tool: str = ""
    held: bool = False
    was_held: bool = False
    held_since: float | None = None
    is_run: bool = False
    ended: bool = False


class Sessions:
    """The sessions that used one pool last.

    Attributes:
        pauses: how long sessions are away.
        recompute_seconds: predicts the seconds to prefill so many tokens; None if unknown.
        growth: running mean of the tokens by which a run grows in a turn.
        turns: running mean of the turns that runs had when they did not come back.
    """

    def __init__(self, allocator: Allocator, prefixes: PrefixCache, *, block_size: int) -> None:
        """No sessions."""
        self._allocator = allocator
        self._prefixes = prefixes
        self._block_size = block_size
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self.pauses = Pauses()
        self.recompute_seconds: Callable[[int], float | None] = _unknown
        self.growth = FIRST_GROWTH
        self.turns = FIRST_TURNS
        self._lost = {"away": 0, "held": 0, "space": 0}
        self._counted: tuple[float, SessionCounts] | None = None
        self._now = 0.0
        self._ordered_at: float | None = None  # None: a session came or went since

    def __iter__(self) -> Iterator[Session]:
        return iter(self._sessions.values())

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, name: str) -> Session | None:
        """A session by its name."""
        return self._sessions.get(name)

    def tick(self, now: float) -> None:
        """Record the time of the engine's clock."""
        self._now = now

    def arrived(self, sequence: Sequence) -> Session | None:
        """The session of a request that waits or starts, as of now; None if it has none."""
        name = sequence.request.session
        if name is None:
            return None
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = Session(name, sequence.queued_at)
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        elif not session.running and session.ended:
            session.since = sequence.queued_at
            session.ended = False
        session.is_run = session.is_run or sequence.request.may_be_held
        return session

    def started(self, sequence: Sequence) -> None:
        """Record that a request got a row."""
        session = self.arrived(sequence)
        if session is None:
            return
        self._count_lost(session, sequence)
        if session.finished_at is not None and not session.running and not sequence.preemptions:
            pause = max(0.0, sequence.queued_at - session.finished_at)
            self.pauses.observe(session.name, session.tool, pause)
        session.running += 1
        session.held = session.was_held = False
        session.held_since = None
        self._sessions.move_to_end(session.name)
        self._ordered_at = None

    def _count_lost(self, session: Session, sequence: Sequence) -> None:
        """Count the blocks of a session's last state that a request of it has to compute again."""
        if session.running or sequence.preemptions or not len(session.tokens):
            return
        tokens = identity_tokens(sequence.tokens, sequence.request.images, self._block_size)
        common = common_prefix(session.tokens, tokens[:-1])
        found = sequence.start.tokens + sequence.swapped_tokens
        lost = common // self._block_size - found // self._block_size
        if lost <= 0:
            return
        if session.was_held:
            self._lost["held"] += lost
        elif self.is_gone(session, sequence.queued_at):
            self._lost["away"] += lost
        else:
            self._lost["space"] += lost

    def counts(self) -> SessionCounts:
        """What is known of the sessions, and what they have lost; at most `COUNT_S` old."""
        if self._counted is not None and self._now < self._counted[0] + COUNT_S:
            return self._counted[1]
        self._counted = self._now, self._count()
        return self._counted[1]

    def _count(self) -> SessionCounts:
        running = sum(session.running > 0 for session in self)
        waits = (one for one in self if not one.running and one.turns and not one.ended)
        return SessionCounts(
            running=running,
            expected=sum(not self.is_gone(one, self._now) for one in waits),
            lost_away=self._lost["away"],
            lost_held=self._lost["held"],
            lost_space=self._lost["space"],
        )

    def stopped(self, sequence: Sequence, *, finished_at: float | None = None) -> None:
        """Record that a request lost its row, because it finished or, without an instant, was preempted."""
        session = self._sessions.get(sequence.request.session or "")
        if session is None:
            return
        session.running = max(0, session.running - 1)
        grown = len(sequence.tokens) - len(session.tokens)
        if finished_at is not None and session.is_run and session.turns and grown > 0:
            self.growth += WEIGHT * (grown - self.growth)
        session.tokens = identity_tokens(sequence.tokens, sequence.request.images, self._block_size)
        session.cache_salt = sequence.cache_salt
        self._ordered_at = None
        if finished_at is not None:
            session.turns += 1
            session.finished_at = finished_at
            session.tool = ""

    def waits_for(self, name: str, tool: str) -> None:
        """Record what a session waits for; unknown sessions and those that run again are ignored."""
        session = self._sessions.get(name)
        if session is not None and not session.running:
            session.tool = tool
            if tool == PERSON:
                self._note_ended(session)

    def is_gone(self, session: Session, now: float) -> bool:
        """Whether a session without a running request is not expected back."""
        if session.finished_at is None:
            return False
        patience = self.pauses.patience(session.name, session.tool)
        if session.tool != PERSON:
            patience = max(patience, self.recompute_seconds(len(session.tokens)) or 0.0)
        return now - session.finished_at > patience

    def growth_of(self, session: Session) -> float:
        """Tokens by which a run is expected to grow until it ends."""
        return (
            self.growth * max(self.turns - session.turns, MIN_TURNS_LEFT) if session.is_run else 0.0
        )

    def _note_ended(self, session: Session) -> None:
        """Count a run whose last answer has no calls as one that has ended."""
        if session.is_run and not session.ended:
            session.ended = True
            self.turns += WEIGHT * (session.turns - self.turns)

    def until_return(self, session: Session, now: float) -> float:
        """Expected seconds until a session without a running request is back."""
        waited = 0.0 if session.finished_at is None else max(0.0, now - session.finished_at)
        return self.pauses.until_return(session.name, session.tool, waited)

    def blocks(self, session: Session) -> NDArray[np.int32]:
        """[B] int32, the blocks of a session's last state that are in the pool, the first one first."""
        return self._prefixes.match(session.tokens, session.cache_salt)

    def price(self, session: Session, blocks: int, now: float) -> float:
        """What keeping a block of a session with so many blocks in the pool is worth."""
        cost = self.recompute_seconds(blocks * self._block_size)
        if cost is None:
            cost = float(blocks)
        return cost / blocks / max(self.until_return(session, now), 1e-3)

    def order_evictions(self) -> None:
        """Move the cached blocks of expected sessions to the end of the eviction order, by price."""
        now = self._now
        if self._ordered_at is not None and now - self._ordered_at < REORDER_S:
            return
        self._ordered_at = now
        expected = []
        for number, session in enumerate(self._sessions.values()):
            if session.running or not len(session.tokens) or self.is_gone(session, now):
                continue
            blocks = self.blocks(session)
            if blocks.size:
                price = self.price(session, len(blocks), now)
                order = 0 if session.ended else 1 if session.held else 2
                expected.append((order, price, number, blocks))
        expected.sort(key=itemgetter(0, 1, 2))
        for *_, blocks in expected:
            self._allocator.retain(blocks)
            self._allocator.release(np.ascontiguousarray(blocks[::-1]))


def _unknown(_: int) -> None:
    return None
