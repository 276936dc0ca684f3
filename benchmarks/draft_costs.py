"""What drafting with a small model costs and brings for one stream of a larger one, from step times.

    python benchmarks/draft_costs.py TARGET DRAFT [--context 256] [--rounds 20] [--json FILE]

Both models are loaded by the native executor in one process. Each round runs one plain step of the target,
and for every draft length k the k steps of the draft model and then the target's step that verifies them, as
speculation would: the draft model's weights have left the caches by then. Medians over rounds are reported.

From these times follows the speedup for an acceptance rate a, the probability that a draft token is
accepted if all before it were: a step yields 1 + a + ... + a^k tokens. Nothing is assumed to cost time
besides the steps. The weights may be random and the vocabularies may differ: only times are measured.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.machine import write_result
from benchmarks.step_shapes import Shape, load_executor, plan_of
from engine.executors.base import StepPlan
from engine.executors.native import NativeExecutor

LENGTHS = (1, 2, 3, 4, 5, 6, 8)
"""Draft lengths."""
RATES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Acceptance rates of the printed table."""
WANTED = 1.2


def speedup(rate: float, plain: float, drafting: float, verifying: float, length: int) -> float:
    """Tokens per second with drafts of `length` over those without.

    Args:
        rate: probability that a draft token is accepted if all before it were.
        plain: time of a step without drafts.
        drafting: time in which the draft model proposes `length` tokens.
        verifying: time of the step that verifies them.
        length: number of draft tokens.
    """
    tokens = sum(rate**at for at in range(length + 1))
    return tokens * plain / (drafting + verifying)


def rate_for(wanted: float, gain: Callable[[float], float]) -> float | None:
    """The lowest acceptance rate, to 0.001, at which `gain` reaches `wanted`; None if none does."""
    rates = (thousandths / 1000 for thousandths in range(1001))
    return next((rate for rate in rates if gain(rate) >= wanted), None)


def _verifying(plan: StepPlan, length: int) -> StepPlan:
    """A plan of one row whose last `length` tokens are draft tokens."""
    return replace(
        plan,
        num_tokens=plan.num_tokens - length,
        penalty_start=plan.penalty_start - length,
        num_draft_tokens=np.array([length], np.int32),
    )


def _seconds(executor: NativeExecutor, plan: StepPlan, times: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(times):
        executor.execute(plan)
    return time.perf_counter() - start


def measure(
    target: Path, draft: Path, context: int, rounds: int
) -> tuple[float, dict[int, tuple[float, float]]]:
    """Seconds of the target's plain step; draft length → seconds of drafting and of verifying."""
    shapes = {length: Shape(f"{length}", 1, 1 + length, context) for length in (0, *LENGTHS)}
    large, spec = load_executor(target, list(shapes.values()))
    small, small_spec = load_executor(draft, [shapes[0]])
    large.time_phases(False)
    small.time_phases(False)
    drafting = plan_of(shapes[0], small_spec.vocab_size)
    verifying = {
        length: _verifying(plan_of(shapes[length], spec.vocab_size), length) for length in LENGTHS
    }
    plain = plan_of(shapes[0], spec.vocab_size)
    alone: list[float] = []
    both: dict[int, list[tuple[float, float]]] = {length: [] for length in LENGTHS}
    for _ in range(rounds):
        alone.append(_seconds(large, plain))
        for length in LENGTHS:
            first = _seconds(small, drafting, length)
            both[length].append((first, _seconds(large, verifying[length])))
    large.close()
    small.close()
    medians = {
        length: (median(one for one, _ in pairs), median(two for _, two in pairs))
        for length, pairs in both.items()
    }
    return median(alone), medians


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", type=Path, help="GGUF file of the larger model")
    parser.add_argument("draft", type=Path, help="GGUF file of the draft model")
    parser.add_argument("--context", type=int, default=256, help="tokens in the KV cache")
    parser.add_argument("--rounds", type=int, default=20, help="number of rounds")
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    options = parser.parse_args(arguments)
    plain, times = measure(options.target, options.draft, options.context, options.rounds)
    print(f"plain step {1000 * plain:.1f} ms")
    print(
        "  k  drafting  a token  verifying  rate for ×1.2   " + "  ".join(f"a={r}" for r in RATES)
    )
    rows: list[dict[str, object]] = []
    for length, (drafting, verifying) in times.items():

        def gain(rate: float, k: int = length, d: float = drafting, v: float = verifying) -> float:
            return speedup(rate, plain, d, v, k)

        needed = rate_for(WANTED, gain)
        print(
            f"{length:3} {1000 * drafting:6.1f} ms {1000 * drafting / length:5.1f} ms "
            f"{1000 * verifying:7.1f} ms {'never' if needed is None else f'{needed:.2f}':>14}   "
            + "  ".join(f"{gain(rate):5.2f}" for rate in RATES),
            flush=True,
        )
        rows.append(
            {"length": length, "drafting": drafting, "verifying": verifying, "rate": needed}
        )
    if options.json:
        write_result(options.json, {"plain": plain, "context": options.context, "lengths": rows})


if __name__ == "__main__":
    main()
