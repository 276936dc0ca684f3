import numpy as np

from engine._core import BlockAllocator
from engine.api.snapshot import BlockState
from engine.memory.block_map import build_block_map
from engine.memory.release_times import ReleaseTimes
from tests.fakes.toy_engine import ask
from tests.fakes.toy_pipeline import ToyPipeline


def test_the_block_map_gives_owner_and_fill_of_every_block():
    toy = ToyPipeline(blocks=16, block_size=4)
    handles = [toy.submit(ask(range(1, 1 + n))) for n in (3, 8, 9)]
    toy.step()
    drawn = build_block_map(5, toy.blocks, toy.table, ReleaseTimes())
    assert drawn.epoch == 5
    assert set(drawn.owners) == {handle.request_id for handle in handles}
    for handle, fills in zip(handles, ([3], [4, 4], [4, 4, 1]), strict=True):
        row = toy.row(handle)
        blocks = toy.table.block_tables[row, : len(fills)]
        assert {drawn.owners[owner] for owner in drawn.owner[blocks]} == {handle.request_id}
        assert drawn.fill[blocks].tolist() == fills
        assert drawn.first_token[blocks].tolist() == [0, 4, 8][: len(fills)]
        assert (drawn.state[blocks] == BlockState.ACTIVE).all()
        assert (drawn.refcount[blocks] == 1).all()
    free = drawn.owner == -1
    assert free.sum() == 16 - 6
    assert (drawn.state[free] == BlockState.FREE).all()
    assert (drawn.fill[free] == 0).all()
    assert (drawn.first_token[free] == -1).all()


def test_an_idle_pool():
    toy = ToyPipeline(blocks=3)
    drawn = build_block_map(1, toy.blocks, toy.table, ReleaseTimes())
    assert drawn.owners == ()
    assert drawn.owner.tolist() == [-1] * 3


def test_arrays_have_the_documented_types():
    toy = ToyPipeline()
    toy.submit(ask("hello"))
    toy.step()
    drawn = build_block_map(1, toy.blocks, toy.table, ReleaseTimes())
    types = [getattr(drawn, name).dtype for name in ("state", "refcount", "fill")]
    assert types == [np.uint8, np.uint16, np.uint8]
    assert drawn.owner.dtype == drawn.first_token.dtype == np.int32


def test_a_shared_block_has_all_its_owners():
    toy = ToyPipeline(allocator=BlockAllocator, blocks=16, block_size=4)
    parent = toy.submit(ask(range(1, 10), max_tokens=20))
    toy.step()
    (child,) = toy.fork(parent)
    toy.step()
    drawn = build_block_map(1, toy.blocks, toy.table, ReleaseTimes())
    shared = int(drawn.blocks_of(parent.request_id)[0])
    assert set(drawn.owners_of(shared)) == {parent.request_id, child.request_id}
    assert drawn.refcount[shared] == 2
    for handle in (parent, child):
        row = toy.row(handle)
        mine = toy.table.block_tables[row, : toy.table.num_blocks[row]]
        assert drawn.blocks_of(handle.request_id).tolist() == mine.tolist()
    assert drawn.blocks_of("nobody").tolist() == []


def test_a_block_is_as_old_as_its_last_release():
    toy = ToyPipeline(allocator=BlockAllocator, blocks=16, block_size=4)
    releases = ReleaseTimes()
    used = []
    for now, start in ((10.0, 1), (20.0, 40)):
        handle = toy.submit(ask(range(start, start + 9), max_tokens=2))
        toy.step()
        row = toy.row(handle)
        used.append(int(toy.table.block_tables[row, 0]))
        drawn = build_block_map(1, toy.blocks, toy.table, releases)
        assert np.isnan(drawn.last_used[used[-1]])
        toy.run()
        releases.note(toy.blocks.epoch, now)
    drawn = build_block_map(1, toy.blocks, toy.table, releases)
    first, second = drawn.last_used[used]
    assert first <= 10.0 < second <= 20.0
    again = build_block_map(2, toy.blocks, toy.table, releases)
    assert np.array_equal(drawn.last_used, again.last_used, equal_nan=True)


def test_old_samples_become_coarse_and_are_not_lost():
    releases = ReleaseTimes()
    for epoch in range(1, 4000):
        releases.note(epoch, float(epoch))
    times = releases.last_used(np.array([10, 3990], np.uint64), np.zeros(2, np.uint8))
    assert abs(times[0] - 10) < 60
    assert abs(times[1] - 3990) < 60
