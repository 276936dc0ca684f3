"""An engine of a model with sliding windows: its window blocks are sized, priced, shown, stored and freed."""

from dataclasses import replace

import pytest

from engine._core import ATTENTION_CHUNK
from engine.api.errors import EngineUnavailable
from engine.executors.memory_plan import MemoryPlan
from engine.memory.kv_cache_config import least_window_blocks
from engine.step.calibration import PROBES
from tests.fakes.toy_engine import ask, toy_config, toy_engine
from tests.fakes.toy_executor import BLOCK_BYTES_PER_TOKEN, ToyExecutor, oracle, toy_model
from tests.fakes.windowed_executor import WindowedExecutor
from tests.server.byte_engine import wait_until

PROMPT = list(range(1, 50))
WINDOW = 20


def plan_of(config):
    """A block with as many bytes in layers with a window as `WindowedExecutor` has for it."""
    full, window = config.block_size * BLOCK_BYTES_PER_TOKEN, 8 * config.block_size
    return MemoryPlan(1000, 0, full + window, "F32", window_block_bytes=window, window=WINDOW)


def windowed_model(context=256):
    model = toy_model(context)
    model.plan_memory = lambda config, **_: plan_of(config)
    return model


def windowed_engine(*, blocks=64, probes=(), keeps=True, **settings):
    """A started engine and its executor; `keeps`: whether that has window blocks."""
    config = toy_config(blocks=blocks, max_num_batched_tokens=32, state_interval=16, **settings)
    plan = plan_of(config)
    count = least_window_blocks(plan, block_size=config.block_size, token_budget=32)
    full = plan.block_bytes - plan.window_block_bytes
    pool = blocks * full + count * plan.window_block_bytes
    config = replace(config, kv_cache_bytes=pool, window_blocks=count)
    executor = ToyExecutor(blocks, config.block_size)
    if keeps:
        executor = WindowedExecutor(
            blocks,
            config.block_size,
            num_window_blocks=count,
            window=WINDOW,
            chunk=ATTENTION_CHUNK,
        )

    def load(model, config, *, num_blocks, max_model_len, progress):
        assert (num_blocks, config.window_blocks) == (blocks, count)
        return executor

    engine, _ = toy_engine(
        config,
        executor=executor,
        executor_factory=load,
        model_opener=lambda config: windowed_model(),
        probes=probes,
    )
    engine.start()
    return engine, executor


def answer(engine, prompt, **params):
    request = ask(prompt, **params)
    output = engine.submit(request).wait_result(60)
    assert output.token_ids == oracle(request)
    return output


def test_the_next_turn_computes_what_follows_the_last_window():
    engine, _ = windowed_engine()
    engine.wait_ready(60)
    first = answer(engine, PROMPT, max_tokens=10)
    turn = [*PROMPT, *first.token_ids, 7, 8, 9]
    price = engine.price(turn)
    assert (price.prefill_tokens, price.copied_blocks) == (len(turn) - 56, 0)
    assert answer(engine, turn, max_tokens=3).cached_tokens == 56
    engine.shutdown()


def test_window_blocks_are_in_snapshot_metrics_and_block_map():
    engine, executor = windowed_engine()
    answer(engine, PROMPT, max_tokens=10)
    windows = engine.snapshot().windows
    assert (windows.total, windows.active) == (len(executor.window_kv), 0)
    assert (windows.tokens, windows.block_bytes) == (WINDOW, 8 * 4)
    assert windows.windows > 1
    wait_until(lambda: len(engine.blocks(-1).checkpoints) == windows.windows)
    metrics = engine.metrics.render().decode()
    name = 'model_name="toy"'
    assert f'pravaha_window_blocks{{{name},state="cached"}} {windows.cached}.0' in metrics
    assert f'pravaha_kept_windows{{{name},place="pool"}} {windows.windows}.0' in metrics
    assert f"pravaha_window_block_bytes{{{name}}} {windows.block_bytes}.0" in metrics
    engine.shutdown()


def test_a_model_whose_layers_keep_every_token_has_no_window_blocks():
    engine, executor = toy_engine()
    plans = []
    executor.watch = plans.append
    engine.start()
    engine.submit(ask(PROMPT)).wait_result(60)
    assert engine.snapshot().windows.total == 0
    assert "window_blocks" not in engine.metrics.render().decode()
    assert plans
    assert all(not plan.window_blocks.size for plan in plans)
    engine.shutdown()


def test_a_restart_finds_the_windows_beside_the_blocks(tmp_path):
    settings = {"swap_bytes": 1 << 20, "swap_dir": tmp_path}
    engine, _ = windowed_engine(**settings)
    first = answer(engine, PROMPT, max_tokens=10)
    engine.shutdown()
    engine, executor = windowed_engine(**settings)
    turn = [*PROMPT, *first.token_ids, 7]
    wait_until(lambda: engine.price(turn).swapped_blocks == 14)  # the tier is opened meanwhile
    assert answer(engine, turn).cached_tokens == 56
    assert executor.windows_written > 0
    engine.shutdown()


def test_calibration_computes_in_free_window_blocks():
    engine, _ = windowed_engine(probes=PROBES)
    wait_until(lambda: engine.snapshot().step_costs is not None)
    assert engine.snapshot().windows.active == 0
    answer(engine, PROMPT)
    engine.shutdown()


def test_an_executor_that_keeps_every_token_is_refused():
    engine, _ = windowed_engine(keeps=False)
    with pytest.raises(EngineUnavailable, match="does not keep the windows"):
        engine.wait_ready(60)
    engine.shutdown()
