"""`LiveRequests`: the table of accepted requests, alone and inside an engine."""

import gc
import threading

import pytest

from engine.api.errors import EngineUnavailable, InvalidRequest, QueueFull, UnknownRequest
from engine.api.events import EventBus
from engine.api.request import FinishReason
from engine.api.snapshot import EngineState
from engine.batch.request_queue import RequestQueue
from engine.batch.sequence import Sequence, SequenceState
from engine.runtime.intake import make_sequence
from engine.runtime.lifecycle import Lifecycle
from engine.runtime.live_requests import LiveRequests
from engine.runtime.loading import open_with_headers
from tests.fakes.toy_engine import ask, toy_config
from tests.fakes.toy_executor import toy_model

PATIENCE_S = 30  # for threads to get there; a test that needs it has failed
LIMIT = 3


@pytest.fixture(scope="module")
def opened():
    return open_with_headers(toy_config(), lambda _: toy_model())


@pytest.fixture
def lifecycle():
    return Lifecycle(events=EventBus(), clock=lambda: 5.0)


@pytest.fixture
def waiting():
    return RequestQueue(LIMIT)


@pytest.fixture
def live(lifecycle, waiting, opened):
    live = LiveRequests(lifecycle, waiting)
    live.serve(opened)
    return live


@pytest.fixture
def make(opened):
    def make(*, state=SequenceState.WAITING, request=None):
        sequence, _ = make_sequence(
            ask([1, 2, 3]) if request is None else request, opened, now=5.0, draw_seed=lambda: 7
        )
        sequence.state = state
        return sequence

    return make


def test_an_accepted_request_is_live_and_queued(live, waiting, make, opened):
    sequence = make()
    live.accept(sequence, model=opened)
    assert live.get(sequence.request_id) is sequence
    assert live.all() == (sequence,)
    assert list(waiting) == [sequence]
    assert live.num_waiting == 1
    assert not live.wait_empty(0)


def test_an_unknown_id_is_not_live(live):
    assert live.get("nobody") is None
    assert live.all() == ()
    assert live.wait_empty(0)


def test_requests_are_numbered_in_the_order_of_acceptance(live, make, opened):
    sequences = [make() for _ in range(LIMIT)]
    for sequence in sequences:
        live.accept(sequence, model=opened)
    assert [sequence.arrival for sequence in sequences] == [0, 1, 2]


def test_a_removed_request_is_no_longer_live(live, make, opened):
    first, second = make(), make()
    live.accept(first, model=opened)
    live.accept(second, model=opened)
    live.remove(first)
    assert live.get(first.request_id) is None
    assert live.all() == (second,)
    assert not live.wait_empty(0)
    live.remove(second)
    assert live.all() == ()
    assert live.wait_empty(0)


def test_an_id_may_be_used_again_after_its_request_was_removed(live, waiting, make, opened):
    sequence = make()
    live.accept(sequence, model=opened)
    twin = make(request=sequence.request)
    with pytest.raises(InvalidRequest, match=f"{sequence.request_id} is in use") as error:
        live.accept(twin, model=opened)
    assert error.value.param == "request_id"
    assert live.all() == (sequence,)
    waiting.remove(sequence)
    live.remove(sequence)
    live.accept(twin, model=opened)
    assert live.get(sequence.request_id) is twin


def test_a_request_that_the_queue_refuses_leaves_nothing_behind(live, waiting, make, opened):
    for _ in range(LIMIT):
        live.accept(make(), model=opened)
    refused = make()
    with pytest.raises(QueueFull):
        live.accept(refused, model=opened)
    assert live.get(refused.request_id) is None
    assert len(live.all()) == len(waiting) == LIMIT
    accepted = waiting.pop(0)
    live.remove(accepted)
    live.accept(refused, model=opened)
    assert refused.arrival == LIMIT  # the refused attempt took no number


@pytest.mark.parametrize("state", [EngineState.DRAINING, EngineState.STOPPED, EngineState.FAILED])
def test_an_engine_that_takes_no_work_accepts_no_request(
    live, lifecycle, waiting, make, state, opened
):
    lifecycle.move_to(state)
    with pytest.raises(EngineUnavailable):
        live.accept(make(), model=opened)
    assert live.all() == ()
    assert len(waiting) == 0
    assert live.wait_empty(0)


def test_a_request_that_waits_for_its_grammar_is_live_but_not_queued(live, waiting, make, opened):
    sequence = make(state=SequenceState.WAITING_FOR_GRAMMAR)
    live.accept(sequence, model=opened)
    assert live.all() == (sequence,)
    assert len(waiting) == 0
    assert live.num_waiting == 1
    live.grammar_settled(sequence)
    assert live.num_waiting == 0
    assert live.all() == (sequence,)


def test_forks_are_numbered_from_one_over_all_calls(live, make, opened):
    parent = make()
    live.accept(parent, model=opened)
    assert live.reserve_fork_numbers(parent.request_id, 2) == (parent, 1)
    assert live.reserve_fork_numbers(parent.request_id, 3) == (parent, 3)
    assert parent.forks == 5
    live.remove(parent)
    with pytest.raises(UnknownRequest, match=parent.request_id):
        live.reserve_fork_numbers(parent.request_id, 1)


def test_a_thread_that_waits_for_the_table_to_be_empty_is_released(live, make, opened):
    sequence = make()
    live.accept(sequence, model=opened)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(live.wait_empty(PATIENCE_S)))
    thread.start()
    live.remove(sequence)
    thread.join(PATIENCE_S)
    assert seen == [True]


# ---- in an engine ----


def referenced(request_ids):
    """Those of the ids whose sequence anything still refers to."""
    gc.collect()
    sequences = [one for one in gc.get_objects() if type(one) is Sequence]
    return {one.request_id for one in sequences} & request_ids


def test_nothing_is_live_once_every_request_finished_or_was_aborted(gated):
    engine, executor = gated
    handles = [engine.submit(ask([1, 2, number], max_tokens=3)) for number in range(12)]
    assert not engine.wait_drained(0)
    for handle in handles[::3]:
        handle.abort()
    executor.gate.release(10**4)
    reasons = [handle.wait_result(PATIENCE_S).finish_reason for handle in handles]
    assert set(reasons[::3]) == {FinishReason.ABORT}
    assert reasons.count(FinishReason.LENGTH) == 8
    assert engine.wait_drained(PATIENCE_S)
    snapshot = engine.snapshot()
    assert (snapshot.running, snapshot.waiting) == (0, 0)


def test_the_finish_of_a_request_is_delivered_after_it_left_the_table(gated):
    engine, executor = gated
    executor.gate.release(10**4)
    request = ask([1, 2, 3], max_tokens=2)
    engine.submit(request).wait_result(PATIENCE_S)
    assert engine.submit(request).wait_result(PATIENCE_S)  # its id is free
    with pytest.raises(UnknownRequest):
        engine.fork(request.request_id)


def test_shutdown_empties_the_table(gated):
    engine, executor = gated
    handles = [engine.submit(ask([1, 2, number])) for number in range(12)]
    executor.gate.release(10**4)
    engine.shutdown()
    assert engine.wait_drained(0)
    assert all(handle.finished for handle in handles)


def test_the_engine_keeps_no_finished_request_whose_handle_is_gone(gated):
    engine, executor = gated
    executor.gate.release(10**4)
    handles = [engine.submit(ask([1, 2, number], max_tokens=3)) for number in range(6)]
    handles[0].abort()
    for handle in handles:
        handle.wait_result(PATIENCE_S)
    request_ids = {handle.request_id for handle in handles}
    assert referenced(request_ids) == request_ids  # a handle refers to its sequence
    del handles, handle
    engine.submit(ask([1, 2, 3])).wait_result(PATIENCE_S)  # replaces what the last step left
    assert referenced(request_ids) == set()
