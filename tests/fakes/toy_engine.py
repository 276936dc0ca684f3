"""An engine around the toy executor."""

from pathlib import Path

from engine.api.config import EngineConfig
from engine.api.request import Request, SamplingParams
from engine.runtime.engine import AsyncPravahaEngine
from tests.fakes.toy_executor import BLOCK_BYTES_PER_TOKEN, ToyExecutor, toy_model
from tests.fakes.toy_tokenizer import ToyTokenizer


def toy_config(*, blocks=64, block_size=4, **settings):
    return EngineConfig(
        model=Path("toy"),
        name="toy",
        block_size=block_size,
        kv_cache_bytes=blocks * block_size * BLOCK_BYTES_PER_TOKEN,
        **{"max_num_seqs": 8, "max_num_batched_tokens": 32} | settings,
    )


def toy_engine(config=None, *, allocator=None, executor=None, context=256, **options):
    """An engine that was not started, and the executor it will use.

    `allocator`: a naive one to use instead of the Rust core's pool; it has no prefix cache.
    """
    config = config or toy_config()
    if executor is None:
        blocks = config.kv_cache_bytes // (config.block_size * BLOCK_BYTES_PER_TOKEN)
        executor = ToyExecutor(blocks, config.block_size)

    def load(model, config, *, num_blocks, max_model_len, progress):
        assert executor.kv.shape == (num_blocks, config.block_size)
        progress(0.5)
        progress(1.0)
        return executor

    options = {
        "executor_factory": load,
        "model_opener": lambda config: toy_model(context),
        "probes": (),
    } | options
    if allocator is not None:
        options["pool_factory"] = lambda blocks, size: (allocator(blocks, size), None)
    return AsyncPravahaEngine(config, **options), executor


def ask(prompt="hello", **params):
    """A greedy request unless told otherwise."""
    ids = ToyTokenizer().encode(prompt) if isinstance(prompt, str) else prompt
    defaults = {"temperature": 0.0, "max_tokens": 16, "ignore_eos": True}
    return Request(tuple(ids), SamplingParams(**defaults | params))
