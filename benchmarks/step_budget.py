"""Duration of every phase of a step in the native executor, measured and predicted by the roofline.

    python benchmarks/step_budget.py --model FILE [--rows 1 4 16 64] [--context 96] [--prefill 512]
        [--prompts 8] [--kv-dtype f16] [--weights q4] [--threads N] [--seconds 2] [--json]

Runs decode steps with `context` tokens per row, prefill chunks, and several prompts of 64 tokens, directly
on the executor: no scheduler, no detokenization. Each shape runs repeatedly for `seconds`, the shapes
alternate, and the minimum of the step and of each phase is reported, since interference can only slow a run
down. On a busy machine no whole step is undisturbed; then `sum` is more accurate than `step`.

Weights are real, token ids random. *Predicted* is the larger of a phase's bytes over the read bandwidth
and its operations over the peak of its instruction, with ceilings measured at the start.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from benchmarks.machine import with_origin
from benchmarks.step_shapes import (
    BLOCK_SIZE,
    TURN_S,
    Shape,
    add_shapes,
    load_executor,
    plan_of,
    run_for,
    shapes_of,
)
from engine import _core
from engine.api.config import WeightMode
from engine.executors.native import NativeExecutor
from engine.models.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Measured ceilings of the machine.

    Attributes:
        read: bytes per second at the footprint of the weights.
        int8: operations per second of the integer dot product.
    """

    read: float
    int8: float

    @property
    def f32(self) -> float:
        """Operations per second in f32: a quarter of int8, as the lanes are four times as wide."""
        return self.int8 / 4


def measure(executor: NativeExecutor, shapes: list[Shape], vocab: int, seconds: float) -> None:
    """Measure the fastest step and phases of every shape."""
    plans = [plan_of(shape, vocab) for shape in shapes]
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds * len(shapes):
        for shape, plan in zip(shapes, plans, strict=True):
            run_for(executor, shape, plan, TURN_S)


def predict(
    shape: Shape, spec: ModelSpec, ceilings: Ceilings, executor: NativeExecutor
) -> dict[str, float]:
    """Predicted seconds of the phases that have a ceiling."""
    kv_bytes = executor.block_bytes / BLOCK_SIZE
    hidden, tokens = spec.hidden_size, shape.rows * shape.tokens
    width = sum(layer.ffn.intermediate_size for layer in spec.layers if layer.ffn is not None)
    gates = sum(
        layer.ffn.intermediate_size
        for layer in spec.layers
        if layer.ffn is not None and "gate" in layer.tensors
    )
    heads = sum(each.num_heads * each.head_dim for each in spec.attentions)
    own = [each for each in spec.attentions if each.kv_layer is None]
    weights = {
        "qkv": hidden * (heads + sum(2 * each.num_kv_heads * each.head_dim for each in own)),
        "output": hidden * heads,
        "gate_up": hidden * (gates + width),
        "down": hidden * width,
        "lm_head": spec.vocab_size * hidden,
    }
    bytes_each = executor.info.weight_bytes / sum(weights.values())
    seconds = {
        name: max(
            count * bytes_each / ceilings.read,
            2 * count * (shape.rows if name == "lm_head" else tokens) / ceilings.int8,
        )
        for name, count in weights.items()
    }
    seen = sum(shape.contexts) / shape.rows + (shape.tokens + 1) / 2
    private = sum(shape.contexts) + shape.rows * (shape.tokens - shape.shared) + shape.shared
    products = (
        4
        * tokens
        * sum(
            min(seen, each.window or seen) * each.num_heads * each.head_dim
            for each in spec.attentions
        )
    )
    is_int8 = executor.info.kv_dtype == "int8"
    seconds["attention"] = max(
        private * kv_bytes / ceilings.read,
        # int8 codes are multiplied by 16-bit values, which halves the peak; see the kernel.
        2 * products / ceilings.int8 if is_int8 else products / ceilings.f32,
    )
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="GGUF file or model directory")
    add_shapes(parser, [1, 4, 16, 64])
    parser.add_argument("--shared", type=int, default=0, help="also with this much shared context")
    parser.add_argument("--kv-dtype", default="auto", help="KV cache type")
    parser.add_argument(
        "--weights", choices=get_args(WeightMode), default="stored", help="weight mode"
    )
    parser.add_argument("--threads", type=int, help="compute threads")
    parser.add_argument("--seconds", type=float, default=2.0, help="duration per shape")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    args = parser.parse_args()

    shapes = shapes_of(args)
    if args.shared:
        shapes += [Shape(f"{n} shared", n, 1, args.context, args.shared) for n in args.rows]
    executor, spec = load_executor(args.model, shapes, args.kv_dtype, args.threads, args.weights)
    ceilings = Ceilings(
        _core.measure_read_bandwidth(executor.info.weight_bytes, args.threads, 0.5),
        _core.measure_int8_dot(args.threads, 0.5),
    )
    measure(executor, shapes, spec.vocab_size, args.seconds)
    if args.json:
        found = {"ceilings": asdict(ceilings), "shapes": [asdict(s) for s in shapes]}
        print(json.dumps(with_origin(found)))
        return
    print(
        f"{executor.info.dispatch}, {executor.info.threads} threads, KV {executor.info.kv_dtype}; "
        f"read {ceilings.read / 1e9:.0f} GB/s, int8 {ceilings.int8 / 1e12:.2f} TOPS"
    )
    print("ms (predicted)".ljust(16) + "".join(shape.name.rjust(18) for shape in shapes))
    print("step".ljust(16) + "".join(f"{1e3 * shape.seconds:.2f}".rjust(18) for shape in shapes))
    sums = (f"{1e3 * sum(shape.phases.values()):.2f}" for shape in shapes)
    print("sum".ljust(16) + "".join(text.rjust(18) for text in sums))
    predicted = [predict(shape, spec, ceilings, executor) for shape in shapes]
    for phase in shapes[0].phases:
        cells = [
            f"{1e3 * shape.phases[phase]:.2f}"
            + (f" ({1e3 * expected[phase]:.2f})" if phase in expected else "")
            for shape, expected in zip(shapes, predicted, strict=True)
        ]
        print(phase.ljust(16) + "".join(cell.rjust(18) for cell in cells))


if __name__ == "__main__":
    main()
