"""Runs of agents on the real memory plane and scheduler in virtual time; only the executor is simulated.

A client sends its next request when it has the answer to the last one and its tools have paused.
"""

import heapq
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.run_shapes import Run, end_tokens, ideal_tokens, longest
from benchmarks.simulate import BLOCK_SIZE, STORED, Simulation
from engine.api.request import Request
from engine.api.scheduling import Scheduling
from engine.api.step_costs import StepCosts
from engine.memory.pauses import PERSON
from engine.batch.sequence import Sequence as Submitted


@dataclass(frozen=True, slots=True)
class RunsOutcome:
    """What some runs have cost.

    Attributes:
        runs: how many.
        requests: of all of them.
        pool_tokens: tokens that the pool holds.
        ideal: prompt tokens that must be computed, each once.
        computed: prompt tokens that were computed, those of preempted requests again.
        evicted: blocks that were evicted.
        swapped_in: blocks that came from the swap tier.
        seconds: until the last answer, in virtual time.
        first_token_p50, longest_wait: seconds to the first token of a request.
    """

    runs: int
    requests: int
    pool_tokens: int
    ideal: int
    computed: int
    evicted: int
    swapped_in: int
    seconds: float
    first_token_p50: float
    longest_wait: float

    @property
    def ratio(self) -> float:
        """Tokens computed over the ideal."""
        return self.computed / self.ideal


class SimulatedRuns:
    """Plays runs on a pool."""

    def __init__(
        self,
        runs: Sequence[Run],
        *,
        num_blocks: int,
        sessions: bool = True,
        max_hold_s: float = 0.0,
        costs: StepCosts = STORED,
        seed: int = 0,
    ) -> None:
        self._runs = runs
        self._sessions = sessions
        context = longest(runs) + BLOCK_SIZE
        self.simulation = Simulation(Scheduling(), costs, seed=seed, num_blocks=num_blocks, context=context, max_hold_s=max_hold_s)
        self._due: list[tuple[float, int]] = []  # instant of the next request, its run
        self._turn = [0] * len(runs)
        self._tokens: list[NDArray[np.int32]] = [one.head for one in runs]
        self._of: dict[int, int] = {}
        self._waits: list[float] = []
        self._arrivals = 0

    def play(self) -> RunsOutcome:
        simulation, clock = self.simulation, self.simulation.clock
        begin = clock.now
        self._due = [(begin + one.start_s, number) for number, one in enumerate(self._runs)]
        heapq.heapify(self._due)
        before = simulation.counters.prefilled
        pipeline = simulation.pipeline
        steps = 0
        while self._due or pipeline.has_work:
            if not pipeline.has_work:
                clock.now = max(clock.now, self._due[0][0])
            while self._due and self._due[0][0] <= clock.now:
                self._send(heapq.heappop(self._due)[1])
            pipeline.step(); steps += 1
            if pipeline.last_error is not None:
                raise AssertionError(pipeline.last_error[0])
            for finished in pipeline.take_finished():
                finished.deliver(simulation.events)
                self._answered(finished.sequence)
            wake = pipeline.scheduler.run_gate.wake_at
            if wake is not None and pipeline.has_work:
                clock.now = max(clock.now, min([wake, *(at for at, _ in self._due[:1])]))
        tier = simulation.blocks.tier
        return RunsOutcome(
            len(self._runs), len(self._waits), simulation.blocks.num_blocks * BLOCK_SIZE,
            ideal_tokens(self._runs), simulation.counters.prefilled - before,
            simulation.blocks.num_evicted, 0 if tier is None else tier.swapped_in,
            clock.now - begin, float(np.percentile(self._waits, 50)), max(self._waits),
        )

    def _send(self, number: int) -> None:
        run = self._runs[number]
        turn = run.turns[self._turn[number]]
        tokens = np.concatenate([self._tokens[number], turn.added])
        request = Request(())
        if self._sessions:
            request = Request((), session=run.name, may_be_held=True)
        sequence = self.simulation.submit(
            tokens, turn.answer, number=self._arrivals, request=request
        )
        self._arrivals += 1
        self._of[id(sequence)] = number

    def _answered(self, sequence: Submitted) -> None:
        number = self._of.pop(id(sequence))
        kept = sequence.mailbox.kept
        self._waits.append(kept.timings.ttft)
        self._tokens[number] = sequence.tokens
        turn = self._runs[number].turns[self._turn[number]]
        self._turn[number] += 1
        if self._turn[number] < len(self._runs[number].turns):
            heapq.heappush(self._due, (self.simulation.clock.now + turn.pause_s, number))
        elif self._sessions:
            self.simulation.blocks.sessions.waits_for(self._runs[number].name, PERSON)
