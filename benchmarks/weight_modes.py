"""Load time and step times of a model with float weights in each `--weights` mode.

    python benchmarks/weight_modes.py --model FILE [--modes stored,q8,q4] [--seconds 4] [--json FILE]

Reported for each mode: seconds of the load (headers excluded; the file's pages are read once before), MB of
packed weights, and tokens per second of steps of one row, of four rows and of a prefill of 512 tokens, each
the fastest step within the seconds given.
"""

import argparse
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import say, write_result
from benchmarks.step_shapes import BLOCK_SIZE, MAX_LEN, Shape, plan_of, run_for
from engine.api.config import EngineConfig, WeightMode
from engine.executors.native import NativeExecutor
from engine.executors.native_settings import native_kv_dtype
from engine.executors.open_model import OpenModel, open_model
from engine.models.spec import ModelSpec

PREFILL = 512


@dataclass(frozen=True, slots=True)
class Row:
    """The results of a mode."""

    weights: str
    weight_format: str
    megabytes: float
    load_seconds: float
    tokens_per_second: dict[str, float]


def measure(model: OpenModel, spec: ModelSpec, mode: WeightMode, seconds: float) -> Row:
    """Load the model in a mode and time its steps."""
    shapes = [Shape("1 row", 1, 1, 64), Shape("4 rows", 4, 1, 64), Shape("prefill", 1, PREFILL, 0)]
    config = EngineConfig(
        model=model.paths[0],
        name=model.name,
        weights=mode,
        kv_dtype=native_kv_dtype("auto", spec, model.weight_format, mode),
        block_size=BLOCK_SIZE,
        max_num_seqs=4,
        max_num_batched_tokens=PREFILL,
    )
    begin = time.perf_counter()
    executor = NativeExecutor.load(
        spec,
        model.paths,
        config,
        num_blocks=max(shape.blocks for shape in shapes),
        max_model_len=MAX_LEN,
        progress=lambda share: None,
    )
    load_seconds = time.perf_counter() - begin
    executor.time_phases(True)
    for shape in shapes:
        run_for(executor, shape, plan_of(shape, spec.vocab_size), seconds)
    info = executor.info
    executor.close()
    return Row(
        weights=mode,
        weight_format=info.weight_format,
        megabytes=info.weight_bytes / 1e6,
        load_seconds=load_seconds,
        tokens_per_second={s.name: s.rows * s.tokens / s.seconds for s in shapes},
    )


def main() -> None:
    modes: tuple[WeightMode, ...] = get_args(WeightMode)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="a GGUF file or a directory")
    parser.add_argument("--modes", default=",".join(modes), help="modes, separated by commas")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each kind of step")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result to FILE")
    options = parser.parse_args()
    model = open_model(options.model)
    if not isinstance(model.spec, ModelSpec):
        parser.error("the model runs with torch, which has no weight modes")
    for path in model.paths:
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass
    rows = []
    for mode in modes:
        if mode in options.modes.split(","):
            row = measure(model, model.spec, mode, options.seconds)
            speeds = ", ".join(f"{n} {v:,.1f} tok/s" for n, v in row.tokens_per_second.items())
            say(
                f"{mode}: {row.megabytes:,.0f} MB in {row.weight_format}, "
                f"{row.load_seconds:.2f} s; {speeds}"
            )
            rows.append(row)
            if options.json:
                write_result(options.json, {"modes": [asdict(row) for row in rows]})


if __name__ == "__main__":
    main()
