"""The request table: what every live request is doing."""

import numpy as np
import pytest

from engine._core import BlockAllocator
from engine.api.request_status import RequestState
from engine.runtime.request_table import build_request_table
from tests.fakes.toy_engine import ask, toy_config, toy_engine
from tests.fakes.toy_pipeline import ToyPipeline

BLOCK = 4


def prompt(length, start=1):
    return [(start + i) % 90 for i in range(length)]


def toy_pipeline(**settings):
    return ToyPipeline(**{"allocator": BlockAllocator, "block_size": BLOCK} | settings)


def statuses(toy, *handles, **options):
    live = [toy.sequences[handle.request_id] for handle in handles]
    return build_request_table(live, toy.table, **options)


def test_a_queued_request_holds_nothing():
    toy = toy_pipeline()
    handle = toy.submit(ask(prompt(9), max_tokens=4))
    (status,) = statuses(toy, handle)
    assert status.state is RequestState.QUEUED
    assert (status.prompt_tokens, status.computed_tokens, status.blocks) == (9, 0, 0)
    assert status.ttft is status.itl is status.deadline is None


def test_a_chunked_prompt_is_a_prefill_with_its_progress():
    toy = toy_pipeline(budget=8)
    handle = toy.submit(ask(prompt(20), max_tokens=4))
    toy.step()
    (status,) = statuses(toy, handle)
    assert status.state is RequestState.PREFILL
    assert (status.computed_tokens, status.generated_tokens) == (8, 0)


def test_a_decode_has_its_latencies_and_blocks():
    toy = toy_pipeline()
    handle = toy.submit(ask(prompt(9), max_tokens=20))
    for _ in range(4):
        toy.step()
        toy.clock.now += 0.5
    (status,) = statuses(toy, handle)
    assert status.state is RequestState.DECODE
    assert (status.generated_tokens, status.computed_tokens, status.blocks) == (4, 12, 3)
    assert status.itl == pytest.approx(0.5)
    assert status.ttft == pytest.approx(0.0)


def test_a_cached_prefix_and_a_preemption_are_shown():
    toy = toy_pipeline(blocks=8)
    handles = [toy.submit(ask(prompt(12, start), max_tokens=10)) for start in (1, 40)]
    while not any(toy.sequences[one.request_id].preemptions for one in handles):
        toy.step()
    table = {status.request_id: status for status in statuses(toy, *handles)}
    (victim,) = [one for one in table.values() if one.preemptions]
    assert victim.state is RequestState.PREEMPTED
    assert victim.generated_tokens > 0
    assert victim.blocks == victim.computed_tokens == 0
    assert victim.ttft is not None


def test_running_requests_come_first_and_the_limit_leaves_out_the_last():
    toy = toy_pipeline(rows=2)
    handles = [toy.submit(ask(prompt(5, start), max_tokens=9)) for start in (1, 20, 40, 60)]
    toy.step()
    ids = [handle.request_id for handle in handles]
    assert [one.request_id for one in statuses(toy, *reversed(handles))] == ids
    assert [one.request_id for one in statuses(toy, *handles, limit=3)] == ids[:3]


def test_a_finished_request_is_not_listed():
    toy = toy_pipeline()
    handle = toy.submit(ask(prompt(5), max_tokens=1))
    sequence = toy.sequences[handle.request_id]
    toy.run()
    assert build_request_table([sequence], toy.table) == ()


def test_an_engine_without_a_model_has_no_requests():
    engine, _ = toy_engine(toy_config())
    assert engine.request_table() == ()
    assert np.isfinite(engine.snapshot().time)
