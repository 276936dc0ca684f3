"""An engine with a real model, and prompts of prose."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.api.config import EngineConfig, KvDtype
from engine.executors.native_settings import native_kv_dtype
from engine.executors.open_model import open_model
from engine.runtime.engine import AsyncPravahaEngine

TIMEOUT_S = 300
"""Timeout of waits; only a failure reaches it."""

BLOCK = 32
TEXT = (
    "The river came down from the hills in the spring, brown and quick, and the people of the "
    "village counted the days until it would be clear again. "
)


@contextmanager
def running(
    model: Path, *, pool_tokens: int = 6000, kv_dtype: KvDtype = "auto", **settings: Any
) -> Iterator[AsyncPravahaEngine]:
    """A ready engine with a pool of `pool_tokens` tokens; shut down on exit."""
    config = EngineConfig(
        model=model,
        name=model.stem,
        block_size=BLOCK,
        kv_cache_bytes=-(-pool_tokens // BLOCK)
        * block_bytes(model, kv_dtype=kv_dtype, block_size=BLOCK),
        kv_dtype=kv_dtype,
        **settings,
    )
    engine = AsyncPravahaEngine(config)
    engine.start()
    try:
        engine.wait_ready(TIMEOUT_S)
        yield engine
    finally:
        engine.shutdown()


def block_bytes(model: Path, *, kv_dtype: KvDtype = "auto", block_size: int = BLOCK) -> int:
    """Bytes of a KV block of the model, padding included."""
    opened = open_model(model)
    resolved = native_kv_dtype(kv_dtype, opened.spec, opened.weight_format)
    config = EngineConfig(model, model.stem, block_size=block_size)
    return opened.plan_memory(config, kv_dtype=resolved, max_model_len=block_size).block_bytes


def prose(engine: AsyncPravahaEngine, length: int) -> tuple[int, ...]:
    """The first `length` tokens of a prose text."""
    ids = engine.tokenizer.encode(TEXT * (length // 20))
    assert len(ids) >= length
    return tuple(ids[:length])
