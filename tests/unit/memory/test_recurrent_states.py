"""State slots of a model with recurrent layers: what requests begin with, and what they leave behind.

The model's answers are functions of its state (`tests.fakes.recurrent_executor`), so every answer is also a
test that the state was the right one.
"""

import itertools
import logging

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

SIZE = 4
PROMPT = list(range(1, 42))  # ten blocks and a token


def recurrent(**options):
    defaults = {"allocator": BlockAllocator, "block_size": SIZE, "state_slots": 12, "interval": 64}
    return ToyPipeline(**defaults | options)


def answer(toy, prompt, **params):
    request = ask(prompt, **{"max_tokens": 6} | params)
    handle = toy.submit(request)
    toy.run()
    output = handle.drain()
    assert output.token_ids == oracle(request, max_model_len=toy.context)
    return output


def kept(toy):
    """Tokens after which there is a checkpoint, ascending."""
    return sorted(one.tokens for one in toy.blocks.recurrent.checkpoints)


def steps_of(toy):
    return [lengths.tolist() for _, lengths in toy.executor.steps]


# ---- prompts ----


def test_a_prompt_is_computed_in_chunks_that_end_at_its_borders():
    toy = recurrent(budget=16)
    answer(toy, PROMPT, max_tokens=1)
    assert steps_of(toy) == [[16], [16], [8], [1]]
    assert kept(toy) == [40]


def test_the_same_prompt_begins_at_its_last_border():
    toy = recurrent()
    assert answer(toy, PROMPT).cached_tokens == 0
    assert answer(toy, PROMPT).cached_tokens == 40
    assert len(toy.executor.state_copies) > 0


def test_the_next_turn_begins_at_the_end_of_the_answer():
    toy = recurrent()
    first = answer(toy, PROMPT, max_tokens=12)
    # 52 tokens were computed: all but the last one of the answer.
    assert answer(toy, [*PROMPT, *first.token_ids, 7, 8, 9]).cached_tokens == 52


def test_a_turn_that_drops_the_last_answer_begins_at_the_end_of_the_prompt():
    toy = recurrent()
    answer(toy, PROMPT, max_tokens=12)
    assert answer(toy, [*PROMPT[:40], 70, 71, 72]).cached_tokens == 40


def test_a_template_that_writes_the_last_message_differently_finds_the_border_before_it():
    """The block border before the control token, not the later one before the end of the prompt."""
    toy = recurrent()
    answer(toy, [*PROMPT[:34], EOS, 50, 51, 52, 53, 54, 55, 56, 57])
    assert answer(toy, [*PROMPT[:34], EOS, 50, 60, 61, 62, 63, 64, 65]).cached_tokens == 32


def test_long_prompts_have_a_checkpoint_in_every_interval():
    toy = recurrent(interval=16, budget=64)
    prompt = [i % 90 for i in range(70)]
    answer(toy, prompt, max_tokens=1)
    assert kept(toy) == [16, 32, 48, 64, 68]
    assert answer(toy, [*prompt[:40], 91, 92]).cached_tokens == 32


def test_long_answers_have_a_checkpoint_in_every_interval():
    toy = recurrent(interval=16)
    answer(toy, PROMPT[:5], max_tokens=50)
    assert kept(toy) == [4, 16, 32, 48, 52]


def test_an_interval_is_rounded_down_to_whole_blocks():
    assert recurrent(interval=15).blocks.recurrent.interval == 12
    assert recurrent(interval=3).blocks.recurrent.interval == SIZE


def test_where_two_prompts_part_a_third_one_finds_a_state():
    toy = recurrent()
    common = PROMPT[:25]
    assert answer(toy, [*common, *range(50, 66)]).cached_tokens == 0
    assert answer(toy, [*common, *range(66, 82)]).cached_tokens == 0
    assert answer(toy, [*common, *range(30, 46)]).cached_tokens == 24


def test_requests_that_run_at_once_share_what_they_have_in_common():
    """The first one makes a checkpoint where the others leave it, because they wait for it."""
    toy = recurrent(budget=8)
    requests = [ask([*PROMPT[:26], first, *range(3)], max_tokens=4) for first in (50, 60, 70)]
    handles = [toy.submit(request) for request in requests]
    toy.run()
    outputs = [handle.drain() for handle in handles]
    assert [one.token_ids for one in outputs] == [oracle(request) for request in requests]
    assert [one.cached_tokens for one in outputs] == [0, 24, 24]


def test_prompt_logprobs_are_computed_from_a_state_before_them():
    toy = recurrent()
    answer(toy, PROMPT)
    assert answer(toy, PROMPT, prompt_logprobs=1).cached_tokens == 0


def test_requests_with_different_cache_salts_share_no_state():
    toy = recurrent(swap=64, stored_states=64)
    for salt in ("a", "b", None):
        request = ask(PROMPT, max_tokens=3)
        request = type(request)(request.prompt_ids, request.sampling, cache_salt=salt)
        handle = toy.submit(request)
        toy.run()
        while toy.blocks.save_idle():
            pass
        output = handle.drain()
        assert (output.cached_tokens, output.token_ids) == (0, oracle(request))


def test_without_a_prefix_cache_nothing_is_kept_and_no_chunk_is_cut():
    toy = recurrent(prefixes=False, budget=64)
    answer(toy, PROMPT, max_tokens=3)
    assert steps_of(toy) == [[41], [1], [1]]
    assert kept(toy) == []


# ---- forks ----


def test_a_fork_at_the_current_end_copies_the_state_of_its_parent():
    toy = recurrent()
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
    toy = recurrent(interval=16, state_slots=20)
    parent = toy.submit(ask(PROMPT, max_tokens=30))
    toy.step(26)
    (child,) = toy.fork(parent, at=at)
    toy.run()
    output = child.drain()
    assert output.token_ids == oracle(child.request, penalty_start=min(at, len(PROMPT)))
    assert at - output.cached_tokens <= 16


def test_children_of_one_prompt_compute_it_once():
    toy = recurrent(budget=64)
    requests = [ask(PROMPT, temperature=1.0, seed=seed, max_tokens=3) for seed in range(4)]
    handles = [toy.submit(request) for request in requests]
    toy.run()
    outputs = [handle.drain() for handle in handles]
    assert [one.token_ids for one in outputs] == [oracle(request) for request in requests]
    assert [one.cached_tokens for one in outputs] == [0, 40, 40, 40]


def test_a_fork_whose_parent_has_moved_on_begins_at_its_tail():
    toy = recurrent()
    parent = toy.submit(ask(PROMPT, max_tokens=60))
    toy.step(10)
    (child,) = toy.fork(parent)
    toy.waiting.remove(toy.sequences[child.request_id])
    toy.pipeline.step()  # the parent computes another token before the child is admitted
    toy.waiting.requeue(toy.sequences[child.request_id])
    toy.run()
    output = child.drain()
    assert output.token_ids == oracle(child.request, penalty_start=len(PROMPT))
    assert len(child.request.prompt_ids) - output.cached_tokens <= SIZE


# ---- slots ----


def test_requests_wait_for_a_slot_and_leave_some_to_checkpoints():
    toy = recurrent(state_slots=3)
    handles = [toy.submit(ask([seed, 2, 3], max_tokens=8)) for seed in range(5)]
    running = []
    while toy.pipeline.has_work:
        toy.step()
        running.append(toy.pipeline.scheduler.num_running)
    assert max(running) == 2
    for handle in handles:
        assert handle.drain().token_ids == oracle(handle.request)


def test_the_last_slot_passes_from_a_checkpoint_to_the_row_that_begins_with_it():
    toy = recurrent(state_slots=1)
    handle = toy.submit(ask(PROMPT, max_tokens=30))
    toy.step()
    while int(toy.table.num_computed[0]) != 48:
        toy.step()
    toy.pipeline.scheduler.preempt(0)
    assert kept(toy) == [48]
    toy.step()
    assert toy.sequences[handle.request_id].start.tokens == 48
    assert (kept(toy), toy.executor.state_copies) == ([], [])
    toy.run()
    assert handle.drain().token_ids == oracle(handle.request)


def test_checkpoints_are_dropped_for_rows_up_to_the_reserve():
    toy = recurrent(state_slots=8)
    answer(toy, PROMPT, max_tokens=40)
    answer(toy, PROMPT[::-1], max_tokens=40)
    assert toy.blocks.recurrent.counts().checkpoints > 2
    handles = [toy.submit(ask([seed, 2], max_tokens=8)) for seed in range(8)]
    toy.step()
    counts = toy.blocks.recurrent.counts()
    assert (counts.active, counts.checkpoints) == (6, 2)
    toy.run()
    for handle in handles:
        assert handle.drain().token_ids == oracle(handle.request)


def test_the_checkpoint_that_saves_least_is_dropped_first():
    """Among equally recent ones; a prompt of 80 tokens saves more than one of ten."""
    toy = recurrent(state_slots=4, interval=256, blocks=100)
    long = [i % 90 for i in range(81)]
    answer(toy, long, max_tokens=1)
    for seed in range(90, 96):
        answer(toy, [seed, *range(9)], max_tokens=1)
    assert 80 in kept(toy)


def test_a_checkpoint_that_nobody_uses_is_dropped_in_the_end():
    toy = recurrent(state_slots=4, interval=256, blocks=1000)
    long = [i % 90 for i in range(41)]
    answer(toy, long, max_tokens=1)
    for seed in range(60):
        answer(toy, [seed, *range(70, 80)], max_tokens=1)
    assert 40 not in kept(toy)


def test_an_abort_frees_the_slot():
    toy = recurrent()
    handle = toy.submit(ask(PROMPT, max_tokens=60))
    toy.step(5)
    handle.abort()
    toy.assert_idle()
    toy.check()
    # What it had computed up to its tail is kept.
    assert answer(toy, PROMPT).cached_tokens == 40


def test_a_failed_step_frees_the_slots_and_keeps_earlier_checkpoints():
    toy = recurrent()
    handle = toy.submit(ask(PROMPT, max_tokens=60))
    toy.step(8)
    toy.executor.fail_with = [ExecutorError("broken")]
    toy.step()
    assert handle.drain().finish_reason is FinishReason.ERROR
    toy.assert_idle()
    assert answer(toy, PROMPT).cached_tokens == 40


def test_after_a_step_in_which_one_row_was_refused_the_others_go_on():
    toy = recurrent()
    handles = [toy.submit(ask([seed, *PROMPT], max_tokens=9)) for seed in (50, 60)]
    toy.step(6)
    toy.executor.fail_with = [ExecutorError("refused", entry=0)]
    toy.run()
    reasons = [handle.drain() for handle in handles]
    assert [one.finish_reason for one in reasons] == [FinishReason.ERROR, FinishReason.LENGTH]
    assert reasons[1].token_ids == oracle(handles[1].request)


def test_states_that_cannot_be_copied_are_not_kept(caplog):
    toy = recurrent()
    toy.executor.fail_copies = True
    with caplog.at_level(logging.WARNING):
        answer(toy, PROMPT)
    assert "could not be kept" in caplog.text
    assert kept(toy) == []


def test_calibration_borrows_free_slots():
    toy = recurrent()
    calibration = Calibration(PROBES)
    while calibration.pending:
        toy.pipeline.calibrate(calibration)
        toy.check()
    toy.assert_idle()
    answer(toy, PROMPT)


def test_calibration_drops_no_checkpoint():
    toy = recurrent(state_slots=3)
    answer(toy, PROMPT, max_tokens=12)
    before = kept(toy)
    calibration = Calibration(PROBES)
    while calibration.pending:
        toy.pipeline.calibrate(calibration)
    assert kept(toy) == before


# ---- preemption and eviction ----


def test_a_preempted_request_goes_on_from_its_tail():
    toy = recurrent()
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


def test_of_two_rows_the_one_without_any_state_gets_the_slot_for_its_tail():
    toy = recurrent(state_slots=3, rows=2)
    handles = [toy.submit(ask([seed, *PROMPT[1:]], max_tokens=30)) for seed in (50, 60)]
    toy.step()
    while int(toy.table.num_computed[1]) != 48:
        toy.step()
    (tail,) = toy.blocks.recurrent.checkpoints
    assert (tail.tokens, tail.parent) == (48, None)
    toy.run()
    for handle in handles:
        assert handle.drain().token_ids == oracle(handle.request)


def test_the_checkpoint_of_an_evicted_block_is_dropped():
    toy = recurrent(blocks=16)
    answer(toy, PROMPT)
    assert kept(toy)
    blocks = toy.blocks.allocate(16)
    assert kept(toy) == []
    toy.blocks.recurrent.check_integrity()
    toy.blocks.release(blocks)
    assert answer(toy, PROMPT).cached_tokens == 0


def test_a_request_preempted_for_want_of_blocks_finishes():
    toy = recurrent(blocks=26, rows=4)
    handles = [toy.submit(ask([seed, *PROMPT[1:20]], max_tokens=40)) for seed in (50, 60, 70)]
    toy.run()
    assert toy.counters.totals().preemptions > 0
    for handle in handles:
        assert handle.drain().token_ids == oracle(handle.request)


# ---- drafts ----


@pytest.mark.parametrize("right", [0.0, 0.5, 0.9, 1.0])
def test_drafts_change_no_token(right):
    toy = recurrent(state_slots=16, rows=4)
    guesser = guess(toy, length=8, right=right)
    handles = [toy.submit(ask([seed, *PROMPT], max_tokens=40)) for seed in (50, 60, 70)]
    toy.run()
    for handle in handles:
        assert handle.drain().token_ids == oracle(handle.request)
    assert guesser.accepted
    assert bool(guesser.accepted_at) == (right > 0)
    assert kept(toy)[-1] == 80  # 42 tokens and 39 of the answer
    toy.assert_idle()


def test_a_rejected_draft_takes_the_state_back_before_the_step():
    toy = recurrent(block_size=16)
    guess(toy, length=8, right=0.0)
    handle = toy.submit(ask(PROMPT, max_tokens=30))
    while not toy.pipeline.scheduler.speculation.accepted:
        toy.step()
    computed, known = int(toy.table.num_computed[0]), int(toy.table.num_tokens[0])
    assert known - computed == 2  # the token before the draft, and the one sampled instead of it
    ((source, target),) = toy.executor.state_copies[-1:]
    assert target == toy.blocks.recurrent.slots[0]
    assert (target, source) in toy.executor.state_copies
    toy.run()
    assert handle.drain().token_ids == oracle(handle.request)


def test_accepted_drafts_are_not_computed_again():
    toy = recurrent(block_size=16)
    guess(toy, length=8, right=1.0)
    handle = toy.submit(ask(PROMPT, max_tokens=30))
    toy.run()
    assert handle.drain().token_ids == oracle(handle.request)
    assert sum(sum(lengths) for lengths in steps_of(toy)) == len(PROMPT) + 29


def test_no_step_with_drafts_goes_beyond_a_block_border():
    toy = recurrent(rows=1)
    guess(toy, length=8, right=1.0)
    ends = []
    toy.executor.watch = lambda plan: ends.append(
        (plan.positions[0] // SIZE, plan.positions[-1] // SIZE)
    )
    toy.submit(ask(PROMPT[:4], max_tokens=40))
    toy.run()
    assert all(first == last for first, last in ends[2:])


def test_without_a_free_slot_there_are_no_drafts():
    toy = recurrent(state_slots=2)
    guesser = guess(toy, length=8, right=1.0)
    handle = toy.submit(ask(PROMPT, max_tokens=20))  # its checkpoint has the other slot
    toy.run()
    assert handle.drain().token_ids == oracle(handle.request)
    assert guesser.accepted == []


def test_a_state_that_cannot_be_taken_back_fails_its_request():
    toy = recurrent(block_size=16)
    guess(toy, length=8, right=0.0)
    handle = toy.submit(ask(PROMPT, max_tokens=30))
    execute = toy.executor.execute

    def fail_after_drafts(plan):
        toy.executor.fail_copies = bool(plan.num_draft_tokens.size)
        return execute(plan)

    toy.executor.execute = fail_after_drafts
    toy.run()
    assert handle.drain().finish_reason is FinishReason.ERROR
    toy.assert_idle()
    toy.check()


# ---- the state store ----


def test_an_evicted_state_comes_back_with_its_blocks():
    toy = recurrent(blocks=16, swap=64, stored_states=8)
    answer(toy, PROMPT)
    toy.blocks.release(toy.blocks.allocate(16))
    assert kept(toy) == []
    output = answer(toy, PROMPT)
    assert output.cached_tokens == 40
    assert toy.executor.states_written == 1


def test_a_stored_state_is_used_when_its_blocks_are_still_in_the_pool():
    toy = recurrent(state_slots=2, swap=64, stored_states=8)
    answer(toy, PROMPT)
    answer(toy, PROMPT[::-1])  # its checkpoints take the slot
    assert answer(toy, PROMPT).cached_tokens == 40
    assert (toy.executor.states_written, toy.executor.swapped_in) == (1, 0)


def test_a_restart_finds_stored_states(tmp_path):
    options = {"swap": 64, "swap_path": tmp_path / "toy.swap", "stored_states": 8}
    toy = recurrent(**options)
    first = answer(toy, PROMPT, max_tokens=12)
    toy.blocks.recurrent.close()
    toy.tier.close()
    toy = recurrent(**options)
    assert answer(toy, [*PROMPT, *first.token_ids, 7]).cached_tokens == 52


def test_a_damaged_state_is_computed_again(tmp_path):
    options = {"swap": 64, "swap_path": tmp_path / "toy.swap", "stored_states": 8}
    toy = recurrent(**options)
    answer(toy, PROMPT, max_tokens=2)
    toy.blocks.recurrent.close()
    toy.tier.close()
    for path in tmp_path.glob("toy.swap.states/*"):
        path.write_bytes(path.read_bytes()[:-1] + b"!")
    toy = recurrent(**options)
    assert answer(toy, PROMPT).cached_tokens == 0
    assert toy.blocks.recurrent.saver.store.num_damaged > 0


def test_a_damaged_block_below_a_stored_state_is_computed_again(monkeypatch, tmp_path):
    options = {"swap": 64, "swap_path": tmp_path / "toy.swap", "stored_states": 8}
    toy = recurrent(**options)
    answer(toy, PROMPT, max_tokens=2)
    toy.blocks.recurrent.close()
    toy.tier.close()
    toy = recurrent(**options)
    load = toy.tier.load
    monkeypatch.setattr(toy.tier, "load", lambda entries, blocks: load(entries[:3], blocks[:3]))
    assert answer(toy, PROMPT).cached_tokens == 0
    toy.assert_idle()


def test_a_state_that_cannot_be_written_back_is_computed_again(caplog):
    toy = recurrent(state_slots=2, swap=64, stored_states=8)
    answer(toy, PROMPT)
    answer(toy, PROMPT[::-1])
    toy.executor.fail_swap = True
    assert answer(toy, PROMPT).cached_tokens == 0
    assert "could not be restored" in caplog.text


def test_idle_engines_store_the_most_valuable_states_first():
    toy = recurrent(swap=64, stored_states=2, interval=16)
    answer(toy, [i % 90 for i in range(70)], max_tokens=1)
    states = toy.blocks.recurrent
    while toy.blocks.save_idle():
        pass
    saved = [one for one in states.checkpoints if one.saved]
    others = [one for one in states.checkpoints if not one.saved]
    assert len(saved) == len(states.saver.store) == 2
    assert min(one.priority for one in saved) >= max(one.priority for one in others)


def test_a_checkpoint_between_two_others_is_not_stored_when_it_is_dropped():
    toy = recurrent(state_slots=5, rows=1, interval=16, swap=64, stored_states=64)
    answer(toy, [i % 90 for i in range(200)], max_tokens=1)
    states = toy.blocks.recurrent
    assert states.checkpoints.num_evicted > 5
    assert len(states.saver.store) == toy.executor.states_read == 0


def test_a_victim_that_is_cheaper_to_compute_is_not_stored(monkeypatch):
    toy = recurrent(blocks=24, swap=64, stored_states=8)
    monkeypatch.setattr(toy.tier, "is_cheaper", lambda blocks, recompute: False)
    handle = toy.submit(ask(PROMPT, max_tokens=30))
    toy.step(8)
    toy.pipeline.scheduler.preempt(0)
    toy.blocks.release(toy.blocks.allocate(24))
    assert toy.executor.states_read == toy.executor.swapped_out == 0
    toy.run()
    assert handle.drain().token_ids == oracle(handle.request)


def test_blocks_behind_the_last_checkpoint_are_not_worth_swapping(monkeypatch):
    toy = recurrent(blocks=64, swap=64, stored_states=8)
    toy.executor.fail_copies = True
    asked = []
    monkeypatch.setattr(
        toy.tier, "is_cheaper", lambda blocks, recompute: asked.append(blocks.tolist())
    )
    toy.submit(ask(PROMPT, max_tokens=30))
    toy.step(7)
    toy.pipeline.scheduler.preempt(0)
    assert asked == [[]]
    toy.executor.fail_copies = False
    toy.run()


# ---- an agent's session ----


def session_prompts(users=3, steps=4):
    """The prompts of an agent's run: a template drops the reasoning of answers before the last user message.

    An answer is ten tokens of reasoning and six of content; messages begin with a control token.
    """
    fill = itertools.count()

    def words(count):
        return [next(fill) * 7 % 90 for _ in range(count)]

    kept, run = [EOS, *words(60)], []  # run: (is reasoning, tokens) since the last user message
    for _ in range(users):
        kept += [token for is_reasoning, part in run if not is_reasoning for token in part]
        kept += [EOS, *words(20)]
        run = []
        for _ in range(steps):
            yield [*kept, *(token for _, part in run for token in part), EOS, 95]
            run += [(False, [EOS, 95]), (True, words(10)), (False, [*words(6), EOS, *words(25)])]


def common(one, other):
    size = min(len(one), len(other))
    return next((at for at in range(size) if one[at] != other[at]), size)


def computed_per_new_token(toy, prompts):
    """Tokens computed for each token that no earlier prompt had at its place."""
    seen, new, computed = [], 0, 0
    for prompt in prompts:
        output = answer(toy, prompt, max_tokens=2)
        new += len(prompt) - max((common(prompt, one) for one in seen), default=0)
        computed += len(prompt) - output.cached_tokens
        seen.append(prompt)
    assert new < sum(map(len, seen)) / 4
    return computed / new


@pytest.mark.parametrize(("slots", "most"), [(64, 1.05), (8, 1.2), (3, 1.6)])
def test_a_session_with_dropped_reasoning_is_not_read_again(slots, most):
    toy = recurrent(state_slots=slots, blocks=400, context=1200, budget=64)
    assert computed_per_new_token(toy, session_prompts()) <= most


def test_sessions_that_take_turns_keep_their_last_states():
    toy = recurrent(state_slots=24, blocks=2000, context=1200, budget=64)
    prompts = [
        [(token + session) % 90 if token < 95 else token for token in prompt]
        for prompt in session_prompts()
        for session in range(8)
    ]
    assert computed_per_new_token(toy, prompts) <= 1.5
