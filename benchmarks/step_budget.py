"""Where a step's time goes on the native path: every phase, measured and predicted.

    python benchmarks/step_budget.py --model FILE [--rows 1 4 16 64] [--context 96] [--prefill 512]
        [--prompts 8] [--kv-dtype f16] [--threads N] [--seconds 2] [--json]

Decode steps of some rows that hold `context` tokens each, one prefill chunk, and some prompts of 64 tokens
together, straight through the executor: no scheduler, no text. Each shape runs again and again for `seconds`,
the shapes in turn, and the fastest step counts, and the fastest of each phase, because interference only ever
slows one down. (On a busy machine a whole step is never left alone: `sum` is then nearer the truth than
`step`.)
Weights are real, token ids random. *Predicted* is what the ceilings measured just before would allow:
the larger of a phase's bytes over the read bandwidth and its multiply-adds over the peak of its
instruction.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from engine import _core
from engine.config import EngineConfig
from engine.executors.base import SAMPLING_DTYPE, StepPlan
from engine.executors.native import NativeExecutor
from engine.executors.native_settings import native_kv_dtype
from engine.memory.kv_cache import block_bytes
from engine.models.loader import open_model
from engine.models.spec import ModelSpec

BLOCK_SIZE = 32
MAX_LEN = 8192
PROMPT = 64
TURN_S = 0.2
"""A shape runs so long before it is the next one's turn."""


@dataclass(slots=True)
class Shape:
    """One kind of step, and the fastest seen of it.

    Attributes:
        rows: requests in the step.
        tokens: tokens of each.
        context: tokens that each holds before the step.
        shared: how many of these stand in blocks that all rows share.
        seconds: the fastest step.
        phases: the fastest seen of each phase.
    """

    name: str
    rows: int
    tokens: int
    context: int
    shared: int = 0
    seconds: float = float("inf")
    phases: dict[str, float] = field(default_factory=dict)

    @property
    def blocks(self) -> int:
        """Blocks it needs."""
        shared = self.shared // BLOCK_SIZE
        return shared + self.rows * (-(-(self.context + self.tokens) // BLOCK_SIZE) - shared)


def shapes_of(args: argparse.Namespace) -> list[Shape]:
    """What `add_shapes` was told."""
    shapes = [Shape(f"{n} rows", n, 1, args.context) for n in args.rows]
    shapes += [Shape(f"prefill {n}", 1, n, 0) for n in args.prefill]
    return shapes + [Shape(f"{n} prompts", n, PROMPT, 0) for n in args.prompts]


def add_shapes(parser: argparse.ArgumentParser, rows: list[int]) -> None:
    """Arguments that say which steps are measured."""
    parser.add_argument("--rows", type=int, nargs="*", default=rows, help="rows that decode")
    parser.add_argument("--context", type=int, default=96, help="tokens that each of them holds")
    parser.add_argument("--prefill", type=int, nargs="*", default=[512], help="tokens of a prompt")
    parser.add_argument(
        "--prompts", type=int, nargs="*", default=[], help=f"prompts of {PROMPT} tokens each"
    )


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What this machine allows at most.

    Attributes:
        read: bytes per second at the weights' footprint.
        int8: operations of the integer dot product per second.
    """

    read: float
    int8: float

    @property
    def f32(self) -> float:
        """Float multiply-adds: a quarter of the integer ones, as the lanes are four times as wide."""
        return self.int8 / 4


def plan_of(shape: Shape, vocab: int, first: int | None = None) -> StepPlan:
    """A greedy step of `shape` over blocks numbered from 0, behind its context or from `first` on."""
    rows, end = shape.rows, shape.context + shape.tokens
    first = shape.context if first is None else first
    width = -(-MAX_LEN // BLOCK_SIZE)
    tables = np.full((rows, width), -1, np.int32)
    shared, own = shape.shared // BLOCK_SIZE, -(-end // BLOCK_SIZE) - shape.shared // BLOCK_SIZE
    for row in range(rows):
        tables[row, :shared] = np.arange(shared)
        tables[row, shared : shared + own] = shared + row * own + np.arange(own)
    sampling = np.zeros(rows, SAMPLING_DTYPE)
    sampling["top_p"], sampling["repetition_penalty"], sampling["num_logprobs"] = 1.0, 1.0, -1
    ids = np.random.default_rng(0).integers(0, vocab, rows * shape.tokens, dtype=np.int32)
    none = np.zeros(0, np.int32)
    return StepPlan(
        rows=np.arange(rows, dtype=np.int32),
        query_start=np.arange(rows + 1, dtype=np.int32) * shape.tokens,
        token_ids=ids,
        positions=np.tile(np.arange(first, first + shape.tokens, dtype=np.int32), rows),
        needs_logits=np.ones(rows, np.uint8),
        block_tables=tables,
        token_table=np.zeros((rows, MAX_LEN), np.int32),
        num_tokens=np.full(rows, first + shape.tokens, np.int32),
        num_prompt_tokens=np.full(rows, first + shape.tokens, np.int32),
        sampling=sampling,
        bias_rows=none,
        bias_ids=none,
        bias_values=np.zeros(0, np.float32),
    )


def load_executor(
    path: Path, shapes: list[Shape], kv_dtype: str = "auto", threads: int | None = None
) -> tuple[NativeExecutor, ModelSpec]:
    """An executor with room for every shape; contexts are written, and its clocks run."""
    model = open_model(path)
    config = EngineConfig(
        model=path,
        name=path.stem,
        kv_dtype=native_kv_dtype(kv_dtype, model.spec, model.weight_format),
        threads=threads,
        block_size=BLOCK_SIZE,
        max_num_seqs=max(shape.rows for shape in shapes),
        max_num_batched_tokens=max(shape.rows * shape.tokens for shape in shapes),
    )
    executor = NativeExecutor.load(
        model.spec,
        model.paths,
        config,
        num_blocks=max(shape.blocks for shape in shapes),
        max_model_len=MAX_LEN,
        progress=lambda share: None,
    )
    largest = max(shapes, key=lambda shape: shape.rows * shape.context)
    for first in range(0, largest.context, largest.tokens):
        # What was never written is one page of zeros, which a core's own cache holds.
        executor.execute(plan_of(largest, model.spec.vocab_size, first))
    executor.time_phases(True)
    return executor, model.spec


def run_for(executor: NativeExecutor, shape: Shape, plan: StepPlan, seconds: float) -> None:
    """Run a shape again and again, and note its fastest step and phases."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        executor.take_phase_seconds()
        start = time.perf_counter()
        executor.execute(plan)
        elapsed = time.perf_counter() - start
        shape.seconds = min(shape.seconds, elapsed)
        for phase, taken in executor.take_phase_seconds().items():
            shape.phases[phase] = min(taken, shape.phases.get(phase, taken))


def measure(executor: NativeExecutor, shapes: list[Shape], vocab: int, seconds: float) -> None:
    """Fill in the fastest step and phases of every shape."""
    plans = [plan_of(shape, vocab) for shape in shapes]
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds * len(shapes):
        for shape, plan in zip(shapes, plans, strict=True):
            run_for(executor, shape, plan, TURN_S)


def predict(
    shape: Shape, spec: ModelSpec, ceilings: Ceilings, weight_bytes: int, kv_bytes: float
) -> dict[str, float]:
    """Seconds of the phases that have a ceiling; `kv_bytes` is what a token's keys and values take."""
    hidden, width = spec.hidden_size, spec.intermediate_size
    heads, kv_heads = spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim
    layers, tokens = spec.num_layers, shape.rows * shape.tokens
    weights = {
        "qkv": layers * hidden * (heads + 2 * kv_heads),
        "output": layers * hidden * heads,
        "gate_up": layers * 2 * hidden * width,
        "down": layers * hidden * width,
        "lm_head": spec.vocab_size * hidden,
    }
    bytes_each = weight_bytes / sum(weights.values())
    seconds = {
        name: max(
            count * bytes_each / ceilings.read,
            2 * count * (shape.rows if name == "lm_head" else tokens) / ceilings.int8,
        )
        for name, count in weights.items()
    }
    seen = shape.context + (shape.tokens + 1) / 2
    private = shape.rows * (shape.context + shape.tokens - shape.shared) + shape.shared
    products = 4 * layers * tokens * seen * heads
    is_int8 = kv_bytes < 2 * spec.kv_elements_per_token
    seconds["attention"] = max(
        private * kv_bytes / ceilings.read,
        # Codes meet numbers of two bytes: see the kernel.
        2 * products / ceilings.int8 if is_int8 else products / ceilings.f32,
    )
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    add_shapes(parser, [1, 4, 16, 64])
    parser.add_argument("--shared", type=int, default=0, help="also with so much context shared")
    parser.add_argument("--kv-dtype", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    shapes = shapes_of(args)
    if args.shared:
        shapes += [Shape(f"{n} shared", n, 1, args.context, args.shared) for n in args.rows]
    executor, spec = load_executor(args.model, shapes, args.kv_dtype, args.threads)
    ceilings = Ceilings(
        _core.measure_read_bandwidth(executor.info.weight_bytes, args.threads, 0.5),
        _core.measure_int8_dot(args.threads, 0.5),
    )
    measure(executor, shapes, spec.vocab_size, args.seconds)
    if args.json:
        print(json.dumps({"ceilings": asdict(ceilings), "shapes": [asdict(s) for s in shapes]}))
        return
    print(
        f"{executor.info.dispatch}, {executor.info.threads} threads, KV {executor.info.kv_dtype}; "
        f"read {ceilings.read / 1e9:.0f} GB/s, int8 {ceilings.int8 / 1e12:.2f} TOPS"
    )
    print("ms (predicted)".ljust(16) + "".join(shape.name.rjust(18) for shape in shapes))
    print("step".ljust(16) + "".join(f"{1e3 * shape.seconds:.2f}".rjust(18) for shape in shapes))
    sums = (f"{1e3 * sum(shape.phases.values()):.2f}" for shape in shapes)
    print("sum".ljust(16) + "".join(text.rjust(18) for text in sums))
    kv_bytes = block_bytes(spec, block_size=1, kv_dtype=executor.info.kv_dtype)
    predicted = [
        predict(shape, spec, ceilings, executor.info.weight_bytes, kv_bytes) for shape in shapes
    ]
    for phase in shapes[0].phases:
        cells = [
            f"{1e3 * shape.phases[phase]:.2f}"
            + (f" ({1e3 * expected[phase]:.2f})" if phase in expected else "")
            for shape, expected in zip(shapes, predicted, strict=True)
        ]
        print(phase.ljust(16) + "".join(cell.rjust(18) for cell in cells))


if __name__ == "__main__":
    main()
