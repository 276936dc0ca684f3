"""`Sequence`: the transition table of its states, and the counts that it derives from its tokens."""

from itertools import product

import numpy as np
import pytest

from engine.api.request import FinishReason, Timings
from engine.batch.outputs import Outputs
from engine.batch.sequence import NO_ROW, NOT_QUEUED, SequenceState
from engine.runtime.intake import make_sequence
from engine.runtime.loading import open_with_headers
from tests.fakes.toy_engine import ask, toy_config
from tests.fakes.toy_executor import toy_model
from tests.fakes.toy_pipeline import ToyPipeline

WAITING_FOR_GRAMMAR = SequenceState.WAITING_FOR_GRAMMAR
WAITING = SequenceState.WAITING
RUNNING = SequenceState.RUNNING
PREEMPTED = SequenceState.PREEMPTED
FINISHED = SequenceState.FINISHED

ALLOWED = [
    (WAITING_FOR_GRAMMAR, WAITING),
    (WAITING_FOR_GRAMMAR, FINISHED),
    (WAITING, RUNNING),
    (WAITING, FINISHED),
    (RUNNING, PREEMPTED),
    (RUNNING, FINISHED),
    (PREEMPTED, RUNNING),
    (PREEMPTED, FINISHED),
]
FORBIDDEN = [pair for pair in product(SequenceState, repeat=2) if pair not in ALLOWED]


@pytest.fixture(scope="module")
def opened():
    return open_with_headers(toy_config(), lambda _: toy_model())


@pytest.fixture
def make(opened):
    def make(prompt, *, state=WAITING, **params):
        sequence, _ = make_sequence(ask(prompt, **params), opened, now=5.0, draw_seed=lambda: 7)
        sequence.state = state
        return sequence

    return make


def name(state):
    return state.name.lower()


@pytest.mark.parametrize(("state", "to"), ALLOWED, ids=name)
def test_an_allowed_transition_changes_the_state(make, state, to):
    sequence = make([1, 2, 3], state=state)
    sequence.move_to(to)
    assert sequence.state is to
    assert sequence.finished is (to is FINISHED)


@pytest.mark.parametrize(("state", "to"), FORBIDDEN, ids=name)
def test_any_other_transition_raises_and_changes_nothing(make, state, to):
    sequence = make([1, 2, 3], state=state)
    with pytest.raises(AssertionError, match=f"{sequence.request_id} cannot go from"):
        sequence.move_to(to)
    assert sequence.state is state


def test_a_new_sequence_waits_and_has_no_row_and_no_queue_index(make):
    sequence = make([1, 2, 3])
    assert sequence.state is WAITING
    assert sequence.row == NO_ROW
    assert sequence.queue_index == NOT_QUEUED
    assert sequence.queued_at == 5.0
    assert not sequence.finished


def test_the_pipeline_takes_a_sequence_through_every_state_after_its_grammar():
    toy = ToyPipeline()
    handle = toy.submit(ask([1, 2, 3], max_tokens=4))
    sequence = toy.sequences[handle.request_id]
    states = [sequence.state]
    toy.step()
    states.append(sequence.state)
    toy.pipeline.scheduler.preempt(sequence.row)
    states.append(sequence.state)
    toy.step()
    states.append(sequence.state)
    toy.run()
    states.append(sequence.state)
    assert states == [WAITING, RUNNING, PREEMPTED, RUNNING, FINISHED]
    assert sequence.preemptions == 1
    assert handle.wait_result(0).finish_reason is FinishReason.LENGTH


def test_all_tokens_but_the_last_may_come_from_a_cache(make):
    assert make([1, 2, 3, 4, 5]).num_reusable_tokens == 4
    assert make([1]).num_reusable_tokens == 0


def test_tokens_that_are_still_to_be_scored_are_not_reusable(make):
    sequence = make([1, 2, 3, 4, 5], prompt_logprobs=0)
    scores = sequence.mailbox.prompt_scores
    assert sequence.num_reusable_tokens == 0
    scores.num_scored = 3
    assert sequence.num_reusable_tokens == 3
    scores.num_scored = 4
    assert scores.complete
    assert sequence.num_reusable_tokens == 4


def test_the_record_counts_what_is_left_to_compute_and_to_generate(make):
    sequence = make([1, 2, 3, 4, 5], max_tokens=10)
    sequence.record["cached_tokens_hint"] = 4
    sequence.update_record()
    assert sequence.record["num_pending_tokens"] == 1
    assert sequence.record["max_new_tokens"] == 10
    assert not sequence.record["has_first_token"]


def test_a_fully_cached_prompt_leaves_one_token_to_compute(make):
    sequence = make([1, 2, 3, 4])
    sequence.record["cached_tokens_hint"] = 4
    sequence.update_record()
    assert sequence.record["num_pending_tokens"] == 1


def test_the_record_of_a_preempted_sequence_counts_its_output(make):
    sequence = make([1, 2, 3], state=PREEMPTED, max_tokens=10)
    sequence.tokens = np.array([1, 2, 3, 8, 9], np.int32)
    sequence.kept = Outputs.empty(0, Timings(queued=5.0, scheduled=6.0, first_token=7.0))
    sequence.update_record()
    assert sequence.record["num_pending_tokens"] == 5
    assert sequence.record["max_new_tokens"] == 8
    assert sequence.record["has_first_token"]
