"""Load time of a model: reading headers and tokenizer, then packing the weights for the kernels.

    python benchmarks/load_time.py --model FILE [--runs 5] [--threads N]

The file is in the page cache after the first run. Prints the minimum of wall-clock time, user and system
CPU time (all threads); CPU time is more reliable than wall-clock time while other programs run.
"""

import argparse
import resource
import time
from pathlib import Path

from engine.api.config import EngineConfig
from engine.executors.native import NativeExecutor
from engine.executors.open_model import open_model


def clocks() -> tuple[float, float, float]:
    """Wall-clock, user CPU and system CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), used.ru_utime, used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="GGUF file or model directory")
    parser.add_argument("--runs", type=int, default=5, help="number of loads")
    parser.add_argument("--threads", type=int, help="compute threads")
    options = parser.parse_args()
    opening, packing = [], []
    for _ in range(options.runs):
        begin = clocks()
        model = open_model(options.model)
        opened = clocks()
        executor = NativeExecutor.load(
            model.spec,
            model.paths,
            EngineConfig(
                model=options.model, name="loaded", kv_dtype="f16", threads=options.threads
            ),
            num_blocks=64,
            max_model_len=1024,
            progress=lambda share: None,
        )
        packed = clocks()
        opening.append([b - a for a, b in zip(begin, opened, strict=True)])
        packing.append([b - a for a, b in zip(opened, packed, strict=True)])
        nbytes, threads = executor.info.weight_bytes, executor.info.threads
        executor.close()
    print(f"{nbytes / 1e6:,.0f} MB packed by {threads} threads; fastest of {options.runs}, seconds")
    for name, runs in (("headers and tokenizer", opening), ("weights", packing)):
        wall, user, system = (min(column) for column in zip(*runs, strict=True))
        print(f"{name:22} {wall:.3f} wall-clock, {user:.3f} user, {system:.3f} system")


if __name__ == "__main__":
    main()
