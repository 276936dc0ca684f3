"""Loads a model once with the native executor; prints its seconds as JSON.

    python -m benchmarks.drivers.pravaha_load --model FILE --threads N --prompt TOKENS --steps N
        [--cache DIR]

`opening`: headers and tokenizer; `weights`: mapping or packing them, and allocating the rest;
`first_token`: from then to the first sampled token of a prompt; `step`: the fastest decode step after it;
`saved`: from the loaded weights until they are on disk, if they are saved.
"""

import argparse
import json
import time
from pathlib import Path

from benchmarks.step_shapes import BLOCK_SIZE, MAX_LEN, Shape, plan_of
from engine.api.config import EngineConfig
from engine.executors.native import NativeExecutor
from engine.executors.native_settings import native_kv_dtype
from engine.executors.open_model import open_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    for name in ("--threads", "--prompt", "--steps"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--cache", type=Path, help="folder of packed weights; by default none")
    options = parser.parse_args()
    prefill = Shape("prefill", 1, options.prompt, 0)
    decode = Shape("decode", 1, 1, options.prompt)

    begin = time.perf_counter()
    model = open_model(options.model)
    opened = time.perf_counter()
    config = EngineConfig(
        model=options.model,
        name="loaded",
        kv_dtype=native_kv_dtype("auto", model.spec, model.weight_format),
        threads=options.threads,
        block_size=BLOCK_SIZE,
        weight_cache_bytes=1 << 40,
        weight_cache_dir=options.cache,
    )
    executor = NativeExecutor.load(
        model.spec,
        model.paths,
        config,
        num_blocks=64,
        max_model_len=MAX_LEN,
        progress=lambda share: None,
    )
    loaded = time.perf_counter()
    executor.execute(plan_of(prefill, model.spec.vocab_size))
    first = time.perf_counter()
    plan = plan_of(decode, model.spec.vocab_size)
    for _ in range(options.steps):
        start = time.perf_counter()
        executor.execute(plan)
        decode.seconds = min(decode.seconds, time.perf_counter() - start)
    state = executor._core.info["packed"]
    if executor._saver is not None:
        executor._saver.close(wait_s=300)
    saved = time.perf_counter()
    executor.close()
    print(
        json.dumps(
            {
                "packed": state,
                "weight_bytes": executor.info.weight_bytes,
                "dispatch": executor.info.dispatch,
                "opening": opened - begin,
                "weights": loaded - opened,
                "first_token": first - loaded,
                "step": decode.seconds,
                "saved": saved - loaded if state != "mapped" and executor._saver else 0.0,
            }
        )
    )


if __name__ == "__main__":
    main()
