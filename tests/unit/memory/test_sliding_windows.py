"""Window blocks of a model with sliding windows: which blocks have one, and where requests can begin.

The model's answers are functions of all that a token sees in its window blocks
(`tests.fakes.windowed_executor`), so every answer is also a test that these were the right ones.
"""

import logging
from itertools import chain

import numpy as np
import pytest

from engine._core import BlockAllocator
from engine.api.errors import ExecutorError
from engine.api.request import FinishReason
from engine.step.calibration import PROBES, Calibration
from tests.fakes.guesser import guess
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle
from tests.fakes.toy_pipeline import ToyPipeline
from tests.fakes.toy_tokenizer import EOS
from tests.unit.memory.test_recurrent_states import computed_per_new_token, session_prompts

SIZE = 4
WINDOW = 10
PROMPT = list(range(1, 42))  # ten blocks and a token
LONG = [i % 90 for i in range(200)]


def windowed(**options):
    defaults = {
        "allocator": BlockAllocator,
        "block_size": SIZE,
        "window": WINDOW,
        "chunk": 8,
        "window_blocks": 40,
        "interval": 64,
    }
    return ToyPipeline(**defaults | options)


def answer(toy, prompt, **params):
    request = ask(prompt, **{"max_tokens": 6} | params)
    handle = toy.submit(request)
    toy.run()
    output = handle.drain()
    assert output.token_ids == oracle(request, max_model_len=toy.context)
    return output


def kept(toy):
    """Tokens after which a window is kept, ascending."""
    return sorted(one.tokens for one in toy.blocks.windows.checkpoints)


def fill_up(toy):
    """Other blocks take all idle window blocks, as in a pool that is full."""
    windows, blocks = toy.blocks.windows, toy.blocks
    blocks.discard(blocks.allocate(windows.num_free + len(windows._idle)))


def in_window(toy, handle):
    """Blocks whose window blocks a running request holds."""
    row = toy.row(handle)
    return int(toy.table.num_blocks[row] - toy.blocks.windows.first_held[row])


# ---- running requests ----


def test_a_long_context_needs_only_the_window_blocks_of_its_window_and_a_step():
    """For the 60 blocks of the context, 14 window blocks suffice: 4 of the window, and 8 of a step."""
    toy = windowed(blocks=64, window_blocks=14, budget=32)
    handle = toy.submit(ask(LONG, max_tokens=40))
    held = []
    while toy.pipeline.has_work:
        toy.step()
        if not handle.finished:
            held.append(in_window(toy, handle))
    assert handle.drain().token_ids == oracle(handle.request)
    assert max(held) <= 6
    assert toy.blocks.counts().cached == 59


def test_the_window_blocks_behind_a_rows_window_are_free_again():
    toy = windowed(prefixes=False)
    handle = toy.submit(ask(PROMPT, max_tokens=60))
    toy.step(2)
    # 42 tokens: those from 30 on are seen, attention reads from 24 on, and so does a fork at 41.
    assert (in_window(toy, handle), toy.blocks.windows.counts().free) == (5, 35)
    toy.run()
    assert toy.blocks.windows.counts().free == 40


def test_an_abort_lets_the_window_go():
    toy = windowed()
    handle = toy.submit(ask(PROMPT, max_tokens=60))
    toy.step(5)
    handle.abort()
    toy.assert_idle()
    toy.check()
    fill_up(toy)
    assert answer(toy, PROMPT).cached_tokens == 40


def test_a_failed_step_leaves_earlier_windows():
    toy = windowed()
    handle = toy.submit(ask(PROMPT, max_tokens=60))
    toy.step(8)
    toy.executor.fail_with = [ExecutorError("broken")]
    toy.step()
    assert handle.drain().finish_reason is FinishReason.ERROR
    toy.assert_idle()
    toy.check()
    fill_up(toy)
    assert answer(toy, PROMPT).cached_tokens == 40


def test_rows_are_preempted_for_want_of_window_blocks():
    """Each of three answers comes to need five window blocks beside those that prompts have in common."""
    toy = windowed(window_blocks=14, budget=8, rows=4)
    handles = [toy.submit(ask([seed, 2, 3], max_tokens=60)) for seed in (50, 60, 70, 80)]
    toy.run()
    assert toy.counters.totals().preemptions > 0
    for handle in handles:
        assert handle.drain().token_ids == oracle(handle.request)


def test_a_request_waits_for_the_window_blocks_of_its_window():
    toy = windowed(window_blocks=16, budget=16, rows=8)
    handles = [toy.submit(ask([seed, *PROMPT], max_tokens=4)) for seed in (50, 60, 70)]
    running = []
    while toy.pipeline.has_work:
        toy.step()
        running.append(toy.pipeline.scheduler.num_running)
    assert max(running) < 3
    assert toy.counters.totals().preemptions == 0
    for handle in handles:
        assert handle.drain().token_ids == oracle(handle.request)


def test_equal_blocks_of_two_rows_become_one_with_its_window_block():
    toy = windowed(budget=64)
    requests = [ask([*PROMPT[:20], last], max_tokens=20) for last in (50, 60)]
    handles = [toy.submit(request) for request in requests]
    toy.step()  # without waiting for each other: neither is a donor before it runs
    toy.run()
    for handle in handles:
        assert handle.drain().token_ids == oracle(handle.request)


@pytest.mark.parametrize("right", [0.0, 0.5, 0.9, 1.0])
def test_drafts_change_no_token(right):
    toy = windowed(rows=4, window_blocks=80)
    guesser = guess(toy, length=8, right=right)
    handles = [toy.submit(ask([seed, *PROMPT], max_tokens=40)) for seed in (50, 60, 70)]
    toy.run()
    for handle in handles:
        assert handle.drain().token_ids == oracle(handle.request)
    assert guesser.accepted
    toy.assert_idle()


def test_calibration_drops_no_window():
    toy = windowed(window_blocks=20)
    answer(toy, PROMPT, max_tokens=12)
    before = kept(toy)
    calibration = Calibration(PROBES)
    while calibration.pending:
        toy.pipeline.calibrate(calibration)
        toy.check()
    assert kept(toy) == before


# ---- where requests begin ----


def test_windows_are_kept_without_cutting_chunks():
    toy = windowed(budget=64)
    answer(toy, PROMPT, max_tokens=1)
    assert [lengths.tolist() for _, lengths in toy.executor.steps] == [[41]]
    assert kept(toy) == [40]


def test_the_next_turn_begins_at_the_end_of_the_answer():
    toy = windowed()
    first = answer(toy, PROMPT, max_tokens=12)
    fill_up(toy)
    # 52 tokens were computed: all but the last one of the answer.
    assert answer(toy, [*PROMPT, *first.token_ids, 7, 8, 9]).cached_tokens == 52


def test_a_turn_that_drops_the_last_answer_begins_at_the_end_of_the_prompt():
    toy = windowed()
    answer(toy, PROMPT, max_tokens=12)
    fill_up(toy)
    assert answer(toy, [*PROMPT[:40], 70, 71, 72]).cached_tokens == 40


def test_a_turn_begins_at_any_message_of_the_conversation():
    """Also at the first of six: a window at the beginning of a message costs no step."""
    toy = windowed(window_blocks=100, budget=128, blocks=200)
    messages = [[EOS, *range(at, at + 17)] for at in range(0, 72, 12)]
    answer(toy, list(chain(*messages)))
    for count in range(1, 6):
        fill_up(toy)
        changed = [*chain(*messages[:count]), EOS, 90 + count % 5, *range(40 + count, 60)]
        assert answer(toy, changed).cached_tokens == count * 18 // SIZE * SIZE


def test_long_answers_keep_a_window_in_every_interval():
    toy = windowed(interval=16)
    answer(toy, PROMPT[:5], max_tokens=50)
    assert kept(toy) == [4, 16, 32, 48, 52]


def test_a_prompt_that_is_cached_whole_computes_its_last_token_in_a_copy():
    toy = windowed()
    answer(toy, PROMPT)
    assert answer(toy, PROMPT[:40]).cached_tokens == 39
    assert len(toy.executor.copies) == len(toy.executor.window_copies) == 1


def test_as_long_as_there_is_room_a_prefix_is_found_wherever_it_ends():
    toy = windowed()
    answer(toy, PROMPT)
    for end in (38, 25, 14, 5):
        output = answer(toy, [*PROMPT[:end], 70, 71, 72])
        assert output.cached_tokens == end // SIZE * SIZE
    assert toy.blocks.windows.counts().cached > 10


def test_where_two_prompts_part_a_third_one_finds_a_window():
    toy = windowed()
    common = PROMPT[:25]
    answer(toy, [*common, *range(50, 66)])
    fill_up(toy)
    assert answer(toy, [*common, *range(66, 82)]).cached_tokens == 0
    fill_up(toy)
    assert answer(toy, [*common, *range(30, 46)]).cached_tokens == 24


def test_a_short_context_is_found_wherever_it_ends():
    """Up to the length of a window nothing is given back before the request ends, and the end is kept."""
    toy = windowed(window=64)
    answer(toy, PROMPT, max_tokens=12)
    assert answer(toy, [*PROMPT[:18], 70, 71, 72]).cached_tokens == 16


def test_requests_that_run_at_once_share_what_they_have_in_common():
    """The first one keeps the window where the others leave it, because they wait for it."""
    toy = windowed(budget=8, window_blocks=60)
    requests = [ask([*PROMPT[:26], first, *range(3)], max_tokens=4) for first in (50, 60, 70)]
    handles = [toy.submit(request) for request in requests]
    toy.run()
    outputs = [handle.drain() for handle in handles]
    assert [one.token_ids for one in outputs] == [oracle(request) for request in requests]
    assert [one.cached_tokens for one in outputs] == [0, 24, 24]


def test_children_of_one_prompt_compute_it_once_and_share_its_window():
    toy = windowed(budget=64)
    requests = [ask(PROMPT, temperature=1.0, seed=seed, max_tokens=3) for seed in range(4)]
    handles = [toy.submit(request) for request in requests]
    toy.step(2)
    assert toy.blocks.windows.counts().active < 2 * in_window(toy, handles[0])
    toy.run()
    outputs = [handle.drain() for handle in handles]
    assert [one.token_ids for one in outputs] == [oracle(request) for request in requests]
    assert [one.cached_tokens for one in outputs] == [0, 40, 40, 40]


def test_a_fork_at_the_current_end_shares_the_window_of_its_parent():
    toy = windowed()
    parent = toy.submit(ask(PROMPT, max_tokens=30))
    toy.step(7)
    (child,) = toy.fork(parent)
    toy.step()
    sequence = toy.sequences[child.request_id]
    assert sequence.start.tokens == len(child.request.prompt_ids) - 1
    assert sequence.start.parent_id == parent.request_id
    toy.run()
    assert child.drain().token_ids == oracle(child.request, penalty_start=len(PROMPT))
    assert parent.drain().token_ids == oracle(parent.request)


@pytest.mark.parametrize("at", [1, 3, 4, 17, 40, 41, 45, 58])
def test_a_fork_at_any_token_computes_at_most_an_interval(at):
    toy = windowed(interval=16)
    parent = toy.submit(ask(PROMPT, max_tokens=30))
    toy.step(26)
    (child,) = toy.fork(parent, at=at)
    toy.run()
    output = child.drain()
    assert output.token_ids == oracle(child.request, penalty_start=min(at, len(PROMPT)))
    assert at - output.cached_tokens <= 16


def test_without_a_prefix_cache_a_fork_at_the_end_still_shares():
    toy = windowed(prefixes=False)
    parent = toy.submit(ask(PROMPT, max_tokens=30))
    toy.step(7)
    (child,) = toy.fork(parent)
    toy.run()
    output = child.drain()
    assert output.cached_tokens == len(child.request.prompt_ids) - 1
    assert output.token_ids == oracle(child.request, penalty_start=len(PROMPT))
    assert kept(toy) == []


def test_prompt_logprobs_are_computed_from_the_first_token():
    toy = windowed()
    answer(toy, PROMPT)
    assert answer(toy, PROMPT, prompt_logprobs=1).cached_tokens == 0


def test_the_price_counts_the_tokens_behind_the_last_window():
    toy = windowed()
    answer(toy, PROMPT, max_tokens=12)
    tokens = toy.table.token_table[0, :53].copy()
    assert toy.blocks.lookup_prefix(tokens[:35], b"") == (8, 0)
    fill_up(toy)
    assert toy.blocks.lookup_prefix(tokens, b"") == (13, 0)
    # The windows that are kept after 40 and 52 tokens contain the one after 48, and not the one after 32.
    assert toy.blocks.lookup_prefix(tokens[:50], b"") == (12, 0)
    assert toy.blocks.lookup_prefix(tokens[:35], b"") == (0, 0)


# ---- preemption and eviction ----


def test_a_preempted_request_goes_on_from_its_last_block_border():
    toy = windowed()
    handle = toy.submit(ask(PROMPT, max_tokens=30))
    toy.step(15)
    computed = int(toy.table.num_computed[0])
    toy.pipeline.scheduler.preempt(0)
    toy.check()
    toy.step()
    start = toy.sequences[handle.request_id].start.tokens
    assert computed - SIZE < start <= computed
    toy.run()
    assert handle.drain().token_ids == oracle(handle.request)


def test_the_window_that_saves_least_is_dropped_first():
    """Among equally recent ones; a prompt of 80 tokens saves more than one of ten."""
    toy = windowed(window_blocks=20, interval=256, blocks=100)
    answer(toy, LONG[:81], max_tokens=1)
    for seed in range(80, 96):
        answer(toy, [seed, *range(9)], max_tokens=1)
    assert 80 in kept(toy)
    assert toy.blocks.windows.counts().evicted > 0


def test_the_window_of_an_evicted_block_is_dropped():
    toy = windowed(blocks=16)
    answer(toy, PROMPT)
    assert kept(toy)
    blocks = toy.blocks.allocate_hidden(16)
    assert kept(toy) == []
    toy.blocks.windows.check_integrity()
    toy.blocks.release(blocks)
    assert answer(toy, PROMPT).cached_tokens == 0


@pytest.mark.parametrize(("count", "most"), [(400, 1.1), (60, 1.2)])
def test_a_session_with_dropped_reasoning_is_not_read_again(count, most):
    toy = windowed(window_blocks=count, blocks=400, context=1200, budget=64)
    assert computed_per_new_token(toy, session_prompts()) <= most


# ---- the store ----


def test_an_evicted_window_comes_back_with_its_blocks():
    toy = windowed(blocks=16, swap=64, stored_states=8)
    answer(toy, PROMPT)
    toy.blocks.release(toy.blocks.allocate_hidden(16))
    assert kept(toy) == []
    assert answer(toy, PROMPT).cached_tokens == 40
    assert toy.executor.windows_written == 4  # attention reads from token 24 on


def test_a_stored_window_is_used_when_its_blocks_are_still_in_the_pool():
    toy = windowed(window_blocks=14, swap=64, stored_states=8, budget=16)
    answer(toy, PROMPT, max_tokens=1)
    for seed in (50, 60, 70):
        answer(toy, [seed, *PROMPT])
    assert len(toy.blocks.resident(np.array(PROMPT, np.int32), b"")) == 10
    assert toy.blocks.lookup_prefix(np.array(PROMPT, np.int32), b"") == (10, 0)
    assert toy.executor.windows_written == 0
    assert answer(toy, PROMPT).cached_tokens == 40
    assert toy.executor.windows_written > toy.executor.swapped_in == 0


def test_a_restart_finds_stored_windows(tmp_path):
    options = {"swap": 64, "swap_path": tmp_path / "toy.swap", "stored_states": 8}
    toy = windowed(**options)
    first = answer(toy, PROMPT, max_tokens=12)
    toy.blocks.windows.close()
    toy.tier.close()
    toy = windowed(**options)
    assert answer(toy, [*PROMPT, *first.token_ids, 7]).cached_tokens == 52


def test_a_damaged_window_is_computed_again(tmp_path):
    options = {"swap": 64, "swap_path": tmp_path / "toy.swap", "stored_states": 8}
    toy = windowed(**options)
    answer(toy, PROMPT, max_tokens=2)
    toy.blocks.windows.close()
    toy.tier.close()
    for path in tmp_path.glob("toy.swap.states/*"):
        path.write_bytes(path.read_bytes()[:-1] + b"!")
    toy = windowed(**options)
    assert answer(toy, PROMPT).cached_tokens == 0
    assert toy.blocks.windows.saver.store.num_damaged > 0


def test_a_damaged_block_below_a_stored_window_is_computed_again(monkeypatch, tmp_path):
    options = {"swap": 64, "swap_path": tmp_path / "toy.swap", "stored_states": 8}
    toy = windowed(**options)
    answer(toy, PROMPT, max_tokens=2)
    toy.blocks.windows.close()
    toy.tier.close()
    toy = windowed(**options)
    load = toy.tier.load
    monkeypatch.setattr(toy.tier, "load", lambda entries, blocks: load(entries[:3], blocks[:3]))
    assert answer(toy, PROMPT).cached_tokens == 0
    toy.assert_idle()


def test_a_window_that_cannot_be_written_back_is_computed_again(caplog):
    toy = windowed(window_blocks=14, swap=64, stored_states=8, budget=16)
    answer(toy, PROMPT, max_tokens=1)
    for seed in (50, 60, 70):
        answer(toy, [seed, *PROMPT])
    toy.executor.fail_swap = True
    with caplog.at_level(logging.WARNING):
        assert answer(toy, PROMPT).cached_tokens == 0
    assert "could not be restored" in caplog.text
    toy.check()
