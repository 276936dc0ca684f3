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
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.step_shapes import (
    TURN_S,
    Shape,
    add_shapes,
    load_executor,
    plan_of,
    run_for,
    shapes_of,
)
from engine import _core
from engine.executors.native import NativeExecutor
from engine.memory.kv_cache_config import block_bytes
from engine.models.spec import ModelSpec


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
