"""The swap tier with the demo model: what a restart, pressure and damage cost and answer."""

from contextlib import contextmanager

from engine.config import EngineConfig
from engine.engine import AsyncPravahaEngine
from engine.request import Request, SamplingParams

PATIENCE_S = 300
BLOCK = 32
BLOCK_BYTES = BLOCK * 30 * 2 * 3 * 64 * 2
TEXT = (
    "The river came down from the hills in the spring, brown and quick, and the people of the "
    "village counted the days until it would be clear again. "
)


@contextmanager
def running(demo_model, *, pool_tokens=6000, **settings):
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


def prose(engine, length):
    ids = engine.tokenizer.encode(TEXT * (length // 20))
    assert len(ids) >= length
    return tuple(ids[:length])


def ask(engine, prompt, **params):
    sampling = SamplingParams(**{"temperature": 0.0, "max_tokens": 16, "ignore_eos": True} | params)
    return engine.submit(Request(prompt, sampling))


def test_a_conversation_reopened_after_a_restart_needs_no_prefill(demo_model, tmp_path):
    settings = {"swap_bytes": 256 << 20, "swap_dir": tmp_path}
    with running(demo_model, **settings) as engine:
        prompt = prose(engine, 4000)
        before = ask(engine, prompt).wait_result(PATIENCE_S)
        reopened = prompt + before.token_ids
        expected = ask(engine, reopened).wait_result(PATIENCE_S)
    with running(demo_model, **settings) as engine:
        after = ask(engine, reopened).wait_result(PATIENCE_S)
        assert after.token_ids == expected.token_ids
        assert after.cached_tokens == (len(reopened) - 1) // BLOCK * BLOCK
        totals = engine.snapshot().totals
        assert totals.prompt_tokens == len(reopened) - after.cached_tokens
        assert engine.snapshot().swap.swapped_in == after.cached_tokens // BLOCK
