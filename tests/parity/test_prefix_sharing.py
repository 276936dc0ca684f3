"""Prefix sharing and forks with the demo model: computed tokens, copied and held blocks, answers.

The native executor's results do not depend on the batch, so shared and recomputed keys and values
are equal to the bit, and with them greedy text and logprobs.
"""

import time

import pytest

from engine.api.request import Request, SamplingParams
from tests.parity.quantised_models import ARCHITECTURES, write_model
from tests.parity.real_engine import BLOCK, TIMEOUT_S, prose, running


def greedy(**params):
    return SamplingParams(**{"temperature": 0.0, "max_tokens": 8, "ignore_eos": True} | params)


def count_steps(engine):
    """Record, for each later step, the requests that have generated a token after it."""
    pipeline, steps = engine._thread.current.pipeline, []
    step = pipeline.step

    def counted():
        result = step()
        placed = [each for each in pipeline.table.sequences if each is not None]
        tokens = pipeline.table.num_tokens
        steps.append({s.request_id for s in placed if tokens[s.row] > s.num_prompt})
        return result

    pipeline.step = counted
    return steps


def test_fifty_one_requests_with_one_prefix_compute_it_once(demo_model):
    with running(demo_model) as engine:
        prefix = prose(engine, 1000)
        tails = [tuple(engine.tokenizer.encode(f" Agent {number} says:")) for number in range(51)]
        held = []
        handles = [engine.submit(Request(prefix + tail, greedy())) for tail in tails]
        while not all(handle.finished for handle in handles):
            held.append(engine.snapshot().blocks.active)
            handles[-1].drain()
            time.sleep(0.002)  # between two looks at the snapshot; nothing depends on it
        outputs = [handle.wait_result(TIMEOUT_S) for handle in handles]
        totals = engine.snapshot().totals
        shared = len(prefix) // BLOCK
        rest = sum(len(prefix) - shared * BLOCK + len(tail) for tail in tails)
        assert totals.prompt_tokens <= shared * BLOCK + rest
        assert totals.prefix_cache_queries == sum(len(prefix + tail) for tail in tails)
        assert totals.prompt_tokens == totals.prefix_cache_queries - totals.prefix_cache_hits
        # A tail is the prefix's partial last block, plus one when the answer grows past it.
        assert max(held) <= shared + 51 * 2
        alone = engine.submit(Request(prefix + tails[7], greedy())).wait_result(TIMEOUT_S)
        assert alone.token_ids == outputs[7].token_ids
        assert engine.snapshot().blocks.active == 0


def test_a_fork_of_a_long_running_conversation_costs_one_block_and_no_prefill(demo_model):
    with running(demo_model) as engine:
        prompt = prose(engine, 1500)
        parent = engine.submit(Request(prompt, greedy(max_tokens=200)))
        seen = 0
        while seen < 20:
            batch = parent.drain()
            seen += 0 if batch is None else len(batch.token_ids)
            time.sleep(0.001)
        while (before := engine.snapshot().totals).prompt_tokens < 1500:  # published after tokens
            time.sleep(0.001)
        steps = count_steps(engine)
        (child,) = engine.fork(parent.request_id)
        begun = len(steps)
        output = child.wait_result(TIMEOUT_S)
        parent.abort()
        parent_ids = parent.wait_result(TIMEOUT_S).token_ids
        totals = engine.snapshot().totals
        known = len(child.request.prompt_ids)
        assert output.cached_tokens == known - 1
        # The step that ran during the fork, and the one that admits the child and answers.
        first = next(number for number, fed in enumerate(steps, 1) if child.request_id in fed)
        assert first - begun <= 2
        assert totals.prompt_tokens - before.prompt_tokens == 1
        assert totals.copied_blocks - before.copied_blocks == ((known - 1) % BLOCK > 0)
        assert parent_ids[: known - len(prompt)] == child.request.prompt_ids[len(prompt) :]
        both = min(len(output.token_ids), len(parent_ids) - (known - len(prompt)))
        assert output.token_ids[:both] == parent_ids[known - len(prompt) :][:both]


def assert_prefix_caching_changes_no_bit(model, kv_dtype):
    answers = []
    for prefix_caching in (True, False):
        with running(
            model, pool_tokens=12_000, prefix_caching=prefix_caching, kv_dtype=kv_dtype
        ) as engine:
            prefix = prose(engine, 136)
            prompts = [prefix[: 136 - 8 * i] + prefix[:3] * (i % 3) for i in range(10)]
            prompts += [prompts[0], prompts[1], prefix[:96], prefix[:96]]
            handles = [
                engine.submit(Request(p, greedy(max_tokens=24, logprobs=0))) for p in prompts
            ]
            outputs = [handle.wait_result(TIMEOUT_S) for handle in handles]
            again = [engine.submit(Request(p, greedy(max_tokens=24, logprobs=0))) for p in prompts]
            outputs += [handle.wait_result(TIMEOUT_S) for handle in again]
            hits = engine.snapshot().totals.prefix_cache_hits
            assert (hits > 0) == prefix_caching
            answers.append([(output.token_ids, output.logprobs) for output in outputs])
    assert answers[0] == answers[1]


@pytest.mark.parametrize("kv_dtype", ["int8", "f16"])
def test_greedy_answers_and_logprobs_are_equal_with_and_without_prefix_caching(
    demo_model, kv_dtype
):
    assert_prefix_caching_changes_no_bit(demo_model, kv_dtype)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda each: each.name)
def test_prefix_caching_changes_no_bit_in_any_architecture(tmp_path, architecture):
    """Quantised models with their default KV type."""
    path = write_model(tmp_path / "tiny.gguf", "Q4_1", architecture)
    assert_prefix_caching_changes_no_bit(path, "auto")


def test_a_price_includes_seconds_once_steps_are_measured(demo_model):
    with running(demo_model) as engine:
        prompt = prose(engine, 400)
        engine.submit(Request(prompt, greedy(max_tokens=1))).wait_result(TIMEOUT_S)
        warm, cold = engine.price(prompt), engine.price(prose(engine, 401)[1:])
        assert (warm.prefill_tokens, cold.prefill_tokens) == (400 - 400 // BLOCK * BLOCK, 400)
        assert 0 < warm.seconds < cold.seconds
