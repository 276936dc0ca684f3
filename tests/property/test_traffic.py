"""Random traffic: whatever is submitted, aborted or broken, nothing leaks and no token is wrong."""

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine._core import BlockAllocator
from engine.errors import ExecutorError, QueueFull
from engine.request import FinishReason
from tests.fakes.naive_allocator import NaiveAllocator
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle
from tests.fakes.toy_pipeline import ToyPipeline
from tests.fakes.toy_tokenizer import ToyTokenizer

CONTEXT = 96


class Traffic(RuleBasedStateMachine):
    """Submits, steps, aborts, drains and breaks steps; compares every answer with the oracle."""

    @initialize(
        blocks=st.integers(6, 40),
        block_size=st.sampled_from([1, 3, 4, 16]),
        rows=st.integers(1, 6),
        budget=st.sampled_from([1, 2, 7, 16, 64]),
        allocator=st.sampled_from([NaiveAllocator, BlockAllocator]),
    )
    def start(self, blocks, block_size, rows, budget, allocator):
        self.capacity = blocks * block_size
        self.toy = ToyPipeline(
            blocks=blocks,
            block_size=block_size,
            rows=rows,
            budget=budget,
            context=CONTEXT,
            queue=8,
            allocator=allocator,
        )
        self.live = {}

    @rule(
        start=st.integers(0, 60),
        length=st.integers(1, 30),
        max_tokens=st.integers(1, 30),
        temperature=st.sampled_from([0.0, 1.0]),
        logprobs=st.sampled_from([None, 0, 2]),
        stop=st.sampled_from([(), ("a",), ("zz", "e")]),
        seed=st.integers(0, 9),
    )
    def submit(self, start, length, **params):
        length = min(length, self.capacity)
        request = ask([(start + i) % 95 for i in range(length)], **params)
        try:
            handle = self.toy.submit(request)
        except QueueFull:
            assert len(self.toy.waiting) >= 8
            return
        self.live[len(self.toy.sequences)] = (handle, [])  # numbers: ids differ from run to run

    @rule(count=st.integers(1, 12))
    def step(self, count):
        self.toy.step(count if self.toy.pipeline.has_work else 0)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def abort(self, data):
        handle, _ = self.live[data.draw(st.sampled_from(sorted(self.live)))]
        handle.abort()
        assert handle.finished

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def drain(self, data):
        self.drain_one(data.draw(st.sampled_from(sorted(self.live))))

    @precondition(lambda self: self.live and self.toy.pipeline.has_work)
    @rule()
    def break_a_step(self):
        self.toy.executor.fail_with = [ExecutorError("broken")]
        self.toy.step()
        self.toy.executor.fail_with = []

    def drain_one(self, number):
        handle, batches = self.live[number]
        batch = handle.drain()
        if batch is None:
            return
        batches.append(batch)
        if batch.finish_reason is not None:
            del self.live[number]
            self.compare(handle.request, batches)

    def compare(self, request, batches):
        ids = sum((batch.token_ids for batch in batches), ())
        text = "".join(batch.text for batch in batches)
        reason = batches[-1].finish_reason
        expected = oracle(request, max_model_len=CONTEXT)
        assert ids == expected[: len(ids)]
        whole = ToyTokenizer().decode(ids)
        if reason is FinishReason.LENGTH:
            assert ids == expected
            assert not any(stop in whole for stop in request.sampling.stop)
        if reason is FinishReason.STOP:
            assert whole.startswith(text)
            assert not any(stop in text for stop in request.sampling.stop)
        elif not request.sampling.stop:
            assert text == whole
        if request.sampling.logprobs is not None:
            assert sum(len(batch.logprobs) for batch in batches) == len(ids)
            assert sum(len(batch.top_logprobs) for batch in batches) == len(ids)
        if reason is FinishReason.ERROR:
            error = batches[-1].error
            assert "broken" in error or len(request.prompt_ids) + len(ids) > self.capacity

    @invariant()
    def books_balance(self):
        if hasattr(self, "toy"):
            self.toy.check()

    def teardown(self):
        if not hasattr(self, "toy"):
            return
        self.toy.run()
        self.toy.assert_idle()
        for number in list(self.live):
            self.drain_one(number)
        assert not self.live
        finished = self.toy.counters.totals().finished
        assert sum(finished.values()) == len(self.toy.sequences) == len(self.toy.ended)


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
