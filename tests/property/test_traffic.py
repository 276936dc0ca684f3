"""Random submissions, forks, aborts, preemptions, evictions, swaps, failed steps and restarts: no
block leaks and every token is correct, with and without drafts.

Prompts share prefixes: they are runs of consecutive numbers with few first values, or parts of
earlier sequences; some have a cache salt. After every rule and every step the state of each sequence
is compared with its location, the block accounting is checked, and the KV of every row is looked up
through its block table. Every step is checked to write only into blocks of its own rows.
"""

from dataclasses import replace
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine._core import BlockAllocator
from engine.api.errors import ExecutorError, QueueFull
from engine.api.request import FinishReason
from engine.api.scheduling import BATCH_FORMERS, POLICIES, Scheduling
from engine.api.service_class import SERVICE_CLASSES
from engine.runtime.forking import prompt_and_output_ids
from tests.fakes.guesser import guess
from tests.fakes.naive_allocator import NaiveAllocator
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle
from tests.fakes.toy_pipeline import ToyPipeline
from tests.fakes.toy_tokenizer import ToyTokenizer

CONTEXT = 96


class Traffic(RuleBasedStateMachine):
    """Compares every answer with an oracle that knows no scheduler, no blocks and no forks."""

    @initialize(
        blocks=st.integers(8, 60),
        block_size=st.sampled_from([1, 2, 3, 4, 4, 16]),
        rows=st.integers(1, 6),
        budget=st.sampled_from([1, 2, 7, 16, 64]),
        pool=st.sampled_from(
            [(NaiveAllocator, False), (BlockAllocator, False), *[(BlockAllocator, True)] * 6]
        ),
        right=st.sampled_from([None, 0.0, 0.6, 0.9, 1.0]),
        swap=st.sampled_from([0, 2, 10, 10, 100, 100]),
        in_file=st.booleans(),
        max_hold_s=st.sampled_from([0.0, 0.5, 60.0, 1e6]),
    )
    def start(self, blocks, block_size, rows, budget, pool, right, swap, in_file, max_hold_s):
        self.folder = TemporaryDirectory()
        self.capacity = blocks * block_size
        self.right = right
        self.settings = {
            "blocks": blocks,
            "block_size": block_size,
            "rows": rows,
            "budget": budget,
            "context": CONTEXT,
            "queue": 8,
            "allocator": pool[0],
            "prefixes": pool[1],
            "max_hold_s": max_hold_s,
            "swap": swap if pool[1] else 0,
            "swap_path": f"{self.folder.name}/toy.swap" if in_file else None,
        }
        self.new_toy()
        self.live = {}
        self.penalty_starts = {}

    def new_toy(self):
        self.toy = ToyPipeline(**self.settings)
        if self.right is not None:
            guess(self.toy, length=8, right=self.right)

    @rule(
        start=st.sampled_from([0, 0, 0, 1, 40]),
        length=st.integers(1, 40),
        odd=st.sampled_from([None, None, 5, 6]),
        max_tokens=st.integers(1, 30),
        temperature=st.sampled_from([0.0, 1.0]),
        logprobs=st.sampled_from([None, 0, 2]),
        stop=st.sampled_from([(), ("a",), ("zz", "e")]),
        frequency_penalty=st.sampled_from([0.0, 0.0, 1.0]),
        seed=st.integers(0, 9),
        times=st.sampled_from([1, 1, 2, 3]),
        priority=st.sampled_from([0, 0, -1, 5]),
        deadline_ms=st.sampled_from([None, 1.0, 400.0, 20_000.0]),
        cache_salt=st.sampled_from([None, None, "a", "b"]),
        service_class=st.sampled_from(["interactive", *SERVICE_CLASSES]),
        session=st.sampled_from([None, "a", "b", "c", "d"]),
        may_be_held=st.booleans(),
    )
    def submit(
        self,
        start,
        length,
        odd,
        times,
        priority,
        deadline_ms,
        cache_salt,
        service_class,
        session,
        may_be_held,
        **params,
    ):
        length = min(length, self.capacity)
        tokens = [(start + i) % 95 for i in range(length)]
        if odd is not None:
            tokens[-1] = odd
        wanted = {
            "priority": priority,
            "deadline_ms": deadline_ms,
            "cache_salt": cache_salt,
            "service_class": service_class,
            "session": session,
            "may_be_held": may_be_held,
        }
        self.take(
            lambda: [
                self.toy.submit(replace(ask(tokens, **params), **wanted)) for _ in range(times)
            ]
        )

    @precondition(lambda self: self.toy.sequences)
    @rule(
        data=st.data(),
        max_tokens=st.integers(1, 20),
        seed=st.integers(0, 9),
        salted=st.booleans(),
    )
    def submit_a_prefix_of_a_sequence(self, data, max_tokens, seed, salted):
        sequence = self.any_sequence(data)
        tokens = prompt_and_output_ids(sequence)
        length = data.draw(st.integers(1, min(len(tokens), self.capacity, CONTEXT - 1)))
        request = ask(tokens[:length], max_tokens=max_tokens, temperature=1.0, seed=seed)
        salt = sequence.request.cache_salt if salted else "c"
        self.take(lambda: [self.toy.submit(replace(request, cache_salt=salt))])

    @precondition(lambda self: self.toy.sequences)
    @rule(data=st.data(), n=st.integers(1, 3), anywhere=st.booleans())
    def fork(self, data, n, anywhere):
        parent = self.any_sequence(data)
        num_tokens = len(prompt_and_output_ids(parent))
        at = data.draw(st.integers(1, num_tokens)) if anywhere else num_tokens
        if at >= parent.max_total or at > self.capacity:
            return
        start = min(self.penalty_starts[parent.request_id], at)
        self.take(lambda: self.toy.fork(parent, at=at, n=n), penalty_start=start)

    def any_sequence(self, data):
        sequences = list(self.toy.sequences.values())
        return sequences[data.draw(st.integers(0, len(sequences) - 1))]

    def take(self, submit, penalty_start=None):
        before = set(self.toy.sequences)
        try:
            submit()
        except QueueFull:
            assert len(self.toy.waiting) >= 8
        for handle in self.toy.handles:
            if handle.request_id not in before:
                length = len(handle.request.prompt_ids)
                start = length if penalty_start is None else penalty_start
                self.penalty_starts[handle.request_id] = start
                self.live[len(self.penalty_starts)] = (handle, [])  # ids differ from run to run

    @precondition(lambda self: len(self.toy.pipeline.scheduler.running) > 1)
    @rule(data=st.data())
    def preempt(self, data):
        running = self.toy.pipeline.scheduler.running.tolist()
        self.toy.pipeline.scheduler.preempt(data.draw(st.sampled_from(running)))

    @rule(
        policy=st.sampled_from(POLICIES),
        former=st.sampled_from(BATCH_FORMERS),
        later_s=st.sampled_from([0.0, 0.3, 15.0]),
    )
    def switch_scheduling(self, policy, former, later_s):
        """Switch the policy; time passes, so that deadlines are missed and requests age."""
        self.toy.pipeline.scheduler.switch(Scheduling(policy, former, 20.0))
        self.toy.clock.now += later_s

    @rule(share=st.floats(0.1, 1.0))
    def evict(self, share):
        blocks = self.toy.blocks
        taken = blocks.allocate_hidden(
            max(1, int(blocks.num_free * share)) if blocks.num_free else 0
        )
        blocks.release(taken)

    @precondition(lambda self: self.toy.tier is not None)
    @rule()
    def idle(self):
        self.toy.tier.save_idle()

    @precondition(lambda self: self.toy.tier is not None)
    @rule(cheap=st.booleans())
    def change_the_cost_of_recomputing(self, cheap):
        self.toy.tier.is_cheaper = lambda blocks, recompute: not cheap

    @precondition(lambda self: self.toy.tier is not None)
    @rule(flush=st.booleans())
    def restart(self, flush):
        self.end_all()
        if flush:
            self.toy.tier.close()
        else:
            self.toy.store.close()  # killed: unsaved blocks are lost
        written = [prompt_and_output_ids(sequence) for sequence in self.toy.sequences.values()]
        self.new_toy()
        for tokens in written[-3:]:
            tokens = tokens[: min(self.capacity, CONTEXT - 1)]
            self.take(lambda tokens=tokens: [self.toy.submit(ask(tokens, max_tokens=3))])

    def end_all(self):
        """Abort all live requests, check their output and that no block is in use."""
        for number in list(self.live):
            handle, _ = self.live[number]
            handle.abort()
            self.drain_one(number)
        assert not self.live
        self.toy.check()
        self.toy.assert_idle()

    @rule(count=st.integers(1, 12))
    def step(self, count):
        self.toy.step(count if self.toy.pipeline.has_work else 0)

    @rule()
    def run_to_the_end(self):
        self.toy.run()

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
    @rule(really=st.sampled_from([False, False, False, True]))
    def fail_a_step(self, really):
        if not really:  # a failed step finishes every running request with an error
            return
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
        start = self.penalty_starts[request.request_id]
        expected = oracle(request, max_model_len=CONTEXT, penalty_start=start)
        assert ids == expected[: len(ids)]
        tokenizer, read = ToyTokenizer(), request.prompt_ids[start:]
        # A fork inside a multi-byte character: the child emits the whole character.
        whole = tokenizer.decode((*read, *ids))[
            len(tokenizer.incremental_detokenizer().feed(read)) :
        ]
        if reason is FinishReason.LENGTH:
            assert ids == expected
            assert not any(stop in whole for stop in request.sampling.stop)
        if reason is FinishReason.STOP:
            assert whole.startswith(text)
            assert not any(stop in text for stop in request.sampling.stop)
            shorter = tokenizer.decode((*read, *ids[:-1]))[len(tokenizer.decode(read)) :]
            assert not any(stop in shorter for stop in request.sampling.stop)
        elif not request.sampling.stop:
            assert text == whole
        assert batches[-1].cached_tokens < len(request.prompt_ids)
        if request.sampling.logprobs is not None:
            assert sum(len(batch.logprobs) for batch in batches) == len(ids)
            assert sum(len(batch.top_logprobs) for batch in batches) == len(ids)
        if reason is FinishReason.ERROR:
            error = batches[-1].error
            assert "broken" in error or len(request.prompt_ids) + len(ids) > self.capacity

    @invariant()
    def states_and_block_accounting_are_consistent(self):
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
        if self.toy.tier is not None:
            self.toy.tier.close()
        self.folder.cleanup()


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=100, stateful_step_count=40)
