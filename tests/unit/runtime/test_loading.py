"""Settings derived from a model's headers, before weights are read."""

from dataclasses import replace

import pytest

from engine.api.errors import ModelError
from engine.runtime import loading
from engine.runtime.loading import open_with_headers
from tests.fakes.toy_engine import toy_config
from tests.fakes.toy_executor import toy_model


def opened(context=256, **settings):
    return open_with_headers(replace(toy_config(), **settings), lambda _: toy_model(context))


def test_the_models_own_context_is_the_default():
    assert opened().max_model_len == 256
    assert opened(max_model_len=100).max_model_len == 100


def test_a_context_longer_than_trained_is_refused():
    with pytest.raises(ModelError, match=r"257 tokens \(--ctx\).*the 256 that toy"):
        opened(max_model_len=257)


@pytest.mark.parametrize("value", [1, -3])
def test_a_context_without_room_for_an_answer_is_refused(value):
    with pytest.raises(ModelError, match="at least 2"):
        opened(max_model_len=value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_num_seqs", 0), ("max_num_batched_tokens", 0), ("max_queue", 0), ("block_size", 256)],
)
def test_impossible_limits_are_refused_by_name(name, value):
    with pytest.raises(ModelError, match=f"{name} must be between"):
        opened(**{name: value})


def test_the_requested_pool_size_is_used():
    assert opened().kv_cache.num_blocks == 64


def test_a_model_larger_than_free_memory_is_refused_before_anything_is_loaded(monkeypatch):
    monkeypatch.setattr(loading, "available_memory", lambda: 2000)
    with pytest.raises(ModelError, match="toy does not fit in memory"):
        opened(kv_cache_bytes=64 * 128)
    assert opened(kv_cache_bytes=128).memory.weight_bytes == 1000


def test_unknown_free_memory_is_an_error_unless_the_pools_size_is_given(monkeypatch):
    def unknown():
        raise OSError("unknown")

    monkeypatch.setattr(loading, "available_memory", unknown)
    assert opened().kv_cache.num_blocks == 64
    with pytest.raises(ModelError, match="Free memory is unknown"):
        opened(kv_cache_bytes=None)


def test_the_default_pool_comes_from_free_memory():
    cache = opened(kv_cache_bytes=None).kv_cache
    assert cache.num_blocks > 64
