"""Long random sessions over a model with sliding windows: turns, forks, preemption, eviction and the store.

Denser than `test_windowed_traffic`: most requests continue what earlier ones wrote, in a few window
blocks, so that windows are found in the pool and in the store, given to duplicates, and dropped all the
time. Every answer is compared with an oracle, and integrity is checked after every action.
"""

import random
from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine._core import BlockAllocator
from engine.api.errors import ExecutorError, QueueFull
from engine.api.request import FinishReason
from engine.memory.window_size import blocks_of_window
from engine.runtime.forking import prompt_and_output_ids
from tests.fakes.guesser import guess
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import oracle
from tests.fakes.toy_pipeline import ToyPipeline

CONTEXT = 128


class Sessions:
    """One pipeline, and what its requests have written."""

    def __init__(self, seed: int) -> None:
        self.random = draw = random.Random(seed)
        size, budget = draw.choice([1, 2, 4, 4, 16]), draw.choice([1, 5, 16, 40])
        window, chunk = draw.randint(1, 20), draw.choice([1, 2, 4, 8])
        most = blocks_of_window(window, chunk=chunk, block_size=size)
        swap = draw.choice([0, 10, 100])
        self.blocks = draw.randint(12, 80)
        self.toy = ToyPipeline(
            blocks=self.blocks,
            block_size=size,
            rows=draw.randint(1, 6),
            budget=budget,
            context=CONTEXT,
            queue=20,
            allocator=BlockAllocator,
            window=window,
            chunk=chunk,
            window_blocks=most + 2 - (-budget // size) + draw.choice([0, 1, most, 3 * most]),
            interval=size * draw.randint(1, 6),
            swap=swap,
            stored_states=swap // 2,
        )
        right = draw.choice([None, 0.0, 0.6, 1.0])
        if right is not None:
            guess(self.toy, length=8, right=right)
        self.most_tokens = min(self.blocks * size, CONTEXT - 8)
        self.written = [list(range(1, 30))]
        self.live = {}  # handle → (start of its penalties, batches)
        self.done = Counter()

    def act(self) -> None:
        draw, toy = self.random, self.toy
        actions = [self.submit] * 8 + [self.fork] * 6 + [self.preempt] * 4 + [self.step] * 14
        actions += [self.evict] * 2 + [self.drop_windows] * 2 + [self.save] * 3 + [self.fail]
        actions += [self.abort, toy.run]
        try:
            draw.choice(actions)()
        except QueueFull:
            pass
        toy.check()
        self.drain()

    def submit(self) -> None:
        draw = self.random
        before = draw.choice(self.written[-8:])[: self.most_tokens - 2]
        if draw.random() < 0.8:  # a turn, or a different one
            before = before[: draw.randint(0, len(before))]
            before = before + [draw.randint(0, 94) for _ in range(draw.randint(1, 20))]
        tokens = before[: self.most_tokens - 1]
        for _ in range(draw.choice([1, 1, 2])):
            request = ask(tokens, max_tokens=draw.randint(1, 25), temperature=1.0, seed=3)
            self.live[self.toy.submit(request)] = (len(tokens), [])

    def fork(self) -> None:
        draw, handles = self.random, list(self.live)
        if not handles:
            return
        parent = draw.choice(handles)
        sequence = self.toy.sequences[parent.request_id]
        num_tokens = len(prompt_and_output_ids(sequence))
        at = draw.choice([num_tokens, draw.randint(1, num_tokens)])
        if at < sequence.max_total and at < self.most_tokens:
            start = min(self.live[parent][0], at)
            for child in self.toy.fork(parent, at=at, n=draw.randint(1, 3)):
                self.live[child] = (start, [])

    def preempt(self) -> None:
        running = self.toy.pipeline.scheduler.running.tolist()
        if len(running) > 1:
            self.toy.pipeline.scheduler.preempt(self.random.choice(running))

    def step(self) -> None:
        if self.toy.pipeline.has_work:
            self.toy.step(self.random.randint(1, 6))

    def evict(self) -> None:
        blocks = self.toy.blocks
        blocks.release(blocks.allocate_hidden(int(blocks.num_free * self.random.random())))

    def drop_windows(self) -> None:
        blocks = self.toy.blocks
        blocks.discard(blocks.allocate(int(blocks.num_growable * self.random.random())))

    def save(self) -> None:
        for _ in range(self.random.randint(1, 6)):
            self.toy.blocks.save_idle()

    def fail(self) -> None:
        if self.toy.pipeline.has_work and self.random.random() < 0.3:
            self.toy.executor.fail_with = [ExecutorError("broken")]
            self.toy.step()
            self.toy.executor.fail_with = []

    def abort(self) -> None:
        if self.live:
            self.random.choice(list(self.live)).abort()

    def drain(self) -> None:
        for handle in list(self.live):
            batch = handle.drain()
            if batch is None:
                continue
            start, batches = self.live[handle]
            batches.append(batch)
            if batch.finish_reason is not None:
                del self.live[handle]
                self.compare(handle.request, start, batches)

    def compare(self, request, start, batches) -> None:
        ids = sum((batch.token_ids for batch in batches), ())
        expected = oracle(request, max_model_len=CONTEXT, penalty_start=start)
        assert ids == expected[: len(ids)]
        reason = batches[-1].finish_reason
        if reason is FinishReason.LENGTH:
            assert ids == expected
        if reason is FinishReason.ERROR:
            size = self.toy.table.block_size
            whole = len(request.prompt_ids) + len(ids)
            assert "broken" in batches[-1].error or whole > self.blocks * size
        self.done[reason] += 1
        self.written.append([*request.prompt_ids, *ids])

    def end(self) -> None:
        self.toy.run()
        self.drain()
        assert not self.live
        self.toy.check()
        self.toy.assert_idle()


@given(st.integers(0, 10_000))
@example(3)
@settings(max_examples=12)
def test_every_answer_of_long_sessions_is_right(seed: int) -> None:
    sessions = Sessions(seed)
    for _ in range(120):
        sessions.act()
    sessions.end()
    assert sessions.done[FinishReason.LENGTH]
