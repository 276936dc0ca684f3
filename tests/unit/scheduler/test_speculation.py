"""Speculation: exact for any drafts, finished where the answer finishes, rejected blocks freed at once.

Numbers in names are those of `docs/reliability.md`.
"""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from engine._core import BlockAllocator, draft_by_lookup
from engine.api.request import FinishReason
from engine.api.step_costs import StepCosts
from engine.executors.base import MAX_DRAFT_TOKENS
from engine.executors.reference_sampler import log_softmax
from engine.scheduler.speculation import (
    _MAX_DRAFT_COST,
    _MIN_SPEEDUP,
    MAX_MATCH,
    Drafts,
    Speculation,
    _maximize_throughput,
)
from tests.fakes.guesser import guess
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle, toy_logits
from tests.fakes.toy_pipeline import ToyPipeline
from tests.fakes.toy_tokenizer import EOS, ToyTokenizer

PROMPT = [(3 + 7 * i) % 90 for i in range(10)]
CHEAP = StepCosts(constant=1.0, prefill_token=1.0, decode_row=1e-6, kv_token=0.0)
"""Another token costs next to nothing."""


def guessing(*, right=1.0, length=6, seed=0, **options):
    toy = ToyPipeline(**{"allocator": BlockAllocator} | options)
    return toy, guess(toy, length=length, right=right, seed=seed)


def looking_up(costs=CHEAP, **options):
    """A toy pipeline with real prompt lookup, on a machine of known costs."""
    toy = ToyPipeline(**{"allocator": BlockAllocator, "speculation": True} | options)
    toy.pipeline.scheduler.work.model._costs = costs
    toy.pipeline.scheduler.work.model._observations = 1
    return toy


def answer(toy, request):
    handle = toy.submit(request)
    toy.run()
    return handle.wait_result()


# ---- exactness ----


@given(
    prompts=st.lists(st.lists(st.integers(0, 97), min_size=1, max_size=12), min_size=1, max_size=4),
    right=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    length=st.integers(1, 15),
    budget=st.sampled_from([2, 7, 16, 64]),
    tokens=st.integers(40, 150),
    block_size=st.sampled_from([1, 3, 4, 16]),
    temperature=st.sampled_from([0.0, 0.8]),
    penalty=st.sampled_from([0.0, 1.5]),
    dry=st.sampled_from([{}, {"dry_multiplier": 3.0, "dry_sequence_breakers": ("e",)}]),
    bias=st.sampled_from([(), ((5, 6.0), (9, -3.0))]),
    logprobs=st.sampled_from([None, 0, 3]),
    ignore_eos=st.booleans(),
    stop=st.sampled_from([(), ("a", "b", "zz"), ("q",)]),
    max_tokens=st.integers(1, 16),
)
@settings(max_examples=40, deadline=None)
def test_52_answers_are_equal_with_and_without_speculation(
    prompts, right, length, budget, tokens, block_size, stop, penalty, dry, bias, **params
):
    def run(speculate):
        toy = ToyPipeline(
            allocator=BlockAllocator,
            budget=budget,
            blocks=-(-tokens // block_size),
            block_size=block_size,
            rows=4,
        )
        guesser = guess(toy, length=length, right=right) if speculate else None
        handles = [
            toy.submit(
                ask(
                    prompt,
                    seed=number,
                    stop=stop,
                    frequency_penalty=penalty,
                    logit_bias=bias,
                    **dry,
                    **params,
                )
            )
            for number, prompt in enumerate(prompts)
        ]
        toy.run()
        toy.assert_idle()
        return [handle.wait_result() for handle in handles], toy, guesser

    (plain, without, _), (drafted, toy, guesser) = run(False), run(True)
    for one, other in zip(plain, drafted, strict=True):
        assert other.token_ids == one.token_ids
        assert other.text == one.text
        assert other.finish_reason is one.finish_reason
        assert other.logprobs == one.logprobs
        assert other.top_logprobs == one.top_logprobs
        assert one.drafted == (False,) * len(one.token_ids)
        assert other.drafted == tuple(
            (other.request_id, at) in guesser.accepted_at for at in range(len(other.token_ids))
        )
    assert toy.counters.totals().generation_tokens == without.counters.totals().generation_tokens


def test_50_a_seeded_answer_replays_with_drafts_in_any_batch():
    request = {"temperature": 1.0, "seed": 11, "max_tokens": 20}
    expected = oracle(ask(PROMPT, **request))
    for right, others, budget in ((1.0, 0, 64), (0.5, 3, 7), (0.8, 7, 16)):
        toy, _ = guessing(right=right, budget=budget)
        handles = [
            toy.submit(ask([n + 1] * 5, max_tokens=9, temperature=1.0)) for n in range(others)
        ]
        handles.append(toy.submit(ask(PROMPT, **request)))
        toy.run()
        assert handles[-1].wait_result().token_ids == expected


def test_a_batch_says_which_of_its_tokens_are_accepted_drafts():
    toy, guesser = guessing(length=15)
    handle = toy.submit(ask(PROMPT, max_tokens=20))
    drained = []
    while not handle.finished:
        toy.step()
        batch = handle.drain()
        drained += () if batch is None else batch.drafted
    assert sum(drained) == sum(guesser.accepted) > 10
    assert tuple(drained) == handle.wait_result().drafted


def test_a_row_that_is_used_again_has_no_marks_of_the_request_before():
    toy, _ = guessing(rows=1, length=15)
    # The stop string may end in the middle of accepted draft tokens.
    first = answer(toy, ask(PROMPT, max_tokens=20, stop=("a", "b", "c", "d", "e")))
    assert sum(first.drafted) > 0
    assert len(first.token_ids) < 20
    toy.pipeline.scheduler.speculation = None
    second = answer(toy, ask(PROMPT, max_tokens=20))
    assert len(second.token_ids) == 20
    assert second.drafted == (False,) * 20


def test_preemption_keeps_the_marks_of_accepted_drafts():
    toy, guesser = guessing(length=3, blocks=12, block_size=4)
    handles = [toy.submit(ask(prompt, max_tokens=20)) for prompt in (PROMPT, PROMPT[::-1])]
    toy.run()
    assert toy.counters.totals().preemptions > 0
    for handle in handles:
        output = handle.wait_result()
        assert output.drafted == tuple(
            (output.request_id, at) in guesser.accepted_at for at in range(20)
        )


def test_51_logprobs_of_accepted_draft_tokens_are_log_softmax():
    toy, guesser = guessing()
    output = answer(toy, ask(PROMPT, logprobs=2, max_tokens=16))
    assert sum(guesser.accepted) > 5
    known = list(PROMPT)
    for token, logprob, top in zip(
        output.token_ids, output.logprobs, output.top_logprobs, strict=True
    ):
        logprobs = log_softmax(toy_logits(known))
        assert logprob == pytest.approx(logprobs[token], abs=1e-6)
        assert [one.token_id for one in top] == np.argsort(-logprobs, kind="stable")[:2].tolist()
        known.append(token)


# ---- finishes inside accepted drafts ----


def test_52_a_stop_string_inside_an_accepted_run_drops_the_rest():
    whole = oracle(ask(PROMPT, max_tokens=20))
    text = ToyTokenizer().decode(whole)
    toy, guesser = guessing(length=15)
    output = answer(toy, ask(PROMPT, max_tokens=20, stop=(text[6:8],)))
    found = text.index(text[6:8])
    assert output.text == text[:found]
    assert output.token_ids == whole[: found + 2]
    assert output.finish_reason is FinishReason.STOP
    assert sum(guesser.accepted) > 0
    assert toy.counters.totals().generation_tokens == found + 2
    toy.assert_idle()
    # No block after the stop is indexed: a prompt that continues the answer misses there.
    again = answer(toy, ask([*PROMPT, *whole], max_tokens=3))
    assert again.cached_tokens <= len(PROMPT) + found + 2
    assert again.token_ids == oracle(ask([*PROMPT, *whole], max_tokens=3))


def test_52_a_stop_token_is_never_passed():
    toy, _ = guessing(force={4: EOS}, length=15)
    output = answer(toy, ask(PROMPT, ignore_eos=False))
    assert output.token_ids == oracle(ask(PROMPT, ignore_eos=False), force={4: EOS})
    assert output.token_ids[-1] == EOS
    assert len(output.token_ids) == 5


@pytest.mark.parametrize("max_tokens", [1, 2, 3, 7])
def test_52_max_tokens_is_met_exactly(max_tokens):
    toy, _ = guessing(length=15)
    assert len(answer(toy, ask(PROMPT, max_tokens=max_tokens)).token_ids) == max_tokens


def test_an_answer_to_the_contexts_end():
    toy, _ = guessing(length=15, context=32)
    output = answer(toy, ask(PROMPT, max_tokens=None))
    assert len(output.token_ids) == 32 - len(PROMPT)
    assert output.finish_reason is FinishReason.LENGTH


def test_nan_logits_after_accepted_tokens_keep_those_tokens():
    expected = oracle(ask(PROMPT, max_tokens=12))
    for length in (0, 8):
        toy, guesser = guessing(length=length)
        toy.executor.poison = lambda history: len(history) == len(PROMPT) + 6
        output = answer(toy, ask(PROMPT, max_tokens=12))
        assert output.finish_reason is FinishReason.ERROR
        assert output.token_ids == expected[:6]
        assert (sum(guesser.accepted) > 0) == (length > 0)
        toy.assert_idle()


# ---- blocks and rows ----


def test_rejected_drafts_release_their_blocks_and_are_not_indexed():
    toy, _ = guessing(right=0.0, length=15, block_size=2, blocks=40)
    handle = toy.submit(ask(PROMPT, max_tokens=20))
    while toy.pipeline.has_work:
        toy.step()
        row = toy.row(handle)
        if row >= 0:
            computed = int(toy.table.num_computed[row])
            assert toy.table.num_blocks[row] == -(-computed // 2)
            assert toy.table.num_indexed[row] <= computed // 2
    assert handle.wait_result().token_ids == oracle(ask(PROMPT, max_tokens=20))


def test_drafts_preempt_no_request():
    """A pool that two requests fill to the last block, with guesses of fifteen tokens each."""
    requests = [ask(PROMPT, max_tokens=6), ask(PROMPT[::-1], max_tokens=6)]
    for right in (None, 0.0, 1.0):
        toy = ToyPipeline(allocator=BlockAllocator, blocks=8, block_size=4)
        if right is not None:
            guess(toy, length=15, right=right)
        handles = [toy.submit(request) for request in requests]
        toy.run()
        assert toy.counters.totals().preemptions == 0
        for handle in handles:
            assert handle.wait_result().token_ids == oracle(handle.request)


def test_drafts_fill_spare_rows_only():
    seen = []
    toy, _ = guessing(length=15, rows=20, budget=64, blocks=400)
    toy.executor.watch = lambda plan: seen.append((len(plan.rows), len(plan.token_ids)))
    for count in (1, 5, 15, 16, 20):
        handles = [toy.submit(ask([n, count], max_tokens=20)) for n in range(count)]
        toy.run()
        for handle in handles:
            assert handle.wait_result().token_ids == oracle(handle.request)
    decoding = [(rows, tokens) for rows, tokens in seen if tokens < 2 * rows or rows < 5]
    assert all(tokens <= max(rows, MAX_DRAFT_TOKENS) for rows, tokens in decoding)
    assert any(tokens == MAX_DRAFT_TOKENS for rows, tokens in seen if 1 < rows < MAX_DRAFT_TOKENS)


def test_usage_counts_every_token_and_inter_token_latency_once():
    toy, guesser = guessing(length=5, right=0.7)
    toy.clock.tick = 0.001
    outputs = [answer(toy, ask([n, 3], max_tokens=20)) for n in range(3)]
    totals = toy.counters.totals()
    assert totals.generation_tokens == sum(len(one.token_ids) for one in outputs) == 60
    assert totals.accepted_draft_tokens == sum(guesser.accepted)
    assert totals.draft_tokens > totals.accepted_draft_tokens > 0
    assert totals.drafts == len(guesser.accepted)
    inter_token_latencies = toy.counters.state().histograms["inter_token_latency_seconds"]
    assert inter_token_latencies.counts.sum() == 60 - 3
    assert totals.steps < 60


def test_drafts_are_decodes_to_the_step_time_model():
    toy, _ = guessing(length=5)
    loads = []
    toy.pipeline.scheduler.work.model.observe = lambda load, seconds: loads.append(load)
    plans = []
    toy.executor.watch = lambda plan: plans.append(len(plan.token_ids))
    answer(toy, ask(PROMPT, max_tokens=20))
    assert loads[0].prefill_tokens == len(PROMPT)
    for load, tokens in zip(loads[1:], plans[1:], strict=True):
        assert (load.prefill_tokens, load.num_decode_rows) == (0, tokens)


# ---- what is proposed ----


def test_a_repeating_text_takes_fewer_steps():
    """Force the toy executor to repeat a text."""
    force = {at: 40 + at % 5 for at in range(60)}
    request = ask(PROMPT, max_tokens=50)
    for speculation in (False, True):
        toy = looking_up(force=force) if speculation else ToyPipeline(force=force)
        assert answer(toy, request).token_ids == oracle(request, force=force)
        steps = toy.counters.totals().steps
        assert steps == 50 if not speculation else steps < 20


def test_a_row_with_low_acceptance_stops_drafting_and_retries_later():
    """Two tokens that come again and again, never followed by the same."""
    force = {at: (7, 8, 10 + at % 80)[at % 3] for at in range(240)}
    even = StepCosts(constant=1.0, prefill_token=1.0, decode_row=0.45, kv_token=0.0)
    toy = looking_up(even, force=force, context=400, blocks=200)
    tried = []
    toy.executor.watch = lambda plan: tried.append(bool(plan.num_draft_tokens.size))
    request = ask(PROMPT, max_tokens=230)
    assert answer(toy, request).token_ids == oracle(request, force=force, max_model_len=400)
    assert any(tried[:30])
    assert sum(tried) < 20
    assert any(tried[60:])


@given(
    matched=st.lists(st.integers(2, 8), min_size=1, max_size=6),
    length=st.integers(1, 12),
    constant=st.floats(0.01, 10),
    decode=st.floats(0.001, 10),
)
@settings(max_examples=60, deadline=None)
def test_the_number_of_draft_tokens_is_the_best_by_the_estimates(matched, length, constant, decode):
    """Compared with all combinations of prefixes of each row's draft."""
    costs = StepCosts(constant, 1.0, decode, 0.0)
    toy = looking_up(costs, rows=8)
    speculation = toy.pipeline.scheduler.speculation
    rows = np.arange(len(matched), dtype=np.int32)
    spare = MAX_DRAFT_TOKENS - len(rows)
    lengths = np.full(len(rows), min(length, spare), np.int32)
    acceptance = speculation._acceptance(rows, lengths, np.array(matched, np.int32), spare)
    assert (np.diff(acceptance, axis=1) <= 0).all()

    num_scheduled_tokens = np.ones(len(rows), np.int32)
    counts = _maximize_throughput(
        acceptance, np.full(len(rows), 9), np.arange(len(rows)), num_scheduled_tokens, costs
    )
    values = np.sort(acceptance.ravel())[::-1]

    def speed(count):
        seconds = constant + decode * len(rows)
        each = min(decode, _MAX_DRAFT_COST * seconds / len(rows))
        return (len(rows) + values[:count].sum()) / (seconds + each * count)

    best = max(range(min(spare, int((values > 0).sum())) + 1), key=speed)
    if speed(best) >= _MIN_SPEEDUP * speed(0):
        assert speed(int(counts.sum())) == pytest.approx(speed(best))
        chosen = sum(acceptance[row, :count].sum() for row, count in enumerate(counts))
        assert chosen == pytest.approx(values[: counts.sum()].sum())
    else:
        assert not counts.any()


def test_a_costly_draft_token_is_proposed_where_acceptance_is_nearly_certain():
    dear = StepCosts(constant=0.0, prefill_token=1.0, decode_row=1.0, kv_token=0.0)
    force = {at: 40 + at % 5 for at in range(60)}
    toy = looking_up(dear, force=force)
    request = ask(PROMPT, max_tokens=50)
    assert answer(toy, request).token_ids == oracle(request, force=force)
    totals = toy.counters.totals()
    assert totals.accepted_draft_tokens > 0.8 * totals.draft_tokens > 0
    toy = looking_up(dear, force={at: (7, 8, 10 + at % 80)[at % 3] for at in range(60)})
    answer(toy, request)
    assert toy.counters.totals().draft_tokens == 0


def test_estimates_follow_what_is_accepted_and_are_the_requests_own():
    toy = looking_up()
    speculation = toy.pipeline.scheduler.speculation
    batch = np.array([3], np.int32)
    speculation._decay(batch, np.array([0], np.int32))
    drafts = Drafts(np.array([4], np.int32), np.array([0]), np.array([2], np.int32))
    at = (batch, np.array([4], np.int32), np.array([2], np.int32), 4)
    before = speculation._acceptance(*at)
    speculation.learn(batch, drafts, np.array([2], np.int32))  # two right, the third wrong
    after = speculation._acceptance(*at)[0] / np.concatenate(
        [[1], speculation._acceptance(*at)[0][:-1]]
    )
    prior = before[0] / np.concatenate([[1], before[0][:-1]])
    assert after[0] > prior[0]
    assert after[1] > prior[1]
    assert after[2] < prior[2]
    assert after[3] == pytest.approx(prior[3])  # what follows a miss was not tried
    speculation._decay(batch, np.array([500], np.int32))
    assert speculation._acceptance(*at) == pytest.approx(before, abs=1e-3)
    speculation.learn(batch, drafts, np.array([4], np.int32))
    toy.table.arrival[3] = 99  # another request has the row
    speculation._decay(batch, np.array([500], np.int32))
    assert speculation._acceptance(*at) == pytest.approx(before)


def test_no_drafts_are_proposed_before_step_times_are_measured():
    toy = ToyPipeline(allocator=BlockAllocator, speculation=True, force=dict.fromkeys(range(9), 5))
    assert isinstance(toy.pipeline.scheduler.speculation, Speculation)
    answer(toy, ask([5, 5, 5, 5], max_tokens=8))
    assert toy.counters.totals().drafts == 0
    assert MAX_MATCH < MAX_DRAFT_TOKENS


def lookup(tokens, *, room=8, stops=(-1,), width=8, **changes):
    arrays = {
        "token_table": np.array([tokens], np.int32),
        "stop_ids": np.array([stops], np.int32),
        "num_tokens": np.array([len(tokens)], np.int32),
        "room": np.array([room], np.int32),
        "rows": np.zeros(1, np.int32),
        "drafts": np.zeros((1, width), np.int32),
        "lengths": np.full(1, 7, np.int32),
        "matched": np.full(1, 7, np.int32),
    } | changes
    found = draft_by_lookup(*arrays.values(), min_match=2, max_match=4)
    length = int(arrays["lengths"][0])
    return found, arrays["drafts"][0, :length].tolist(), int(arrays["matched"][0])


def test_lookup_continues_the_latest_longest_match_up_to_a_stop():
    assert lookup([1, 2, 3, 4, 5, 9, 2, 3]) == (True, [4, 5, 9, 2, 3, 4, 5, 9], 2)
    assert lookup([1, 2, 3, 4, 5, 9, 2, 3], room=3) == (True, [4, 5, 9], 2)
    assert lookup([1, 2, 3, 4, 5, 9, 2, 3], stops=(5,)) == (True, [4], 2)
    assert lookup([1, 2, 3, 4, 2, 3], stops=(4,)) == (False, [], 2)
    assert lookup([1, 2, 3, 4, 2, 3], room=0) == (False, [], 0)
    assert lookup([1, 2, 3, 4, 2, 3], room=-1) == (False, [], 0)
    assert lookup([1, 2, 3, 4, 5, 6]) == (False, [], 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": np.ones(1, np.int32)},
        {"rows": np.full(1, -1, np.int32)},
        {"num_tokens": np.full(1, 99, np.int32)},
        {"num_tokens": np.full(1, -1, np.int32)},
        {"matched": np.zeros(2, np.int32)},
        {"lengths": np.zeros(2, np.int32)},
        {"stop_ids": np.zeros((2, 1), np.int32)},
    ],
)
def test_lookup_refuses_arrays_of_the_wrong_shape(changes):
    with pytest.raises(ValueError, match="do not fit"):
        lookup([1, 2, 1, 2], **changes)
