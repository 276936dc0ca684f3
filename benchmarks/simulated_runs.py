"""Runs of agents on the real memory plane and scheduler in virtual time; only the executor is simulated.

A client sends its next request when it has the answer to the last one and its tools have paused.
"""

import heapq
from collections.abc import Sequence as Many
from dataclasses import dataclass

import numpy as np

from benchmarks.run_shapes import Run, Turn, ideal_tokens, longest
from benchmarks.simulate import BLOCK_SIZE, STORED, Simulation
from engine.api.request import Request
from engine.api.scheduling import Scheduling
from engine.api.step_costs import StepCosts
from engine.batch.sequence import Sequence
from engine.memory.pauses import PERSON


@dataclass(frozen=True, slots=True)
class RunsOutcome:
    """What some runs have cost.

    Attributes:
        requests: of all of them.
        ideal: prompt tokens that must be computed, each once.
        computed: prompt tokens that were computed, those of preempted requests again.
        seconds: until the last answer, in virtual time.
        first_token_p50, longest_wait: seconds to the first token of a request.
    """

    requests: int
    ideal: int
    computed: int
    seconds: float
    first_token_p50: float
    longest_wait: float

    @property
    def ratio(self) -> float:
        """Tokens computed over the ideal."""
        return self.computed / self.ideal


class SimulatedRuns:
    """Plays runs on a pool once."""

    def __init__(
        self,
        runs: Many[Run],
        *,
        num_blocks: int,
        sessions: bool = True,
        max_hold_s: float = 0.0,
        costs: StepCosts = STORED,
    ) -> None:
        self._runs = runs
        self._sessions = sessions
        self.simulation = Simulation(
            Scheduling(),
            costs,
            seed=0,
            num_blocks=num_blocks,
            context=longest(runs) + BLOCK_SIZE,
            max_hold_s=max_hold_s,
        )
        self._due: list[tuple[float, int, _Client]] = []
        self._asking: dict[int, _Client] = {}
        self._waits: list[float] = []
        self._number = 0

    def play(self) -> RunsOutcome:
        """Play all runs to their end."""
        simulation, clock = self.simulation, self.simulation.clock
        pipeline = simulation.pipeline
        begin, before = clock.now, simulation.counters.prefilled
        for run in self._runs:
            self._plan(begin + run.start_s, _Client(run))
        while self._due or pipeline.has_work:
            if not pipeline.has_work:
                clock.now = max(clock.now, self._due[0][0])
            while self._due and self._due[0][0] <= clock.now:
                self._send(heapq.heappop(self._due)[2])
            pipeline.step()
            if pipeline.last_error is not None:
                raise AssertionError(pipeline.last_error[0])
            for finished in pipeline.take_finished():
                finished.deliver(simulation.events)
                self._answered(finished.sequence)
            idle_until = pipeline.idle_until
            if idle_until is not None:
                clock.now = max(clock.now, min([idle_until, *(at for at, *_ in self._due[:1])]))
        return RunsOutcome(
            requests=len(self._waits),
            ideal=ideal_tokens(self._runs),
            computed=simulation.counters.prefilled - before,
            seconds=clock.now - begin,
            first_token_p50=float(np.percentile(self._waits, 50)),
            longest_wait=max(self._waits),
        )

    def _plan(self, at: float, client: "_Client") -> None:
        self._number += 1
        heapq.heappush(self._due, (at, self._number, client))

    def _send(self, client: "_Client") -> None:
        turn = client.turn
        tokens = np.concatenate([client.tokens, turn.added])
        request = Request(())
        if self._sessions:
            request = Request((), session=client.run.name, may_be_held=True)
        self._number += 1
        sequence = self.simulation.submit(tokens, turn.answer, number=self._number, request=request)
        self._asking[id(sequence)] = client

    def _answered(self, sequence: Sequence) -> None:
        client, now = self._asking.pop(id(sequence)), self.simulation.clock.now
        turn = client.turn
        self._waits.append(sequence.mailbox.kept.timings.ttft or 0.0)
        client.tokens = sequence.tokens
        client.answered += 1
        for run in turn.starts:
            self._plan(now, _Client(run, parent=client))
            client.sub_agents += 1
        if client.answered == len(client.run.turns):
            self._ended(client)
        elif not turn.starts:
            self._plan(now + turn.pause_s, client)

    def _ended(self, client: "_Client") -> None:
        sessions, parent = self.simulation.blocks.sessions, client.parent
        if self._sessions and sessions is not None:
            sessions.waits_for(client.run.name, PERSON)
        if parent is not None:
            parent.sub_agents -= 1
            if not parent.sub_agents:
                self._plan(self.simulation.clock.now, parent)


class _Client:
    """The client of a run."""

    def __init__(self, run: Run, parent: "_Client | None" = None) -> None:
        self.run = run
        self.parent = parent
        self.tokens = run.head
        self.answered = 0  # turns
        self.sub_agents = 0  # that run now

    @property
    def turn(self) -> Turn:
        """The turn that is asked next, or was asked last."""
        return self.run.turns[self.answered]
