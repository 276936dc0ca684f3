"""Block maps as changes: a reader that applies them has the map of the engine."""

from dataclasses import fields, replace

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine._core import BlockAllocator
from engine.api.snapshot import BlockMap
from engine.clients.block_wire import block_fields, block_map
from engine.clients.http_wire import WireError
from engine.memory.block_map import build_block_map
from engine.memory.release_times import ReleaseTimes
from tests.fakes.toy_engine import ask
from tests.fakes.toy_pipeline import ToyPipeline

BLOCK = 4


def sent(new, base):
    data = block_fields(new, base, block_size=BLOCK)
    return orjson.dumps(data)


def assert_equal(one, other):
    for field in fields(BlockMap):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype, field.name
            np.testing.assert_array_equal(left, right, err_msg=field.name)
        else:
            assert left == right, field.name


class Story:
    """An engine whose map is taken now and then."""

    def __init__(self, blocks=24):
        self.toy = ToyPipeline(allocator=BlockAllocator, blocks=blocks, block_size=BLOCK)
        self.releases = ReleaseTimes()
        self.epoch = 0

    def map(self):
        self.epoch += 1
        self.releases.note(self.toy.blocks.epoch, float(self.epoch))
        return build_block_map(self.epoch, self.toy.blocks, self.toy.table, self.releases)


@settings(max_examples=40)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("submit"), st.integers(1, 30)),
            st.tuples(st.just("step"), st.integers(1, 5)),
            st.tuples(st.just("abort"), st.integers(0, 5)),
            st.tuples(st.just("fork"), st.integers(0, 5)),
        ),
        max_size=25,
    )
)
def test_changes_give_the_map_of_the_engine(script):
    story = Story()
    toy, mine, base = story.toy, None, None
    for action, number in script:
        if action == "submit":
            toy.submit(ask([(number * 3 + i) % 90 for i in range(number)], max_tokens=6))
        elif action == "step":
            toy.step(number)
        elif toy.handles:
            handle = toy.handles[number % len(toy.handles)]
            if action == "abort":
                handle.abort()
            elif not toy.sequences[handle.request_id].finished:
                toy.fork(handle)
        new = story.map()
        mine = block_map(orjson.loads(sent(new, base)), mine, shift=0.0)
        assert_equal(mine, new)
        base = new


def test_a_first_answer_holds_every_block():
    new = Story().map()
    assert_equal(block_map(orjson.loads(sent(new, None)), None, shift=0.0), new)


def test_a_step_of_many_requests_is_a_small_answer():
    story = Story(blocks=4096)
    for start in range(1, 9):
        story.toy.submit(ask([start] * 60, max_tokens=80))
    story.toy.step(3)
    before = story.map()
    story.toy.step(4)
    after = story.map()
    assert len(sent(after, before)) < 1500
    assert len(sent(after, None)) > 50_000


def test_instants_are_shifted():
    new = replace(Story().map(), last_used=np.arange(24, dtype=np.float64))
    seen = block_map(orjson.loads(sent(new, None)), None, shift=10.0)
    assert seen.last_used.tolist() == list(range(10, 34))


def test_changes_of_a_map_that_the_reader_does_not_have_are_refused():
    story = Story()
    first, second = story.map(), story.map()
    data = orjson.loads(sent(second, first))
    with pytest.raises(WireError):
        block_map(data, None, shift=0.0)
    with pytest.raises(WireError):
        block_map({}, None, shift=0.0)


def test_checkpoints_of_states_are_sent_whole():
    story = Story()
    story.toy = ToyPipeline(allocator=BlockAllocator, blocks=64, block_size=BLOCK, state_slots=8)
    base = story.map()
    story.toy.submit(ask([*range(30)], max_tokens=9))
    story.toy.run()
    new = story.map()
    assert new.checkpoints.size
    for before in (None, base):
        read = block_map(orjson.loads(sent(new, before)), before, shift=0.0)
        assert_equal(read, new)
    older = orjson.loads(sent(new, None))
    del older["checkpoints"]  # a server that knows none
    assert block_map(older, None, shift=0.0).checkpoints.size == 0
    outside = replace(new, checkpoints=np.array([64], np.int32))
    with pytest.raises(WireError, match="checkpoint of a block outside the pool"):
        block_map(orjson.loads(sent(outside, None)), None, shift=0.0)
