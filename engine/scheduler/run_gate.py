"""`RunGate`: holds requests of runs that the pool cannot hold to their end beside older ones.

When parallel runs of agents need more KV than the pool has, serving all in turn evicts each before it comes
back, and every turn computes its whole conversation again. So the gate admits *runs*, not requests: in the
order of their age, each run that is running, waiting or expected back reserves what it has and what it is
expected to grow by; runs that do not fit are held until others end or stay away. What a held run has
computed stays cached while there is room, and is evicted before what the others have.

Only requests with `may_be_held` and a session are held (a person who chats never waits here), and none
that has begun to answer. Bounds:

1. The oldest run is never held. A run keeps its age until it has answered without a call of a tool.
2. A run that has been held for `max_hold_s`, whether its client waited or sent its request again, becomes
   one of the oldest, behind those for which that was done before, so that younger runs are held in its
   place. That costs two conversations that are computed again, so it is done once per
   `PROMOTION_INTERVAL` times the seconds that one takes: n held runs are all served after
   `max_hold_s + n * PROMOTION_INTERVAL * seconds` at the latest.
3. While nothing runs, a request is held no longer than it takes to compute again what it would evict from
   runs that are expected back: longer waiting could not pay (the rule of ski rental). Nor is a run then
   held for more than `max_hold_s`. So the pool is never kept for runs that do not come.

With a swap tier that copies blocks in much faster than they are computed nothing is held: what is evicted
comes back. Cost: nothing while no request with `may_be_held` waits; else a pass over the expected sessions,
with a lookup of each if they do not fit all, in scheduling passes `EVALUATE_S` apart.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_queue import RequestQueue
from engine.batch.rows import RowTable
from engine.batch.sequence import Sequence
from engine.memory.block_manager import BlockManager
from engine.memory.sessions import Session, Sessions
from engine.scheduler.running_rows import RunningRows
from engine.scheduler.work_predictor import WorkPredictor

EVALUATE_S = 0.05
"""Seconds between evaluations while the same requests wait and run."""
PROMOTION_INTERVAL = 64.0
"""Times that it takes to compute the conversation of a run that was promoted, until the next one is."""
SWAP_ADVANTAGE = 0.25
"""Share of the time to compute blocks that swapping them in may take for nothing to be held."""

_NO_BLOCKS: NDArray[np.int32] = np.zeros(0, np.int32)


@dataclass(slots=True, eq=False)
class _Run:
    """A session that wants memory.

    Attributes:
        session: the session.
        waiting: its waiting requests that may be held.
        blocks: that its longest request, or its last state, needs.
        find: finds those of them that are in the pool, [B] int32.
    """

    session: Session
    waiting: list[Sequence] = field(default_factory=list)
    blocks: int = 0
    find: Callable[[], NDArray[np.int32]] = lambda: _NO_BLOCKS


class RunGate:
    """Decides which waiting requests are held. Owned by the scheduler.

    Attributes:
        max_hold_s: longest time for which a request is held; 0 holds none.
        num_held: requests that are held now.
    """

    def __init__(
        self,
        table: RowTable,
        blocks: BlockManager,
        waiting: RequestQueue,
        running: RunningRows,
        work: WorkPredictor,
        *,
        max_hold_s: float,
    ) -> None:
        """Hold nothing yet."""
        self.max_hold_s = max_hold_s
        self.num_held = 0
        # An instant, and the queue's changes before.
        self._idle_until: tuple[float, int] | None = None
        self._table = table
        self._blocks = blocks
        self._waiting = waiting
        self._running = running
        self._work = work
        self._evaluated_at = -math.inf
        self._evaluated_for = (0, 0)
        self._idle_since: float | None = None
        self._promote_at = -math.inf  # the next run is not promoted before
        self._promoted = 0  # runs whose request was held for `max_hold_s`

    def update(self, now: float) -> None:
        """Mark the waiting requests that are held from now on."""
        self._idle_until = None
        if len(self._running):
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
        # Most steps of a server without agents end here: nothing waits.
        if not len(self._waiting) or not (columns := self._waiting.columns()).may_be_held.any():
            self.num_held = 0
            return
        sessions = self._blocks.sessions
        if sessions is None or not self.max_hold_s or self._swaps_fast():
            self.num_held = 0
            self._waiting.hold(np.zeros(len(columns), np.bool_))
            return
        state = (self._waiting.num_changes, len(self._running))
        recent = now < self._evaluated_at + EVALUATE_S
        if len(self._running) and state == self._evaluated_for and recent:
            return
        self._evaluated_for, self._evaluated_at = state, now
        self._evaluate(sessions, now)

    @property
    def holds_all(self) -> bool:
        """Whether nothing runs and the last pass held all waiting requests."""
        return self._idle_until is not None

    def idle_until(self, now: float) -> float | None:
        """While nothing runs and all waiting requests are held, when one may be let in; else None."""
        if self._idle_until is None:
            return None
        until, changes = self._idle_until
        return until if now < until and changes == self._waiting.num_changes else None

    def _swaps_fast(self) -> bool:
        """Whether evicted blocks come back from the swap tier in a fraction of the time to compute them."""
        tier = self._blocks.tier
        if tier is None:
            return False
        blocks = max(1, self._blocks.num_blocks // 16)
        swapping = tier.swap_in_seconds(blocks)
        computing = self._work.prefill_seconds(blocks * self._table.block_size, cached=0)
        return swapping is None or computing is None or swapping < SWAP_ADVANTAGE * computing

    def _evaluate(self, sessions: Sessions, now: float) -> None:
        runs = self._find_runs(sessions, now)
        # Of runs that began at the same instant, those that have begun to compute are older.
        runs.sort(key=lambda run: (run.session.since, -run.session.turns - run.session.running))
        room = self._blocks.num_blocks - self._used_by_others(sessions)
        held = self._hold(sessions, runs, room, now)
        if held and not len(self._running) and len(held) == len(self._waiting):
            self._wait_idle(runs, held, room, now)
        queue = np.zeros(len(self._waiting), np.bool_)
        queue[[one.queue_index for one in held]] = True
        self._waiting.hold(queue)
        self.num_held = len(held)

    def _find_runs(self, sessions: Sessions, now: float) -> list[_Run]:
        """The sessions that run, wait or are expected back."""
        found: dict[str, _Run] = {}
        for sequence in self._waiting:
            session = sessions.arrived(sequence)
            if session is None:
                continue
            may_be_held = sequence.request.may_be_held and not sequence.preemptions
            if may_be_held and now >= max(self._held_until(session, now), self._promote_at):
                self._promote(session, len(sequence.tokens), now)
            run = found.setdefault(session.name, _Run(session))
            blocks = self._blocks.blocks_for(len(sequence.tokens))
            if blocks > run.blocks:
                run.blocks = blocks
                run.find = partial(self._blocks.resident, sequence.tokens, sequence.cache_salt)
            if may_be_held:
                run.waiting.append(sequence)
        for row in self._running.rows.tolist():
            session = sessions.find(self._table.sequence(row).request.session or "")
            if session is None:
                continue
            run = found.setdefault(session.name, _Run(session))
            blocks = self._blocks.blocks_for(int(self._table.num_tokens[row]))
            if blocks > run.blocks:
                run.blocks = blocks
                run.find = partial(self._blocks_of, row)
        for session in sessions:
            if session.name in found or session.running or not session.turns:
                continue
            if session.ended or sessions.is_gone(session, now):
                continue
            blocks = self._blocks.blocks_for(len(session.tokens))
            found[session.name] = _Run(session, [], blocks, partial(sessions.blocks, session))
        return list(found.values())

    def _held_until(self, session: Session, now: float) -> float:
        """When a run has been held for as long as it may be."""
        return (now if session.held_since is None else session.held_since) + self.max_hold_s

    def _blocks_of(self, row: int) -> NDArray[np.int32]:
        held: NDArray[np.int32] = self._table.block_tables[row, : self._table.num_blocks[row]]
        return held

    def _promote(self, session: Session, tokens: int, now: float) -> None:
        """Make a run one of the oldest, if it is held, behind those for which this was done before."""
        if not session.held or session.since < 0:
            return
        self._promoted += 1
        session.since = self._promoted - 1e9  # before every instant
        computing = self._work.prefill_seconds(tokens, cached=0) or 0.0
        self._promote_at = now + PROMOTION_INTERVAL * computing

    def _used_by_others(self, sessions: Sessions) -> int:
        """Blocks of running requests that belong to no session."""
        rows = self._running.rows
        others = [
            row
            for row in rows.tolist()
            if sessions.find(self._table.sequence(row).request.session or "") is None
        ]
        return int(self._table.num_blocks[others].sum()) if others else 0

    def _hold(self, sessions: Sessions, runs: list[_Run], room: int, now: float) -> list[Sequence]:
        """The requests to hold; a block that several runs share is counted once."""
        growths = [self._blocks.blocks_for(int(sessions.growth_of(run.session))) for run in runs]
        fits_all = sum(growths) + sum(run.blocks for run in runs) <= room
        claimed = np.zeros(self._blocks.num_blocks, np.bool_)
        reserved = 0
        held: list[Sequence] = []
        for run, growth in zip(runs, growths, strict=True):
            run.session.held = False
            if fits_all:
                continue
            resident = run.find()
            wanted = run.blocks - int(np.count_nonzero(claimed[resident])) + growth
            if not reserved or reserved + wanted <= room:
                reserved += wanted
                claimed[resident] = True
            else:
                run.session.held = run.session.was_held = True
                held += run.waiting
                if run.waiting and run.session.held_since is None:
                    run.session.held_since = now
        return held

    def _wait_idle(self, runs: list[_Run], held: list[Sequence], room: int, now: float) -> None:
        """Let the held run in that evicts least, if waiting longer could not pay; else stay idle."""
        kept = np.zeros(self._blocks.num_blocks, np.bool_)
        for run in runs:
            kept[run.find()] = True
        free = room - int(np.count_nonzero(kept))
        closed = [run for run in runs if run.session.held]
        needed, _, run = min(
            (one.blocks - len(one.find()) - free, number, one)
            for number, one in enumerate(closed)
            if one.waiting
        )
        lost = 0.0
        if needed > 0:
            lost = self._work.prefill_seconds(needed * self._table.block_size, cached=0) or 0.0
        since = now if self._idle_since is None else self._idle_since
        until = since + lost
        longest = min(closed, key=lambda one: (not one.waiting, self._held_until(one.session, now)))
        if self._held_until(longest.session, now) < until:
            until, run = self._held_until(longest.session, now), longest
        if until <= now:
            run.session.held = False
            run.session.since = min(one.session.since for one in closed) - 1e-6
            for sequence in run.waiting:
                held.remove(sequence)
            return
        self._idle_until = until, self._waiting.num_changes
