"""CPU overhead of a step outside the executor, measured with an executor that computes nothing.

    python benchmarks/scheduler_overhead.py [--steps N] [--rows 1 64] [--json]
    python benchmarks/scheduler_overhead.py --model MODEL [--rows 1 64]
    python benchmarks/scheduler_overhead.py --policies [--model MODEL]

Prints, per number of rows, the microseconds per step (median and 95th percentile) of steady decode:
scheduling, planning, applying results, indexing full blocks, counting and publishing the snapshot. It
must not grow with the number of rows, except for copying a few hundred bytes and indexing full blocks.
A real step leaves cold caches behind; to simulate that, the last case reads 128 MB between steps.

With `--model`, measures real steps: the time between two calls of the executor while the same requests
decode (minimum and median), and its fraction of the step period.

With `--policies`, measures every scheduling policy: *decode* as above; *queue*, the same with 1,000
requests waiting and no free row; and *turnover*, in which requests finish and others of the 1,000 are
admitted in alternating steps. With `--model`, real steps are measured for every policy, too.
"""

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Sequence as Many
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import with_origin
from engine.api.config import EngineConfig
from engine.api.events import EventBus
from engine.api.request import Request, SamplingParams
from engine.api.scheduling import POLICIES, Policy, Scheduling
from engine.batch.mailbox import Mailbox
from engine.batch.request_queue import RequestQueue
from engine.batch.request_record import request_record
from engine.batch.rows import RowTable
from engine.batch.sampling_validator import SamplingValidator
from engine.batch.sequence import Sequence
from engine.executors.base import Executor, ExecutorInfo, StepPlan, StepResult
from engine.memory.block_manager import BlockManager
from engine.memory.prefix_cache import PrefixCache
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.engine_thread import CurrentModel
from engine.runtime.loading import load_executor
from engine.step.pipeline import Pipeline

BLOCK_SIZE = 32
MAX_MODEL_LEN = 8192
PROMPT = 64
SWEEP_BYTES = 128 * 2**20
QUEUE_LENGTH = 1000


class NullExecutor:
    """An executor that computes nothing and samples token 1 for every row.

    Attributes:
        seconds: duration of the last call, which is not part of the overhead.
    """

    def __init__(self, sweep_bytes: int) -> None:
        self._sweep = np.zeros(sweep_bytes, np.uint8)
        self.seconds = 0.0
        self.info = ExecutorInfo("null", "none", 0, "none", 0, "f16", 0)
        self._results: dict[int, StepResult] = {}

    def execute(self, plan: StepPlan) -> StepResult:
        """Return a constant result."""
        begin = time.perf_counter()
        self._sweep.max(initial=0)
        count = len(plan.rows)
        if count not in self._results:
            result = self._results[count] = StepResult.empty(count)
            result.sampled[:] = 1
        self.seconds = time.perf_counter() - begin
        return self._results[count]

    def copy_blocks(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Nothing is stored."""

    def close(self) -> None:
        """Nothing to free."""


def steady_pipeline(
    rows: int,
    params: SamplingParams,
    executor: NullExecutor,
    policy: Policy = "fcfs",
    waiting: RequestQueue | None = None,
) -> tuple[AsyncPravahaEngine, Pipeline]:
    """A pipeline in which every row decodes, and an idle engine that publishes its snapshots."""
    from engine._core import BlockAllocator, PrefixTrie

    blocks = rows * (MAX_MODEL_LEN // BLOCK_SIZE)
    allocator = BlockAllocator(blocks, BLOCK_SIZE)
    engine = AsyncPravahaEngine(EngineConfig(model=Path("none"), name="none"))
    waiting = RequestQueue(rows) if waiting is None else waiting
    pipeline = Pipeline(
        RowTable(max_rows=rows, max_model_len=MAX_MODEL_LEN, block_size=BLOCK_SIZE),
        BlockManager(
            allocator,
            block_size=BLOCK_SIZE,
            block_bytes=1,
            prefixes=PrefixCache(PrefixTrie(allocator), b"", block_size=BLOCK_SIZE),
        ),
        waiting,
        token_budget=max(512, rows * 2 * PROMPT),
        scheduling=Scheduling(policy),
        counters=engine._thread.counters,
        events=EventBus(),
        clock=time.monotonic,
    )
    pipeline.executor = executor
    engine._thread.current = CurrentModel(None, None, pipeline)
    for number in range(rows):
        waiting.put(sequence(number, params))
    pipeline.step()
    assert pipeline.scheduler.num_running == rows
    return engine, pipeline


def sequence(number: int, params: SamplingParams, max_total: int = MAX_MODEL_LEN) -> Sequence:
    """A sequence with a distinct prompt; lengths differ, so that a row fills a block in every step."""
    length = PROMPT + number % BLOCK_SIZE
    number %= 20_000
    bias_ids, bias_values = SamplingValidator.pack_bias(params)
    return Sequence(
        request=Request(tuple(range(number, number + length)), params, priority=number % 3),
        mailbox=Mailbox(num_logprobs=params.logprobs, queued=time.monotonic()),
        record=request_record(
            arrival=number,
            queued_at=time.monotonic(),
            priority=number % 3,
            deadline=time.monotonic() + 1 + number % 7,
        ),
        tokens=np.arange(number, number + length, dtype=np.int32),
        num_prompt=length,
        penalty_start=length,
        max_total=max_total,
        stop_ids=(0,),
        cache_salt=b"",
        sampling=SamplingValidator.pack(params, 0),
        bias_ids=bias_ids,
        bias_values=bias_values,
    )


def measure(rows: int, steps: int, params: SamplingParams, sweep_bytes: int) -> dict[str, float]:
    """Microseconds per step of steady decode."""
    executor = NullExecutor(sweep_bytes)
    engine, pipeline = steady_pipeline(rows, params, executor)
    step_us, publish_us = [], []
    for _ in range(steps):
        begin = time.perf_counter()
        pipeline.step()
        middle = time.perf_counter()
        engine._thread.publish_and_wake(pipeline)
        end = time.perf_counter()
        step_us.append((middle - begin - executor.seconds) * 1e6)
        publish_us.append((end - middle) * 1e6)
    whole = [step + publish for step, publish in zip(step_us, publish_us, strict=True)]
    return {
        "rows": rows,
        "step_us": round(statistics.median(step_us), 1),
        "publish_us": round(statistics.median(publish_us), 1),
        "total_us": round(statistics.median(whole), 1),
        "total_us_p95": round(statistics.quantiles(whole, n=20)[-1], 1),
    }


def measure_policy(policy: Policy, rows: int, steps: int) -> dict[str, float | str]:
    """Median microseconds per step: decodes alone, with a long queue, and with turnover."""
    params = SamplingParams()
    found: dict[str, float | str] = {"policy": policy, "rows": rows}
    for case in ("decode", "queue", "turnover"):
        executor, waiting = NullExecutor(0), RequestQueue(10**6)
        engine, pipeline = steady_pipeline(rows, params, executor, policy, waiting)
        number = rows
        if case != "decode":
            for number in range(rows, rows + QUEUE_LENGTH):
                waiting.put(sequence(number, params, MAX_MODEL_LEN))
        times = []
        for step in range(steps):
            if case == "turnover":
                number += 1
                waiting.put(sequence(number, params))
                running = pipeline.scheduler.running
                if len(running) == rows:
                    pipeline.table.max_total[running[step % rows]] = 0  # finishes in this step
            begin = time.perf_counter()
            pipeline.step()
            engine._thread.publish_and_wake(pipeline)
            times.append((time.perf_counter() - begin - executor.seconds) * 1e6)
        found[case] = round(statistics.median(times), 1)
    return found


class TimedExecutor:
    """Wraps the real executor and records start, end and shape of every call."""

    def __init__(self, inner: Executor) -> None:
        self.info = inner.info
        self.close = inner.close
        self.copy_blocks = inner.copy_blocks
        self.calls: list[tuple[float, float, int, int]] = []  # begin, end, rows, tokens
        self._inner = inner

    def execute(self, plan: StepPlan) -> StepResult:
        """The inner executor's step."""
        begin = time.perf_counter()
        result = self._inner.execute(plan)
        end = time.perf_counter()
        self.calls.append((begin, end, len(plan.rows), len(plan.token_ids)))
        return result


def measure_share(model: Path, policy: Policy, rows: Many[int]) -> list[dict[str, float | str]]:
    """Median milliseconds of real decode steps, and the fraction spent outside the executor."""
    executors: list[TimedExecutor] = []

    def load(*arguments: object, **options: object) -> Executor:
        executors.append(TimedExecutor(load_executor(*arguments, **options)))  # type: ignore[arg-type]
        return executors[-1]

    config = EngineConfig(
        model=model,
        name="share",
        scheduling=Scheduling(policy),
        speculation=False,  # so that all steps have the same number of tokens
    )
    engine = AsyncPravahaEngine(config, executor_factory=load, probes=())
    engine.start()
    found: list[dict[str, float | str]] = []
    try:
        engine.wait_ready()
        first = SamplingParams(max_tokens=48, ignore_eos=True)  # fits the step-time model
        engine.submit(Request(tuple(range(PROMPT)), first)).wait_result(600)
        executors[0].calls.clear()
        for count in rows:
            params = SamplingParams(temperature=0, max_tokens=48, ignore_eos=True)
            handles = [
                engine.submit(Request(tuple(range(n, n + PROMPT)), params, deadline_ms=60_000))
                for n in range(count)
            ]
            for handle in handles:
                handle.wait_result(600)
            calls = executors[0].calls
            spans = [
                (after[0] - call[0], call[1] - call[0])
                for call, after in itertools.pairwise(calls)
                if call[2:] == after[2:] == (count, count)
            ]
            periods, inside = np.array(spans).T
            between = periods - inside
            found.append(
                {
                    "policy": policy,
                    "rows": count,
                    "step_ms": round(float(np.median(periods)) * 1e3, 2),
                    "python_us_least": round(float(between.min()) * 1e6),
                    "python_us": round(float(np.median(between)) * 1e6),
                    "share": round(float(np.median(between / periods)), 4),
                }
            )
            calls.clear()
    finally:
        engine.shutdown()
    return found


def report_policies(options: argparse.Namespace) -> None:
    """Print the overhead of every policy, and of real steps with `--model`."""
    policies: Many[Policy] = POLICIES if options.policies else ("fcfs",)
    simulated = [
        measure_policy(policy, rows, options.steps)
        for policy in policies
        if options.policies
        for rows in options.rows
    ]
    real = [
        line
        for policy in policies
        if options.model
        for line in measure_share(options.model, policy, options.rows)
    ]
    if options.json:
        print(json.dumps(with_origin({"simulated": simulated, "real": real}), indent=2))
        return
    for lines in (simulated, real):
        if lines:
            print("| " + " | ".join(lines[0]) + " |")
            print("|---" * len(lines[0]) + "|")
            for line in lines:
                print("| " + " | ".join(str(value) for value in line.values()) + " |")
            print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000, help="steps per measurement")
    parser.add_argument(
        "--rows", type=int, nargs="*", default=[1, 16, 64, 256], help="numbers of rows"
    )
    parser.add_argument("--policies", action="store_true", help="measure every policy instead")
    parser.add_argument("--model", type=Path, help="measure real steps")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    arguments = parser.parse_args()
    if arguments.policies or arguments.model:
        report_policies(arguments)
        return
    cases = {
        "plain": (SamplingParams(), arguments.steps, 0),
        "top 5 logprobs": (SamplingParams(logprobs=5), arguments.steps, 0),
        "plain, cold caches": (SamplingParams(), arguments.steps // 10, SWEEP_BYTES),
    }
    report = {
        name: [measure(rows, steps, params, sweep) for rows in arguments.rows]
        for name, (params, steps, sweep) in cases.items()
    }
    if arguments.json:
        print(json.dumps(with_origin(report), indent=2))
        return
    for name, lines in report.items():
        print(f"{name}: µs per step, median (95th percentile)")
        for line in lines:
            print(
                f"  {line['rows']:4} rows  {line['total_us']:7} ({line['total_us_p95']})"
                f"  = step {line['step_us']} + publish {line['publish_us']}"
            )


if __name__ == "__main__":
    main()
