"""Step shapes that are run directly on the native executor: no scheduler, no detokenization."""

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engine.api.config import EngineConfig, WeightMode
from engine.executors.base import SAMPLING_DTYPE, StepPlan
from engine.executors.native import NativeExecutor
from engine.executors.native_settings import native_kv_dtype
from engine.executors.open_model import open_model
from engine.models.spec import ModelSpec

BLOCK_SIZE = 32
MAX_LEN = 8192
PROMPT = 64
PIECE = 512
"""Tokens of a step that writes the longest row's context."""
TURN_S = 0.2
"""Seconds that a shape runs before the next one."""


@dataclass(slots=True)
class Shape:
    """A step shape, and its fastest measurements.

    Attributes:
        name: as printed.
        rows: requests in the step.
        tokens: tokens computed per row.
        context: tokens in the KV cache per row before the step.
        shared: how many of these are in blocks shared by all rows.
        longest: tokens in the KV cache of the first row, if it has more than the others.
        seconds: minimum duration of the step.
        phases: minimum duration of each phase.
    """

    name: str
    rows: int
    tokens: int
    context: int
    shared: int = 0
    longest: int = 0
    seconds: float = float("inf")
    phases: dict[str, float] = field(default_factory=dict)

    @property
    def contexts(self) -> list[int]:
        """Tokens in the KV cache before the step, by row."""
        return [max(self.context, self.longest), *[self.context] * (self.rows - 1)]

    @property
    def own_blocks(self) -> list[int]:
        """Number of KV blocks that a row does not share, by row."""
        shared = self.shared // BLOCK_SIZE
        return [-(-(context + self.tokens) // BLOCK_SIZE) - shared for context in self.contexts]

    @property
    def blocks(self) -> int:
        """Number of KV blocks that the step needs."""
        return self.shared // BLOCK_SIZE + sum(self.own_blocks)


def shapes_of(args: argparse.Namespace) -> list[Shape]:
    """The shapes selected by the arguments of `add_shapes`."""
    shapes = [Shape(f"{n} rows", n, 1, args.context) for n in args.rows]
    for longest in args.longest:
        name = f"{longest} + {args.context} x"
        shapes += [Shape(f"{name} {n - 1}", n, 1, args.context, longest=longest) for n in args.rows]
    shapes += [Shape(f"prefill {n}", 1, n, 0) for n in args.prefill]
    return shapes + [Shape(f"{n} prompts", n, PROMPT, 0) for n in args.prompts]


def add_shapes(parser: argparse.ArgumentParser, rows: list[int]) -> None:
    """Add the arguments that select the step shapes."""
    parser.add_argument("--rows", type=int, nargs="*", default=rows, help="numbers of decode rows")
    parser.add_argument("--context", type=int, default=96, help="context length of decode rows")
    parser.add_argument(
        "--longest",
        type=int,
        nargs="*",
        default=[],
        help="context of one row among the decode rows",
    )
    parser.add_argument("--prefill", type=int, nargs="*", default=[512], help="prefill lengths")
    parser.add_argument(
        "--prompts", type=int, nargs="*", default=[], help=f"numbers of {PROMPT}-token prompts"
    )


def plan_of(shape: Shape, vocab: int, first: int | None = None) -> StepPlan:
    """A greedy step of `shape` with blocks numbered from 0, at position `first` (default: context)."""
    rows = shape.rows
    firsts = np.array(shape.contexts if first is None else [first] * rows, np.int32)
    ends = firsts + shape.tokens
    width = -(-MAX_LEN // BLOCK_SIZE)
    tables = np.full((rows, width), -1, np.int32)
    used = shared = shape.shared // BLOCK_SIZE
    for row, own in enumerate(shape.own_blocks):
        tables[row, :shared] = np.arange(shared)
        tables[row, shared : shared + own] = used + np.arange(own)
        used += own
    sampling = np.zeros(rows, SAMPLING_DTYPE)
    sampling["top_p"], sampling["repetition_penalty"], sampling["num_logprobs"] = 1.0, 1.0, -1
    ids = np.random.default_rng(0).integers(0, vocab, rows * shape.tokens, dtype=np.int32)
    none = np.zeros(0, np.int32)
    return StepPlan(
        rows=np.arange(rows, dtype=np.int32),
        query_start=np.arange(rows + 1, dtype=np.int32) * shape.tokens,
        token_ids=ids,
        positions=(firsts[:, None] + np.arange(shape.tokens, dtype=np.int32)).ravel(),
        needs_logits=np.ones(rows, np.uint8),
        block_tables=tables,
        token_table=np.zeros((rows, MAX_LEN), np.int32),
        num_tokens=ends,
        penalty_start=ends,
        sampling=sampling,
        bias_rows=none,
        bias_ids=none,
        bias_values=np.zeros(0, np.float32),
    )


def load_executor(
    path: Path,
    shapes: list[Shape],
    kv_dtype: str = "auto",
    threads: int | None = None,
    weights: WeightMode = "stored",
) -> tuple[NativeExecutor, ModelSpec]:
    """Load an executor for all shapes, write the contexts' KV, and turn phase timing on."""
    model = open_model(path)
    longest = max(shape.longest for shape in shapes)
    first_row = [Shape("", 1, PIECE, longest)] if longest else []
    all_shapes = [*shapes, *first_row]
    config = EngineConfig(
        model=path,
        name=path.stem,
        weights=weights,
        kv_dtype=native_kv_dtype(kv_dtype, model.spec, model.weight_format, weights),
        threads=threads,
        block_size=BLOCK_SIZE,
        max_num_seqs=max(shape.rows for shape in shapes),
        max_num_batched_tokens=max(shape.rows * shape.tokens for shape in all_shapes),
    )
    executor = NativeExecutor.load(
        model.spec,
        model.paths,
        config,
        num_blocks=max(shape.blocks for shape in all_shapes),
        max_model_len=MAX_LEN,
        progress=lambda share: None,
    )
    largest = max(shapes, key=lambda shape: shape.rows * shape.context)
    for first in range(0, largest.context, largest.tokens):
        # Memory that was never written maps to one zero page, which stays in the cache.
        executor.execute(plan_of(largest, model.spec.vocab_size, first))
    for shape in first_row:
        for first in range(0, longest, PIECE):
            executor.execute(plan_of(shape, model.spec.vocab_size, first))
    executor.time_phases(True)
    return executor, model.spec


def run_for(executor: NativeExecutor, shape: Shape, plan: StepPlan, seconds: float) -> None:
    """Run a shape repeatedly for `seconds`, and record its fastest step and phases."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        executor.take_phase_seconds()
        start = time.perf_counter()
        executor.execute(plan)
        elapsed = time.perf_counter() - start
        shape.seconds = min(shape.seconds, elapsed)
        for phase, taken in executor.take_phase_seconds().items():
            shape.phases[phase] = min(taken, shape.phases.get(phase, taken))
