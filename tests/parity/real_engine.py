"""An engine with the demo model, and prompts of prose."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.api.config import EngineConfig, KvDtype
from engine.runtime.engine import AsyncPravahaEngine

TIMEOUT_S = 300
"""Timeout of waits; only a failure reaches it."""

BLOCK = 32
VECTORS = 30 * 2 * 3
"""KV vectors per token of the demo model: layers × (key and value) × KV heads."""
VECTOR_BYTES: dict[KvDtype, int] = {"auto": 64 + 4, "int8": 64 + 4, "f16": 64 * 2, "f32": 64 * 4}
"""Bytes of a vector of 64 elements; int8 vectors have a scale."""

TEXT = (
    "The river came down from the hills in the spring, brown and quick, and the people of the "
    "village counted the days until it would be clear again. "
)


@contextmanager
def running(
    demo_model: Path, *, pool_tokens: int = 6000, kv_dtype: KvDtype = "auto", **settings: Any
) -> Iterator[AsyncPravahaEngine]:
    """A ready engine with a pool of `pool_tokens` tokens; shut down on exit."""
    block_bytes = BLOCK * VECTORS * VECTOR_BYTES[kv_dtype]
    config = EngineConfig(
        model=demo_model,
        name="demo",
        block_size=BLOCK,
        kv_cache_bytes=-(-pool_tokens // BLOCK) * block_bytes,
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


def prose(engine: AsyncPravahaEngine, length: int) -> tuple[int, ...]:
    """The first `length` tokens of a prose text."""
    ids = engine.tokenizer.encode(TEXT * (length // 20))
    assert len(ids) >= length
    return tuple(ids[:length])
