"""`RequestQueue` against a plain list under random puts, pops and removals."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.api.errors import QueueFull
from engine.batch.request_queue import RequestQueue
from engine.runtime.intake import make_sequence
from engine.runtime.loading import open_with_headers
from tests.fakes.toy_engine import ask, toy_config
from tests.fakes.toy_executor import toy_model

LIMIT = 200
OPENED = open_with_headers(toy_config(), lambda _: toy_model())


class QueueMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.queue = RequestQueue(LIMIT)
        self.model = []
        self.removed = []
        self.arrivals = 0

    def sequence(self, length):
        request = ask(list(range(1, length + 1)), max_tokens=3)
        sequence, _ = make_sequence(request, OPENED, now=1.0, draw_seed=lambda: 7)
        sequence.record["arrival"] = self.arrivals
        self.arrivals += 1
        return sequence

    @rule(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=30))
    def put(self, lengths):
        for length in lengths:
            sequence = self.sequence(length)
            if len(self.model) >= LIMIT:
                with pytest.raises(QueueFull):
                    self.queue.put(sequence)
            else:
                self.queue.put(sequence)
                self.model.append(sequence)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def pop(self, data):
        index = data.draw(st.integers(0, len(self.model) - 1))
        expected = self.queue.at(index)
        sequence = self.queue.pop(index)
        assert sequence is expected
        self.model.remove(sequence)
        self.removed.append(sequence)

    @precondition(lambda self: self.removed)
    @rule(data=st.data())
    def requeue(self, data):
        sequence = self.removed.pop(data.draw(st.integers(0, len(self.removed) - 1)))
        self.queue.requeue(sequence)
        self.model.append(sequence)

    @precondition(lambda self: self.model or self.removed)
    @rule(data=st.data())
    def remove(self, data):
        sequence = data.draw(st.sampled_from(self.model + self.removed))
        waiting = sequence in self.model
        assert self.queue.remove(sequence) is waiting
        if waiting:
            self.model.remove(sequence)
            self.removed.append(sequence)

    @invariant()
    def columns_match_their_sequences(self):
        columns = self.queue.columns()
        assert len(self.queue) == len(columns) == len(self.model)
        assert list(self.queue) == sorted(self.model, key=lambda one: one.arrival)
        for index in range(len(columns)):
            sequence = self.queue.at(index)
            assert sequence.queue_index == index
            assert columns.arrival[index] == sequence.arrival
            assert columns.num_pending_tokens[index] == len(sequence.tokens)
            assert columns.max_new_tokens[index] == sequence.max_total - len(sequence.tokens)
        assert all(one.queue_index < 0 for one in self.removed)
        assert (columns.deadline == np.inf).all()


QueueMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=25)
TestQueue = QueueMachine.TestCase
