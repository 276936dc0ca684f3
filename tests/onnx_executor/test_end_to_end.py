"""The ONNX executor in the engine, from headers to text: what blocks make possible works for a graph, too."""

from contextlib import contextmanager

import pytest

from engine.api.request import FinishReason, Request, SamplingParams
from engine.runtime.engine import AsyncPravahaEngine
from tests.fakes.tiny_onnx import GraphOptions, write_genai, write_optimum
from tests.fakes.tiny_transformers import VOCAB, greedy
from tests.onnx_executor.loaded import BLOCK, onnx_config, tiny_llama

TIMEOUT_S = 60
LENGTHS = (1, 5, 8, 17, 33, 40)


@contextmanager
def running(path, **settings):
    engine = AsyncPravahaEngine(onnx_config(path, **settings))
    engine.start()
    try:
        engine.wait_ready(TIMEOUT_S)
        yield engine
        assert engine.wait_drained(TIMEOUT_S)
        assert engine.snapshot().blocks.active == 0
    finally:
        engine.shutdown()


def prompt_of(length, start=0):
    return tuple((7 * (length + start) + step * 5) % (VOCAB - 3) + 3 for step in range(length))


def params(count, **changes):
    fields = {"temperature": 0.0, "max_tokens": count, "ignore_eos": True}
    return SamplingParams(**{**fields, **changes})


@pytest.fixture(scope="module")
def oracle():
    return tiny_llama()


@pytest.fixture(scope="module", params=["optimum", "genai"])
def folder(request, oracle, tmp_path_factory):
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "genai":
        return write_genai(directory, oracle[1])
    return write_optimum(directory, oracle[1], name="onnx/model.onnx")


def test_concurrent_requests_equal_generate(folder, oracle):
    with running(folder, max_num_seqs=4, max_num_batched_tokens=16) as engine:
        info = engine.model_info
        assert (info.executor, info.kv_dtype, info.threads) == ("onnx", "f32", 1)
        assert (info.architecture, info.weight_format) == ("llama", "F32")
        handles = [
            engine.submit(Request(prompt_of(length), params(20, logprobs=2))) for length in LENGTHS
        ]
        for handle, length in zip(handles, LENGTHS, strict=True):
            output = handle.wait_result(TIMEOUT_S)
            assert output.finish_reason is FinishReason.LENGTH
            assert list(output.token_ids) == greedy(oracle[0], list(prompt_of(length)), 20)
            assert len(output.logprobs) == 20
            tops = zip(output.top_logprobs, output.token_ids, strict=True)
            assert all(top[0].token_id == token for top, token in tops)


def test_a_prefix_is_computed_once(folder, oracle):
    with running(folder) as engine:
        prefix = prompt_of(40)
        for tail, cached in (((9, 8), 0), ((4, 5, 6), 40)):
            output = engine.submit(Request(prefix + tail, params(12))).wait_result(TIMEOUT_S)
            assert output.cached_tokens == cached
            assert list(output.token_ids) == greedy(oracle[0], [*prefix, *tail], 12)


def test_a_fork_at_a_token_continues_from_there(folder, oracle):
    with running(folder) as engine:
        parent = engine.submit(Request(prompt_of(20), params(90)))
        children = engine.fork(parent.request_id, at=18, n=2, sampling=params(10))
        outputs = [child.wait_result(TIMEOUT_S) for child in children]
        expected = greedy(oracle[0], list(prompt_of(20)[:18]), 10)
        assert [list(output.token_ids) for output in outputs] == [expected] * 2
        assert list(parent.wait_result(TIMEOUT_S).token_ids) == greedy(
            oracle[0], list(prompt_of(20)), 90
        )


@pytest.mark.parametrize("swap_bytes", [0, 16 << 20])
def test_answers_under_memory_pressure_equal_those_without(folder, oracle, swap_bytes):
    token_bytes = 3 * 2 * 2 * 16 * 4  # layers, keys and values, heads, size, bytes
    pool = 20 * BLOCK * token_bytes
    with running(folder, kv_cache_bytes=pool, swap_bytes=swap_bytes) as engine:
        handles = [engine.submit(Request(prompt_of(10, at), params(60))) for at in range(6)]
        outputs = [handle.wait_result(TIMEOUT_S) for handle in handles]
        assert engine.snapshot().totals.preemptions > 0
    for at, output in enumerate(outputs):
        assert list(output.token_ids) == greedy(oracle[0], list(prompt_of(10, at)), 60)


def test_a_restart_finds_its_blocks_in_the_swap_tier(folder, oracle, tmp_path):
    settings = {"swap_bytes": 16 << 20, "swap_dir": tmp_path}
    cached = []
    for _ in range(2):
        with running(folder, **settings) as engine:
            output = engine.submit(Request(prompt_of(45), params(10))).wait_result(TIMEOUT_S)
        assert list(output.token_ids) == greedy(oracle[0], list(prompt_of(45)), 10)
        cached.append(output.cached_tokens)
    assert cached == [0, 40]


def test_logprobs_of_prompts(folder):
    with running(folder) as engine:
        asked = Request(prompt_of(30), params(2, prompt_logprobs=1))
        output = engine.submit(asked).wait_result(TIMEOUT_S)
        assert len(output.prompt_logprobs.logprobs) == 29


def test_a_graph_with_the_last_logits_only_scores_prompts_and_verifies_drafts(oracle, tmp_path):
    folder = write_optimum(tmp_path, oracle[1], GraphOptions(last_only=True))
    repeated = prompt_of(9) * 4
    with running(folder, speculation=True) as engine:
        asked = Request(repeated, params(12, prompt_logprobs=0))
        output = engine.submit(asked).wait_result(TIMEOUT_S)
        assert list(output.token_ids) == greedy(oracle[0], list(repeated), 12)
        assert len(output.prompt_logprobs.logprobs) == 35
