"""Simulates the scheduling policies on arrival traces, in virtual time, and counts met deadlines.

    python benchmarks/simulate.py [--load 1.3] [--seconds 120] [--trace poisson …] [--json]
    python benchmarks/simulate.py --fit MODEL      # with step times of this machine

All components are the engine's own (pipeline, scheduler, policies, block pool, prefix cache, step-time
model and its calibration) except the executor, which computes nothing and advances a virtual clock by
the predicted duration of the step. So a run is reproducible and takes seconds.

*TTFT in time* is the fraction of the requests with a deadline whose first token met it. *Done in time*
is the fraction whose last token met the deadline plus 100 ms per further token. `load` is the offered
work divided by the machine's capacity with 16 decodes per step; above 1 not all requests can be served
in time.
"""

import argparse
import json
import sys
from collections.abc import Sequence as Many
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import with_origin
from benchmarks.traces import TRACES, Arrival, take
from engine._core import BlockAllocator, PrefixTrie
from engine.api.events import EventBus
from engine.api.request import Request, SamplingParams
from engine.api.scheduling import BATCH_FORMERS, POLICIES, Scheduling
from engine.api.step_costs import StepCosts
from engine.batch.mailbox import Mailbox
from engine.batch.request_queue import RequestQueue
from engine.batch.request_record import request_record
from engine.batch.rows import RowTable
from engine.batch.sampling_validator import SamplingValidator
from engine.batch.sequence import Sequence
from engine.executors.base import ExecutorInfo, StepPlan, StepResult
from engine.memory.block_manager import BlockManager
from engine.memory.prefix_cache import PrefixCache
from engine.observability.counters import EngineCounters, StepRecord
from engine.scheduler.step_time import step_load
from engine.step.calibration import Calibration
from engine.step.pipeline import Pipeline

STORED = StepCosts(constant=1.8e-3, prefill_token=6.4e-4, decode_row=1.6e-3, kv_token=2.1e-6)
"""SmolLM2-135M Q4_1 on two AVX-512 cores with noisy neighbours: `--fit` of 2026-11-21, rounded."""

BLOCK_SIZE = 32
ROWS = 32
BUDGET = 512
BLOCKS = 1500
CONTEXT = 8192
CONCURRENT_DECODES = 16
PER_TOKEN_S = 0.1
SCATTER = 0.08
"""Sigma of the log-normal noise of step times, which the step-time model has to average out."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a trace under one policy. Fractions are of the requests with a deadline."""

    policy: str
    batch_former: str
    requests: int
    ttft_met: float
    done_met: float
    ttft_met_by_kind: dict[str, float]
    ttft_p50: float
    ttft_p95: float
    longest_wait: float
    itl_p99: float
    preemptions: int
    prefix_hits: float
    seconds: float


class SimulatedExecutor:
    """Advances the virtual clock by the duration of each step."""

    def __init__(self, costs: StepCosts, clock: "VirtualClock", seed: int) -> None:
        self.info = ExecutorInfo("simulated", "none", 0, "none", 0, "f16", 0)
        self._costs = costs
        self._clock = clock
        self._rng = np.random.default_rng(seed)

    def execute(self, plan: StepPlan) -> StepResult:
        """Sample token 1 for every row with `needs_logits`."""
        num_scheduled_tokens = np.diff(plan.query_start)
        end = plan.positions[plan.query_start[1:] - 1] + 1
        load = step_load(num_scheduled_tokens, end, len(plan.token_ids))
        self._clock.now += self._costs.seconds(load) * float(self._rng.lognormal(0, SCATTER))
        result = StepResult.empty(len(plan.rows))
        result.sampled[plan.needs_logits != 0] = 1
        return result

    def copy_blocks(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Nothing is stored."""

    def close(self) -> None:
        """Nothing to free."""


class IntervalCounters(EngineCounters):
    """Keeps all inter-token latencies, for exact percentiles, and counts recomputed tokens, too.

    Attributes:
        inter_token_latencies: of each step, as bytes of float64.
        prefilled: tokens computed in prefills, those of preempted requests again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inter_token_latencies: list[bytes] = []
        self.prefilled = 0

    def record_step(self, now: float, step: StepRecord) -> None:
        """Count a step."""
        self.inter_token_latencies.append(step.inter_token_latencies)
        self.prefilled += step.prefill_tokens
        super().record_step(now, step)


class VirtualClock:
    """A clock that advances only while steps run."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The current instant, in seconds."""
        return self.now


class Simulation:
    """A complete pipeline on a virtual clock."""

    def __init__(
        self,
        scheduling: Scheduling,
        costs: StepCosts,
        *,
        seed: int,
        num_blocks: int = BLOCKS,
        context: int = CONTEXT,
        max_hold_s: float = 0.0,
    ) -> None:
        self.clock = VirtualClock()
        self.counters = IntervalCounters()
        self.events = EventBus()
        self.waiting = RequestQueue(10**6)
        allocator = BlockAllocator(num_blocks, BLOCK_SIZE)
        self.blocks = BlockManager(
            allocator,
            block_size=BLOCK_SIZE,
            block_bytes=1,
            prefixes=PrefixCache(PrefixTrie(allocator), b"", block_size=BLOCK_SIZE),
        )
        self.pipeline = Pipeline(
            RowTable(max_rows=ROWS, max_model_len=context, block_size=BLOCK_SIZE),
            self.blocks,
            self.waiting,
            token_budget=BUDGET,
            scheduling=scheduling,
            max_hold_s=max_hold_s,
            counters=self.counters,
            events=self.events,
            clock=self.clock,
        )
        self.pipeline.executor = SimulatedExecutor(costs, self.clock, seed)
        calibration = Calibration()
        while calibration.pending:
            self.pipeline.calibrate(calibration)

    def run(self, arrivals: Many[Arrival]) -> list[Sequence]:
        """Run a trace to its end; returns the sequences in order of arrival."""
        begin = self.clock.now
        played: list[Sequence] = []
        while len(played) < len(arrivals) or self.pipeline.has_work:
            if not self.pipeline.has_work:
                self.clock.now = max(self.clock.now, begin + arrivals[len(played)].at)
            while (
                len(played) < len(arrivals) and begin + arrivals[len(played)].at <= self.clock.now
            ):
                played.append(self._submit(len(played), arrivals[len(played)], begin))
            self.pipeline.step()
            for finished in self.pipeline.take_finished():
                finished.deliver(self.events)
            if self.pipeline.last_error is not None:
                raise AssertionError(self.pipeline.last_error[0])
        return played

    def submit(
        self,
        tokens: NDArray[np.int32],
        answer: int,
        *,
        number: int,
        queued_at: float | None = None,
        request: Request | None = None,
    ) -> Sequence:
        """Queue a request.

        Args:
            tokens: [n] int32, its prompt.
            answer: number of tokens to generate.
            number: of the request, ascending.
            queued_at: when it was sent; None for now.
            request: its other fields.
        """
        request = request or Request(())
        params = SamplingParams(max_tokens=answer, ignore_eos=True)
        queued_at = self.clock.now if queued_at is None else queued_at
        allowed = request.deadline_ms
        cached = 0
        if self.blocks.prefixes is not None:
            cached = len(self.blocks.prefixes.match(tokens, b"")) * BLOCK_SIZE
        record = request_record(
            arrival=number,
            queued_at=queued_at,
            priority=request.priority,
            deadline=np.inf if allowed is None else queued_at + allowed / 1000,
            may_be_held=request.may_be_held,
        )
        record["cached_tokens_hint"] = cached
        sequence = Sequence(
            request=replace(request, sampling=params),
            mailbox=Mailbox(num_logprobs=None, queued=queued_at),
            record=record,
            tokens=tokens,
            num_prompt=len(tokens),
            penalty_start=len(tokens),
            max_total=len(tokens) + answer,
            stop_ids=(),
            cache_salt=b"",
            sampling=SamplingValidator.pack(params, 0),
            bias_ids=np.zeros(0, np.int32),
            bias_values=np.zeros(0, np.float32),
        )
        self.waiting.put(sequence)
        return sequence

    def _submit(self, number: int, arrival: Arrival, begin: float) -> Sequence:
        return self.submit(
            arrival.tokens,
            arrival.answer,
            number=number,
            queued_at=begin + arrival.at,
            request=Request((), priority=arrival.priority, deadline_ms=arrival.deadline_ms),
        )


def work_of(arrivals: Many[Arrival], costs: StepCosts) -> float:
    """Seconds of compute that a trace needs; prefixes that occurred before cost nothing."""
    seen: set[int] = set()
    each = costs.decode_row + costs.constant / CONCURRENT_DECODES
    total = 0.0
    for arrival in arrivals:
        count, fresh = len(arrival.tokens), len(arrival.tokens)
        for end in range(BLOCK_SIZE, count + 1, BLOCK_SIZE):
            prefix = hash(arrival.tokens[:end].tobytes())
            fresh -= BLOCK_SIZE * (prefix in seen)
            seen.add(prefix)
        prefill = fresh * (costs.prefill_token + costs.kv_token * count / 2)
        total += prefill + arrival.answer * (each + costs.kv_token * count)
    return total


def make_trace(
    name: str, *, load: float, seconds: float, costs: StepCosts, seed: int
) -> list[Arrival]:
    """A trace whose work is `load` times the machine's capacity."""
    rate = 1.0
    for _ in range(4):  # the work of a short trace differs from its expected value
        arrivals = take(TRACES[name], seed=seed, rate=rate, seconds=seconds)
        rate *= load * seconds / work_of(arrivals, costs)
    return take(TRACES[name], seed=seed, rate=rate, seconds=seconds)


def simulate(
    arrivals: Many[Arrival], scheduling: Scheduling, costs: StepCosts = STORED, *, seed: int = 0
) -> Outcome:
    """Run a trace under one policy."""
    simulation = Simulation(scheduling, costs, seed=seed)
    begin = simulation.clock.now
    played = simulation.run(arrivals)
    kept = [sequence.mailbox.kept.timings for sequence in played]
    ttft = np.array([timings.ttft for timings in kept], np.float64)
    ended = np.array([timings.last_token for timings in kept], np.float64)
    queued = np.array([timings.queued for timings in kept], np.float64)
    allowed = np.array([(one.deadline_ms or np.inf) / 1000 for one in arrivals])
    further = np.array([PER_TOKEN_S * (one.answer - 1) for one in arrivals])
    named = np.isfinite(allowed)
    in_time = ttft <= allowed
    done = ended - queued <= allowed + further
    kinds = np.array([one.kind for one in arrivals])
    totals = simulation.counters.totals()
    return Outcome(
        policy=scheduling.policy,
        batch_former=scheduling.batch_former,
        requests=len(arrivals),
        ttft_met=float(in_time[named].mean()),
        done_met=float(done[named].mean()),
        ttft_met_by_kind={
            kind: float(in_time[named & (kinds == kind)].mean())
            for kind in sorted(set(kinds[named].tolist()))
        },
        ttft_p50=float(np.percentile(ttft, 50)),
        ttft_p95=float(np.percentile(ttft, 95)),
        longest_wait=float(ttft.max()),
        itl_p99=float(
            np.percentile(np.frombuffer(b"".join(simulation.counters.inter_token_latencies)), 99)
        ),
        preemptions=totals.preemptions,
        prefix_hits=totals.prefix_cache_hits / totals.prefix_cache_queries,
        seconds=simulation.clock.now - begin,
    )


def fit(model: Path) -> StepCosts:
    """Fit the step times of a model on this machine, with mixed traffic on the real engine."""
    from engine.api.config import EngineConfig
    from engine.runtime.engine import AsyncPravahaEngine

    config = EngineConfig(model=model, name="fit", prefix_caching=False)
    engine = AsyncPravahaEngine(config)
    rng = np.random.default_rng(0)
    engine.start()
    try:
        engine.wait_ready()
        vocabulary = engine.spec.vocab_size
        for streams in (1, 4, 16, 32):
            handles = [
                engine.submit(
                    Request(
                        tuple(rng.integers(0, vocabulary, int(rng.integers(16, 600))).tolist()),
                        SamplingParams(temperature=0, max_tokens=40, ignore_eos=True),
                    )
                )
                for _ in range(streams)
            ]
            for handle in handles:
                handle.wait_result(600)
        snapshot = engine.snapshot()
    finally:
        engine.shutdown()
    if snapshot.step_costs is None:
        raise AssertionError("the step-time model is not fitted")
    print(f"fitted: {snapshot.step_costs}, error {snapshot.step_error or 0:.0%}", file=sys.stderr)
    return snapshot.step_costs


def table(outcomes: Many[Outcome]) -> str:
    """The outcomes as Markdown."""
    lines = [
        "| policy | steps | TTFT in time | chat / document | done in time | TTFT p50 | p95 | longest "
        "| ITL p99 | preempted |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        kinds = " / ".join(f"{share:.0%}" for share in one.ttft_met_by_kind.values())
        lines.append(
            f"| {one.policy} | {one.batch_former} | **{one.ttft_met:.1%}** | {kinds} "
            f"| {one.done_met:.1%} | {one.ttft_p50:.2f} s | {one.ttft_p95:.1f} s "
            f"| {one.longest_wait:.0f} s | {one.itl_p99 * 1000:.0f} ms | {one.preemptions} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--trace", nargs="*", choices=TRACES, default=list(TRACES), help="arrival traces"
    )
    parser.add_argument(
        "--policy", nargs="*", choices=POLICIES, default=list(POLICIES), help="scheduling policies"
    )
    parser.add_argument("--load", type=float, default=1.3, help="offered work over capacity")
    parser.add_argument("--seconds", type=float, default=120.0, help="length of a trace")
    parser.add_argument("--target-ms", type=float, default=60.0, help="step target of `timed`")
    parser.add_argument("--seed", type=int, default=0, help="seed of the traces")
    parser.add_argument("--fit", type=Path, help="fit step times with this model")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    costs = fit(options.fit) if options.fit else STORED
    report = {}
    for name in options.trace:
        arrivals = make_trace(
            name, load=options.load, seconds=options.seconds, costs=costs, seed=options.seed
        )
        outcomes = [
            simulate(arrivals, Scheduling(policy, former, options.target_ms), costs)
            for former in BATCH_FORMERS
            for policy in options.policy
        ]
        report[name] = [asdict(one) for one in outcomes]
        if not options.json:
            print(f"\n{name}, {len(arrivals)} requests, load {options.load:g}\n")
            print(table(outcomes), flush=True)
    if options.json:
        print(
            json.dumps(
                with_origin({"costs": asdict(costs), "load": options.load, "traces": report}),
                indent=2,
            )
        )


if __name__ == "__main__":
    main()
