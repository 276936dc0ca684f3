"""An engine with the demo model, and text for prompts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.api.config import EngineConfig, KvDtype
from engine.runtime.engine import AsyncPravahaEngine

PATIENCE_S = 300
"""Timeout of every wait, far above any expected duration."""

BLOCK = 32
VECTORS = 30 * 2 * 3
"""Of a token of the demo model: layers, keys and values, heads."""
VECTOR_BYTES: dict[KvDtype, int] = {"auto": 64 + 4, "int8": 64 + 4, "f16": 64 * 2, "f32": 64 * 4}
"""64 dimensions; int8 has a scale."""

TEXT = (
    "The river came down from the hills in the spring, brown and quick, and the people of the "
    "village counted the days until it would be clear again. "
)


@contextmanager
def running(
    demo_model: Path, *, pool_tokens: int = 6000, kv_dtype: KvDtype = "auto", **settings: Any
) -> Iterator[AsyncPravahaEngine]:
    """A ready engine whose pool has room for `pool_tokens` tokens; shut down at the end."""
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
        engine.wait_ready(PATIENCE_S)
        yield engine
    finally:
        engine.shutdown()


def prose(engine: AsyncPravahaEngine, length: int) -> tuple[int, ...]:
    """`length` tokens of text."""
    ids = engine.tokenizer.encode(TEXT * (length // 20))
    assert len(ids) >= length
    return tuple(ids[:length])
