"""The swap tier with the demo model: restarts, memory pressure and a locked file."""

from engine.api.request import Request, SamplingParams
from tests.parity.real_engine import BLOCK, TIMEOUT_S, prose, running

SAMPLING = SamplingParams(temperature=0.0, max_tokens=150, ignore_eos=True)


def ask(engine, prompt, **params):
    sampling = SamplingParams(**{"temperature": 0.0, "max_tokens": 16, "ignore_eos": True} | params)
    return engine.submit(Request(prompt, sampling))


def test_a_conversation_reopened_after_a_restart_needs_no_prefill(demo_model, tmp_path):
    settings = {"swap_bytes": 256 << 20, "swap_dir": tmp_path}
    with running(demo_model, **settings) as engine:
        prompt = prose(engine, 4000)
        before = ask(engine, prompt).wait_result(TIMEOUT_S)
        reopened = prompt + before.token_ids
        expected = ask(engine, reopened).wait_result(TIMEOUT_S)
    with running(demo_model, **settings) as engine:
        after = ask(engine, reopened).wait_result(TIMEOUT_S)
        assert after.token_ids == expected.token_ids
        assert after.cached_tokens == (len(reopened) - 1) // BLOCK * BLOCK
        totals = engine.snapshot().totals
        assert totals.prompt_tokens == len(reopened) - after.cached_tokens
        assert engine.snapshot().swap.swapped_in == after.cached_tokens // BLOCK


def test_greedy_outputs_under_memory_pressure_equal_those_without(demo_model, tmp_path):
    # Eight one-block prompts are admitted at once and grow to six blocks each: 48 in a pool of 20.
    answers = []
    for pool_tokens, swap_bytes in ((2000, 0), (640, 64 << 20)):
        settings = {"pool_tokens": pool_tokens, "max_model_len": 512}
        with running(demo_model, **settings, swap_bytes=swap_bytes, swap_dir=tmp_path) as engine:
            text = prose(engine, 200)
            handles = [engine.submit(Request(text[8 * i : 8 * i + 30], SAMPLING)) for i in range(8)]
            answers.append([handle.wait_result(TIMEOUT_S).token_ids for handle in handles])
            snapshot = engine.snapshot()
            assert (snapshot.totals.preemptions > 0) == (pool_tokens == 640)
            if swap_bytes:  # which blocks are evicted and swapped in depends on timing
                chosen = snapshot.swap.victims_swapped + snapshot.swap.victims_recomputed
                assert chosen == snapshot.totals.preemptions
            assert snapshot.blocks.active == 0
    assert answers[0] == answers[1]


def test_a_second_engine_runs_without_the_file_and_says_so(demo_model, tmp_path, caplog):
    settings = {"swap_bytes": 64 << 20, "swap_dir": tmp_path, "pool_tokens": 1024}
    settings |= {"max_model_len": 512}
    with running(demo_model, **settings), running(demo_model, **settings) as second:
        assert "is in use by another Pravāha" in caplog.text
        assert second.snapshot().swap.capacity == 0
        assert len(ask(second, prose(second, 40)).wait_result(TIMEOUT_S).token_ids) == 16
