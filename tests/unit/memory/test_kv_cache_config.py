from itertools import pairwise

import pytest

from engine.api.errors import ModelDoesNotFit, ModelError
from engine.executors.memory_plan import MemoryPlan
from engine.memory.kv_cache_config import (
    DEFAULT_STATE_SLOTS,
    EXPERTS_SHARE,
    WINDOW_SHARE,
    default_pool_bytes,
    fits_whole,
    least_window_blocks,
    size_pool,
)

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("available", "context_bytes", "expected"),
    [
        (20 * GIB, GIB, 2 * GIB),  # a tenth
        (4 * GIB, GIB, GIB),  # one full context
        (GIB, GIB, GIB // 2),  # never above half
        (0, GIB, GIB // 64),  # never below a block
    ],
)
def test_default_pool(available, context_bytes, expected):
    pool = default_pool_bytes(
        available, block_bytes=context_bytes // 64, block_size=32, context_length=64 * 32
    )
    assert pool == expected


def pool(**options):
    defaults = {
        "model": "toy",
        "block_size": 4,
        "context_length": 64,
        "requested_bytes": None,
        "available": 100 * MIB,
        "can_quantize": False,
    }
    plan = MemoryPlan(50 * MIB, 10 * MIB, block_bytes=128, weight_format="Q4_K")
    return size_pool(plan, **defaults | options)


def test_a_requested_size_is_used():
    cache = pool(requested_bytes=10_000)
    assert cache.num_blocks == 10_000 // cache.block_bytes
    assert cache.pool_bytes <= 10_000
    assert cache.capacity_tokens == cache.num_blocks * 4


def test_a_pool_below_one_block_is_refused():
    with pytest.raises(ModelError, match="one block of 4 tokens of toy takes 128"):
        pool(requested_bytes=100)


def test_the_default_pool_is_a_share_of_what_weights_and_work_buffers_leave():
    assert pool().pool_bytes == 4 * MIB
    assert pool(available=60 * MIB + 128).num_blocks == 1


@pytest.mark.parametrize("requested", [None, 128])
def test_a_model_that_does_not_fit_is_refused_with_the_missing_amount(requested):
    with pytest.raises(ModelError) as refusal:
        pool(available=30 * MIB, requested_bytes=requested)
    sentence = str(refusal.value)
    assert sentence.startswith(
        "toy does not fit in memory: it takes 50.0 MiB for its weights, 10.0 MiB for work buffers and "
        "0.0 MiB for the KV pool, but 30.0 MiB are available, 30.0 MiB too little: "
    )
    assert sentence.endswith("choose a smaller or more strongly quantized model.")


def test_float_weights_that_do_not_fit_may_be_quantized():
    with pytest.raises(ModelError, match=r"quantize its weights \(--weights q8 or q4\), or"):
        pool(available=30 * MIB, can_quantize=True)


def test_a_requested_pool_that_does_not_fit_beside_the_weights_is_refused():
    assert pool(requested_bytes=40 * MIB).pool_bytes == 40 * MIB
    with pytest.raises(ModelError, match=r"1\.0 MiB too little: lower --kv-cache or free"):
        pool(requested_bytes=41 * MIB)


def test_a_requested_pool_is_not_compared_with_unknown_memory():
    assert pool(requested_bytes=41 * MIB, available=None).pool_bytes == 41 * MIB


def test_the_pool_takes_what_the_model_leaves_of_its_share():
    assert pool(limit=70 * MIB).pool_bytes == 10 * MIB
    assert pool(limit=70 * MIB, requested_bytes=MIB).pool_bytes == MIB
    assert pool(limit=60 * MIB + 128, available=None).num_blocks == 1


@pytest.mark.parametrize(
    ("limit", "requested"), [(59 * MIB, None), (60 * MIB, None), (70 * MIB, 11 * MIB)]
)
def test_a_share_that_is_too_small_is_named(limit, requested):
    with pytest.raises(ModelDoesNotFit, match="toy does not fit in its share of memory") as refusal:
        pool(limit=limit, requested_bytes=requested)
    assert f"its share is {limit / MIB:.1f} MiB" in str(refusal.value)


def test_a_share_beyond_free_memory_is_refused():
    with pytest.raises(ModelDoesNotFit, match="lower its share or free memory"):
        pool(limit=200 * MIB)


def recurrent_pool(**options):
    """A pool of a model whose state takes as much as ten blocks."""
    plan = MemoryPlan(
        50 * MIB, 10 * MIB, block_bytes=1024, weight_format="Q4_K", state_bytes=10_240
    )
    defaults = {
        "model": "toy",
        "block_size": 4,
        "context_length": 64,
        "available": 100 * MIB,
        "can_quantize": False,
        "max_rows": 8,
        "state_interval": 16,
    }
    return size_pool(plan, **defaults | options)


def test_state_slots_take_at_most_half_of_the_pool():
    cache = recurrent_pool(requested_bytes=400 * 1024)
    assert (cache.num_state_slots, cache.num_blocks) == (20, 200)
    assert cache.pool_bytes <= 400 * 1024


def test_there_are_no_more_state_slots_than_the_pools_tokens_need():
    cache = recurrent_pool(requested_bytes=400 * 1024, state_interval=400)
    assert cache.num_state_slots == 2 * 8 + 400 * 4 // 400
    assert cache.pool_bytes <= 400 * 1024


def test_the_number_of_state_slots_can_be_set():
    cache = recurrent_pool(requested_bytes=400 * 1024, state_slots=3)
    assert (cache.num_state_slots, cache.num_blocks) == (3, 370)


def test_a_pool_holds_a_running_request_and_a_checkpoint_at_least():
    assert recurrent_pool(requested_bytes=21 * 1024).num_state_slots == 2
    with pytest.raises(ModelError, match="one block of 4 tokens and 2 recurrent states"):
        recurrent_pool(requested_bytes=21 * 1024 - 1)
    with pytest.raises(ModelError, match="and 3 recurrent states of toy take 31,744"):
        recurrent_pool(requested_bytes=21 * 1024, state_slots=3)


def test_a_default_pool_holds_a_context_and_its_states():
    sizes = {"block_bytes": 100, "block_size": 4, "state_bytes": 1000}
    states = DEFAULT_STATE_SLOTS * 1000
    assert default_pool_bytes(500_000, context_length=40, **sizes) == 2 * states
    assert default_pool_bytes(500_000, context_length=4000, **sizes) == 100_000 + states
    assert default_pool_bytes(5_000_000, context_length=40, **sizes) == 500_000
    assert default_pool_bytes(20_000, context_length=40, **sizes) == 10_000
    assert default_pool_bytes(0, context_length=40, **sizes) == 2100


def test_a_model_without_recurrent_layers_has_no_state_slots():
    assert pool(requested_bytes=10_000, state_slots=5).num_state_slots == 0
    assert pool(requested_bytes=10_000, state_slots=5) == pool(requested_bytes=10_000)


def expert_pool(shortage="", **options):
    """A pool of a model of 50 MiB of which a token uses 20."""
    plan = MemoryPlan(
        50 * MIB,
        10 * MIB,
        block_bytes=128,
        weight_format="Q4_K",
        active_bytes=20 * MIB,
        shortage=shortage,
    )
    defaults = {
        "model": "toy",
        "block_size": 4,
        "context_length": 64,
        "requested_bytes": None,
        "available": 100 * MIB,
        "can_quantize": False,
    }
    return plan, size_pool(plan, **defaults | options)


def test_a_model_with_experts_that_fits_has_the_pool_of_any_other():
    plan, cache = expert_pool()
    assert cache == pool()
    assert fits_whole(plan, cache, available=100 * MIB, limit=None)


def test_experts_need_not_fit_in_memory():
    plan, cache = expert_pool(available=50 * MIB)
    beside_resident = 20 * MIB
    assert cache.pool_bytes <= (1 - EXPERTS_SHARE) * beside_resident
    assert cache.pool_bytes == pytest.approx(0.1 * (1 - EXPERTS_SHARE) * beside_resident, abs=128)
    assert not fits_whole(plan, cache, available=50 * MIB, limit=None)
    assert not fits_whole(plan, cache, available=None, limit=50 * MIB)
    assert fits_whole(plan, cache, available=None, limit=None)


def test_a_little_less_memory_gives_a_pool_of_nearly_the_same_size():
    """The pool does not jump where the experts cease to fit."""
    sizes = [expert_pool(available=size * MIB)[1].pool_bytes for size in range(40, 130)]
    assert sizes == sorted(sizes)
    assert max(more - less for less, more in pairwise(sizes)) <= MIB / 10 + 128


def test_what_every_token_uses_has_to_fit():
    with pytest.raises(ModelDoesNotFit) as refusal:
        expert_pool(available=25 * MIB)
    assert str(refusal.value).startswith(
        "toy does not fit in memory: it takes 20.0 MiB for its weights without the experts that a token "
        "does not use, 10.0 MiB for work buffers and 0.0 MiB for the KV pool, but 25.0 MiB are available, "
        "5.0 MiB too little: "
    )
    with pytest.raises(ModelDoesNotFit, match=r"lower --kv-cache or free memory\.$"):
        expert_pool(available=50 * MIB, requested_bytes=30 * MIB)
    assert expert_pool(available=50 * MIB, requested_bytes=20 * MIB)[1].pool_bytes == 20 * MIB


def test_experts_that_cannot_stay_on_disk_have_to_fit_and_the_reason_is_given():
    with pytest.raises(ModelDoesNotFit) as refusal:
        expert_pool("the weight cache is off: set --weight-cache-bytes", available=50 * MIB)
    sentence = str(refusal.value)
    assert "it takes 50.0 MiB for its weights, 10.0 MiB" in sentence
    assert sentence.endswith(
        "quantized model; its experts could be read from disk, but the weight cache is off: set "
        "--weight-cache-bytes."
    )
    assert expert_pool("off", available=100 * MIB)[1] == pool()


def test_the_share_of_a_model_with_experts_may_be_less_than_its_weights():
    assert expert_pool(limit=70 * MIB)[1].pool_bytes == 10 * MIB
    assert expert_pool(limit=50 * MIB)[1].pool_bytes == (1 - EXPERTS_SHARE) * 20 * MIB
    with pytest.raises(ModelDoesNotFit, match=r"takes 30\.0 MiB for weights without the experts"):
        expert_pool(limit=30 * MIB)


def windowed_plan(full, window_bytes, window=512):
    return MemoryPlan(
        0,
        0,
        block_bytes=full + window_bytes,
        weight_format="Q4_K",
        window_block_bytes=window_bytes,
        window=window,
    )


GEMMA_3_1B = windowed_plan(4 * 32 * 1024, 22 * 32 * 1024)


def windowed_pool(plan=GEMMA_3_1B, **options):
    defaults = {
        "model": "toy",
        "block_size": 32,
        "context_length": 32_768,
        "requested_bytes": None,
        "available": 100 * GIB,
        "can_quantize": False,
        "max_rows": 64,
        "token_budget": 512,
    }
    return size_pool(plan, **defaults | options)


def test_a_pool_of_a_model_with_windows_holds_several_times_the_tokens():
    cache = windowed_pool(requested_bytes=GIB)
    undivided = GIB // GEMMA_3_1B.block_bytes
    assert cache.pool_bytes <= GIB
    assert cache.num_blocks > 3 * undivided
    assert cache.num_window_blocks == int(undivided * WINDOW_SHARE)
    assert cache.block_bytes + cache.window_block_bytes == GEMMA_3_1B.block_bytes


def test_a_default_pool_holds_a_whole_context_in_less_memory_than_if_all_layers_kept_it():
    cache = windowed_pool(available=600 * MIB)
    assert cache.capacity_tokens >= 32_768
    assert cache.pool_bytes < 1024 * GEMMA_3_1B.block_bytes / 3
    assert cache.num_window_blocks * 32 >= 8 * 512


def test_there_are_no_more_window_blocks_than_rows_and_kept_windows_need():
    sizes = {"context_length": 262_144, "max_rows": 2, "state_interval": 32_768}
    cache = windowed_pool(requested_bytes=10 * GIB, **sizes)
    undivided = 10 * GIB // GEMMA_3_1B.block_bytes
    assert cache.num_window_blocks == 2 * 18 + undivided * 32 // 32_768 * 17


def test_a_small_pool_is_not_divided():
    cache = windowed_pool(requested_bytes=40 * MIB)
    assert (cache.num_window_blocks, cache.window_block_bytes) == (0, 0)
    assert cache == windowed_pool(requested_bytes=40 * MIB, window_blocks=0)
    assert cache.num_blocks == 40 * MIB // GEMMA_3_1B.block_bytes


def test_the_number_of_window_blocks_can_be_set_but_not_below_what_a_request_needs():
    assert windowed_pool(requested_bytes=GIB, window_blocks=100).num_window_blocks == 100
    least = least_window_blocks(GEMMA_3_1B, block_size=32, token_budget=512)
    assert windowed_pool(requested_bytes=GIB, window_blocks=1).num_window_blocks == least
    assert windowed_pool(requested_bytes=GIB, window_blocks=0).num_window_blocks == 0


def test_windows_of_full_contexts_do_not_run_short_before_their_blocks():
    """Of a model that has nearly all of its bytes in windows of half its context."""
    plan = windowed_plan(12 * 1024, 31 * 12 * 1024, window=2047)
    cache = windowed_pool(plan, requested_bytes=GIB, context_length=4096)
    assert 1 < cache.num_blocks / cache.num_window_blocks < 128 / 64
