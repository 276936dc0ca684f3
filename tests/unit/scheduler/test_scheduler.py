"""The scheduler's decisions, observed in its step plans."""

import numpy as np
import pytest

from engine.api.errors import QueueFull
from engine.api.events import RequestPreempted, RequestScheduled
from engine.api.request import FinishReason
from engine.scheduler.plan_builder import PlanBuilder
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle
from tests.fakes.toy_pipeline import ToyPipeline, shape_of


def prompt(length, start=1):
    return [(start + i) % 90 for i in range(length)]


def answers(toy, requests):
    handles = [toy.submit(request) for request in requests]
    toy.run()
    toy.assert_idle()
    return [handle.drain() for handle in handles]


@pytest.mark.parametrize("length", [1, 3, 4, 5, 7, 8, 9, 15, 16, 17])
def test_prompts_around_block_boundaries(length):
    request = ask(prompt(length), max_tokens=9)
    (batch,) = answers(ToyPipeline(block_size=4), [request])
    assert batch.token_ids == oracle(request)


def test_a_prompt_to_the_end_of_the_context_gets_one_token():
    toy = ToyPipeline(blocks=64, context=64)
    request = ask(prompt(63), max_tokens=None)
    (batch,) = answers(toy, [request])
    assert len(batch.token_ids) == 1
    assert batch.finish_reason is FinishReason.LENGTH


def test_decodes_come_before_prefills_in_a_step():
    toy = ToyPipeline(budget=8)
    toy.submit(ask(prompt(4), max_tokens=20))
    toy.step()
    toy.submit(ask(prompt(20), max_tokens=4))
    toy.executor.steps.clear()
    toy.step(3)
    assert [step.lengths for step in shape_of(toy.executor.steps)] == [[1, 7], [1, 7], [1, 6]]


def test_one_budget_bounds_every_step():
    toy = ToyPipeline(budget=10)
    answers(toy, [ask(prompt(n), max_tokens=12) for n in (3, 9, 10, 11, 25, 2, 2, 40, 6)])
    assert max(sum(step.lengths) for step in shape_of(toy.executor.steps)) == 10


def test_more_requests_than_rows_wait_their_turn():
    toy = ToyPipeline(rows=2)
    order = []
    toy.events.subscribe(RequestScheduled, lambda event: order.append(event.request_id))
    requests = [ask(prompt(3, i), max_tokens=3) for i in range(6)]
    for request, batch in zip(requests, answers(toy, requests), strict=True):
        assert batch.token_ids == oracle(request)
    assert order == [request.request_id for request in requests]


def test_admission_asks_for_room_for_the_whole_prompt():
    toy = ToyPipeline(blocks=10, block_size=4, budget=4)
    toy.submit(ask(prompt(24), max_tokens=4))  # six blocks, taken one a step
    toy.step()
    assert toy.blocks.num_free == 9
    late = toy.submit(ask(prompt(20), max_tokens=4))  # five more would fit only now
    toy.step(3)
    assert toy.row(late) == -1
    toy.run()
    assert late.drain().token_ids == oracle(late.request)


def test_22_preemption_keeps_every_token():
    toy = ToyPipeline(blocks=10, block_size=4)
    requests = [ask(prompt(6, start), max_tokens=20) for start in range(5)]
    for request, batch in zip(requests, answers(toy, requests), strict=True):
        assert batch.token_ids == oracle(request)
    assert toy.counters.totals().preemptions > 0


def test_the_newest_request_is_preempted_and_the_oldest_never():
    toy = ToyPipeline(blocks=12, block_size=4)
    victims = []
    toy.events.subscribe(RequestPreempted, lambda event: victims.append(event.request_id))
    requests = [ask(prompt(6, start), max_tokens=24) for start in range(4)]
    answers(toy, requests)
    assert victims
    assert requests[0].request_id not in victims
    assert victims[0] == requests[-1].request_id


def test_a_request_that_alone_exceeds_the_pool_ends_with_an_error():
    """It finishes with an error and the scheduler does not spin (transformers #43150)."""
    toy = ToyPipeline(blocks=4, block_size=4)
    alone = toy.submit(ask(prompt(10), max_tokens=100))
    beside = toy.submit(ask(prompt(4, 50), max_tokens=4))
    toy.run(limit=30)
    toy.assert_idle()
    batch = alone.drain()
    assert batch.finish_reason is FinishReason.ERROR
    assert "KV pool holds 16" in batch.error
    assert batch.token_ids == oracle(ask(prompt(10), max_tokens=7))  # all that fitted
    assert len(toy.executor.steps) < 7 + 4 + 2  # computed once, with at most one preemption
    assert beside.drain().token_ids == oracle(beside.request)


def test_a_request_that_exactly_fills_the_pool_runs():
    toy = ToyPipeline(blocks=4, block_size=4)
    request = ask(prompt(16), max_tokens=1)
    (batch,) = answers(toy, [request])
    assert batch.token_ids == oracle(request)
    assert batch.finish_reason is FinishReason.LENGTH


def test_the_lowest_free_row_is_reused():
    toy = ToyPipeline()
    first, second = (toy.submit(ask(prompt(3, i), max_tokens=40)) for i in range(2))
    toy.step()
    assert (toy.row(first), toy.row(second)) == (0, 1)
    first.abort()
    third = toy.submit(ask(prompt(3), max_tokens=40))
    toy.step()
    assert toy.row(third) == 0


def test_11_released_blocks_are_in_no_table():
    toy = ToyPipeline()
    handle = toy.submit(ask(prompt(9)))
    toy.step(2)
    row = toy.row(handle)
    assert (toy.table.block_tables[row] >= 0).any()
    handle.abort()
    assert (toy.table.block_tables[row] == -1).all()


def test_the_queue_is_bounded():
    toy = ToyPipeline(queue=2)
    toy.submit(ask("a"))
    toy.submit(ask("b"))
    with pytest.raises(QueueFull, match="2 requests are waiting"):
        toy.submit(ask("c"))


def test_preempted_requests_do_not_count_against_the_queue():
    toy = ToyPipeline(blocks=8, block_size=4, queue=3)
    handles = [toy.submit(ask(prompt(7, start), max_tokens=14)) for start in range(3)]
    toy.run()
    assert toy.counters.totals().preemptions > 0
    assert {handle.drain().finish_reason for handle in handles} == {FinishReason.LENGTH}


def test_logit_biases_stay_sorted_by_row_as_rows_come_and_go():
    toy = ToyPipeline()
    handles = [toy.submit(ask(prompt(3), logit_bias=((40 + i, 50.0), (3, -1.0)))) for i in range(4)]
    toy.step()
    handles[1].abort()
    toy.step()  # the executor checks the order
    assert toy.table.bias_rows.tolist() == [0, 0, 2, 2, 3, 3]
    for i in (0, 2, 3):
        assert handles[i].drain().token_ids == (40 + i,) * 2
    late = toy.submit(ask(prompt(3), logit_bias=((60, 50.0),)))
    toy.step()
    assert toy.table.bias_rows.tolist() == [0, 0, 1, 2, 2, 3, 3]
    assert late.drain().token_ids == (60,)


def test_answers_do_not_depend_on_the_batch():
    """Alone, and among sixteen with other parameters and arrivals."""
    requests = [
        ask(
            prompt(2 + i, i),
            max_tokens=5 + 2 * i,
            temperature=(i % 3) * 0.7,
            seed=i,
            top_k=i % 5,
            top_p=1.0 - 0.05 * (i % 4),
            repetition_penalty=1 + 0.1 * (i % 2),
            presence_penalty=0.3 * (i % 3),
            frequency_penalty=-0.2 * (i % 2),
            dry_multiplier=2.0 * (i % 3 == 0),
            dry_allowed_length=i % 2,
            dry_sequence_breakers=(("a", "é"), ("b",), ())[i % 4 % 3],
            min_p=0.02 * (i % 3),
        )
        for i in range(16)
    ]
    toy = ToyPipeline(blocks=200, rows=16, budget=24)
    handles = []
    for request in requests:
        handles.append(toy.submit(request))
        toy.step(np.random.default_rng(len(handles)).integers(0, 3))
    toy.run()
    for request, handle in zip(requests, handles, strict=True):
        assert handle.drain().token_ids == oracle(request)


@pytest.mark.parametrize("speculation", [False, True])
def test_steady_steps_match_full_scheduling(speculation, monkeypatch):
    def plans(block_size):
        toy = ToyPipeline(block_size=block_size, rows=3, speculation=speculation)
        seen, steady = [], []

        def watch(plan):
            arrays = (plan.rows, plan.query_start, plan.token_ids, plan.positions)
            seen.append([a.tolist() for a in (*arrays, plan.needs_logits, plan.num_draft_tokens)])

        schedule = toy.pipeline.scheduler.schedule

        def spy(now):
            decided = schedule(now)
            steady.append(decided.steady is not None)
            return decided

        toy.executor.watch = watch
        monkeypatch.setattr(toy.pipeline.scheduler, "schedule", spy)
        lengths = [(5, 60), (9, 33), (1, 1), (17, 40), (4, 2)]
        answers(toy, [ask(prompt(length, length), max_tokens=new) for length, new in lengths])
        return seen, steady

    seen, steady = plans(8)
    assert len(steady) > sum(steady) > 10
    monkeypatch.setattr(PlanBuilder, "is_steady", lambda *_: False)
    assert plans(8) == (seen, [False] * len(steady))
