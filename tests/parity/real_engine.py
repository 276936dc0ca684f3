"""An engine with the demo model, and prose to ask it about."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.config import EngineConfig
from engine.engine import AsyncPravahaEngine

PATIENCE_S = 300
"""After so long a wait is given up: nothing is slow enough for it."""

BLOCK = 32
BLOCK_BYTES = BLOCK * 30 * 2 * 3 * 64 * 2
"""Of the demo model: layers, keys and values, heads, dimensions, bytes of an f16."""

TEXT = (
    "The river came down from the hills in the spring, brown and quick, and the people of the "
    "village counted the days until it would be clear again. "
)


@contextmanager
def running(
    demo_model: Path, *, pool_tokens: int = 6000, **settings: Any
) -> Iterator[AsyncPravahaEngine]:
    """A ready engine whose pool has room for `pool_tokens` tokens in f16; shut down at the end."""
    config = EngineConfig(
        model=demo_model,
        name="demo",
        block_size=BLOCK,
        kv_cache_bytes=-(-pool_tokens // BLOCK) * BLOCK_BYTES,
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
