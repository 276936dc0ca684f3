"""An engine of a model with recurrent layers: its states are sized, priced, shown, stored and freed."""

from dataclasses import replace

import pytest

from engine.api.errors import EngineUnavailable
from engine.api.snapshot import EngineState
from engine.executors.memory_plan import MemoryPlan
from engine.step.calibration import PROBES
from tests.fakes.recurrent_executor import STATE_DTYPE, RecurrentExecutor
from tests.fakes.toy_engine import ask, toy_config, toy_engine
from tests.fakes.toy_executor import BLOCK_BYTES_PER_TOKEN, ToyExecutor, oracle, toy_model
from tests.server.byte_engine import wait_until

PROMPT = list(range(1, 50))
STATE_BYTES = STATE_DTYPE.itemsize


def recurrent_model(context=256):
    model = toy_model(context)
    model.plan_memory = lambda config, **_: MemoryPlan(
        1000, 0, config.block_size * BLOCK_BYTES_PER_TOKEN, "F32", state_bytes=STATE_BYTES
    )
    return model


def recurrent_engine(*, slots=8, blocks=64, **settings):
    """A started engine and its executor."""
    config = toy_config(blocks=blocks, state_slots=slots, state_interval=16, **settings)
    config = replace(config, kv_cache_bytes=config.kv_cache_bytes + slots * STATE_BYTES)
    executor = RecurrentExecutor(blocks, config.block_size, num_slots=slots)

    def load(model, config, *, num_blocks, max_model_len, progress):
        assert (num_blocks, config.state_slots) == (blocks, slots)
        return executor

    engine, _ = toy_engine(
        config,
        executor=executor,
        executor_factory=load,
        model_opener=lambda config: recurrent_model(),
    )
    engine.start()
    engine.wait_ready(60)
    return engine, executor


def answer(engine, prompt, **params):
    request = ask(prompt, **params)
    output = engine.submit(request).wait_result(60)
    assert output.token_ids == oracle(request)
    return output


def test_the_next_turn_computes_what_follows_the_last_checkpoint():
    engine, _ = recurrent_engine()
    first = answer(engine, PROMPT, max_tokens=10)
    turn = [*PROMPT, *first.token_ids, 7, 8, 9]
    price = engine.price(turn)
    assert (price.prefill_tokens, price.copied_blocks) == (len(turn) - 56, 0)
    assert price.restored_bytes == STATE_BYTES
    assert answer(engine, turn, max_tokens=3).cached_tokens == 56
    assert engine.price([90, 91, 92]).restored_bytes == 0
    engine.shutdown()


def test_a_prompt_whose_blocks_are_cached_without_a_state_is_priced_as_a_whole():
    engine, executor = recurrent_engine()
    executor.fail_copies = True
    answer(engine, PROMPT, max_tokens=1)
    assert engine.residency(PROMPT).pool_tokens == 48
    assert engine.price([*PROMPT, 1]).prefill_tokens == len(PROMPT) + 1
    engine.shutdown()


def test_slots_and_checkpoints_are_in_snapshot_metrics_and_block_map():
    engine, _ = recurrent_engine()
    answer(engine, PROMPT, max_tokens=10)
    states = engine.snapshot().states
    assert (states.total, states.active, states.slot_bytes) == (8, 0, STATE_BYTES)
    assert states.checkpoints == 8 - states.free > 2
    wait_until(lambda: len(engine.blocks(-1).checkpoints) == states.checkpoints)
    blocks = engine.blocks(-1)
    assert (blocks.fill[blocks.checkpoints] == 4).all()
    metrics = engine.metrics.render().decode()
    assert (
        f'pravaha_state_slots{{model_name="toy",state="checkpoint"}} {states.checkpoints}.0'
        in metrics
    )
    assert f'pravaha_state_slot_bytes{{model_name="toy"}} {STATE_BYTES}.0' in metrics
    engine.shutdown()


def test_a_model_without_recurrent_layers_has_no_slots_and_no_metrics_of_them():
    engine, executor = toy_engine()
    plans = []
    executor.watch = plans.append
    engine.start()
    engine.submit(ask(PROMPT)).wait_result(60)
    assert engine.snapshot().states.total == 0
    assert not engine.blocks(-1).checkpoints.size
    assert "state_slots" not in engine.metrics.render().decode()
    assert all(not plan.state_slots.size for plan in plans)
    engine.shutdown()


def test_a_restart_finds_the_states_beside_the_blocks(tmp_path):
    settings = {"swap_bytes": 1 << 20, "swap_dir": tmp_path}
    engine, _ = recurrent_engine(**settings)
    first = answer(engine, PROMPT, max_tokens=10)
    engine.shutdown()
    assert len(list(tmp_path.glob("*.states/*.state"))) > 2
    engine, executor = recurrent_engine(**settings)
    turn = [*PROMPT, *first.token_ids, 7, 8, 9]
    price = engine.price(turn)
    assert (price.swapped_blocks, price.restored_bytes) == (14, STATE_BYTES)
    assert answer(engine, turn, max_tokens=3).cached_tokens == 56
    assert executor.states_written == 1
    engine.shutdown()


def test_calibration_computes_in_free_slots():
    engine, _ = toy_engine(
        replace(toy_config(state_slots=8), kv_cache_bytes=64 * 4 * BLOCK_BYTES_PER_TOKEN + 8 * 16),
        executor=RecurrentExecutor(64, 4, num_slots=8),
        model_opener=lambda config: recurrent_model(),
        probes=PROBES,
    )
    engine.start()
    wait_until(lambda: engine.snapshot().step_costs is not None)
    assert engine.snapshot().states.active == 0
    answer(engine, PROMPT)
    engine.shutdown()


def test_a_draft_model_is_refused():
    config = toy_config(draft_model="some.gguf")
    engine, _ = toy_engine(config, model_opener=lambda config: recurrent_model())
    engine.start()
    with pytest.raises(EngineUnavailable, match="no draft model is supported"):
        engine.wait_ready(60)
    assert engine.snapshot().state is EngineState.UNLOADED
    engine.shutdown()


@pytest.mark.parametrize(("asked", "drafts"), [(None, False), (False, False), (True, True)])
def test_drafts_by_prompt_lookup_are_off_unless_asked_for(asked, drafts):
    engine, _ = recurrent_engine(speculation=asked)
    assert (engine._thread.pipeline.scheduler.speculation is not None) is drafts
    engine.shutdown()


def test_an_executor_without_state_slots_is_refused():
    engine, _ = toy_engine(
        replace(toy_config(state_slots=2), kv_cache_bytes=64 * 4 * BLOCK_BYTES_PER_TOKEN + 2 * 16),
        executor=ToyExecutor(64, 4),
        model_opener=lambda config: recurrent_model(),
    )
    engine.start()
    with pytest.raises(EngineUnavailable, match="does not keep the state"):
        engine.wait_ready(60)
    engine.shutdown()
