"""Driver of Pravāha, through the public engine: queue, scheduler, sampling and detokenization."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

from orders import Order, arguments, serve

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.api.config import EngineConfig
from engine.api.request import Request, SamplingParams
from engine.benchmark.step_work import ModelWork
from engine.runtime.engine import AsyncPravahaEngine

os.environ.pop("PRAVAHA_DISPATCH", None)
options = arguments()
engine = AsyncPravahaEngine(
    EngineConfig(
        model=options.model,
        name=options.model.stem,
        max_model_len=options.max_tokens,
        kv_dtype=options.kv_dtype,
        threads=options.threads,
        prefix_caching=options.prefix_caching,
        speculation=options.speculation,
        swap_bytes=0,
        weight_cache_dir=options.weight_cache,
        weight_cache_bytes=1 << 40,
    ),
    probes=(),  # no calibration steps while the engine is idle
)
engine.start()
engine.wait_ready(timeout=None)


def run(order: Order) -> None:
    sampling = SamplingParams(temperature=0.0, max_tokens=order.new_tokens, ignore_eos=True)
    prompts = order.prompts or [engine.tokenizer.encode(order.text, special=True)]
    handles = [engine.submit(Request(tuple(prompt), sampling)) for prompt in prompts]
    for handle in handles:
        output = handle.wait_result(3600.0)
        if len(output.token_ids) != order.new_tokens:
            raise RuntimeError(f"got {len(output.token_ids)} of {order.new_tokens} tokens")


info = engine.model_info
work = ModelWork.of(engine)
serve(
    {
        "engine": "pravaha",
        "version": version("pravaha"),
        "weights": info.weight_format,
        "kv_dtype": info.kv_dtype,
        "dispatch": info.dispatch,
        "threads": info.threads,
        "work": work.to_dict(),
    },
    run,
)
engine.shutdown()
