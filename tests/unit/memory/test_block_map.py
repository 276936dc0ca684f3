import numpy as np

from engine.api.snapshot import BlockState
from engine.memory.block_map import build_block_map
from tests.fakes.toy_engine import ask
from tests.fakes.toy_pipeline import ToyPipeline


def test_the_block_map_gives_owner_and_fill_of_every_block():
    toy = ToyPipeline(blocks=16, block_size=4)
    handles = [toy.submit(ask(range(1, 1 + n))) for n in (3, 8, 9)]
    toy.step()
    drawn = build_block_map(5, toy.blocks, toy.table)
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
    drawn = build_block_map(1, toy.blocks, toy.table)
    assert drawn.owners == ()
    assert drawn.owner.tolist() == [-1] * 3


def test_arrays_have_the_documented_types():
    toy = ToyPipeline()
    toy.submit(ask("hello"))
    toy.step()
    drawn = build_block_map(1, toy.blocks, toy.table)
    types = [getattr(drawn, name).dtype for name in ("state", "refcount", "fill")]
    assert types == [np.uint8, np.uint16, np.uint8]
    assert drawn.owner.dtype == drawn.first_token.dtype == np.int32
