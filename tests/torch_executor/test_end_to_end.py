"""The torch executor in the engine, from headers to text."""

import pytest

from engine.api.request import FinishReason, Request, SamplingParams
from engine.runtime.engine import AsyncPravahaEngine
from tests.fakes.tiny_transformers import VOCAB, greedy, save_tiny, tiny_hf_model
from tests.torch_executor.loaded import DEVICE, torch_config

TIMEOUT_S = 60


@pytest.mark.parametrize("name", ["gpt2", "gemma3"])
def test_concurrent_requests_equal_generate(tmp_path, name):
    model = tiny_hf_model(name)
    directory = save_tiny(tmp_path, model)
    config = torch_config(directory, max_num_seqs=4, max_num_batched_tokens=16)
    engine = AsyncPravahaEngine(config)
    engine.start()
    try:
        engine.wait_ready(TIMEOUT_S)
        assert engine.model_info.executor == "torch"
        prompts = [
            [(7 * start + step) % (VOCAB - 3) + 3 for step in range(start)]
            for start in (1, 5, 8, 17, 33, 40)
        ]
        params = SamplingParams(temperature=0.0, max_tokens=20, ignore_eos=True, logprobs=2)
        handles = [engine.submit(Request(tuple(prompt), params)) for prompt in prompts]
        for handle, prompt in zip(handles, prompts, strict=True):
            output = handle.wait_result(TIMEOUT_S)
            assert output.finish_reason is FinishReason.LENGTH
            assert list(output.token_ids) == greedy(model, prompt, 20)
            assert len(output.logprobs) == 20
            assert all(
                top[0].token_id == token
                for top, token in zip(output.top_logprobs, output.token_ids, strict=True)
            )
        assert engine.wait_drained(TIMEOUT_S)
        blocks = engine.snapshot().blocks
        assert blocks.active == 0
    finally:
        engine.shutdown()


@pytest.mark.skipif(DEVICE != "cpu", reason="a GPU's swap tier is main memory")
@pytest.mark.parametrize("name", ["gpt2", "gemma3"])  # gemma3's layers have heads of two sizes
def test_a_restart_finds_its_blocks_in_the_swap_tier(tmp_path, name):
    model = tiny_hf_model(name)
    directory = save_tiny(tmp_path / "model", model)
    config = torch_config(directory, swap_bytes=16 << 20, swap_dir=tmp_path / "swap")
    prompt = [(7 * step) % (VOCAB - 3) + 3 for step in range(45)]
    params = SamplingParams(temperature=0.0, max_tokens=10, ignore_eos=True)
    cached = []
    for _ in range(2):
        engine = AsyncPravahaEngine(config)
        engine.start()
        try:
            engine.wait_ready(TIMEOUT_S)
            output = engine.submit(Request(tuple(prompt), params)).wait_result(TIMEOUT_S)
        finally:
            engine.shutdown()
        assert list(output.token_ids) == greedy(model, prompt, 10)
        cached.append(output.cached_tokens)
    assert cached == [0, 40]
