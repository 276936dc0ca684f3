"""Which checkpoint is found, and which one is dropped."""

import numpy as np
import pytest

from engine._core import BlockAllocator
from engine.memory.state_checkpoints import StateCheckpoints

SIZE = 4


@pytest.fixture
def allocator():
    allocator = BlockAllocator(64, SIZE)
    allocator.allocate(64)  # ids from 0 on
    return allocator


@pytest.fixture
def checkpoints(allocator):
    return StateCheckpoints(allocator)


def path(*blocks):
    return np.array(blocks, np.int32)


def add(checkpoints, *blocks):
    """A checkpoint of the last of these blocks."""
    return checkpoints.add(
        blocks[-1], 100 + blocks[-1], len(blocks) * SIZE, b"", path(*blocks[:-1])
    )


def test_the_deepest_one_on_a_path_is_found(checkpoints):
    add(checkpoints, 3, 4)
    deeper = add(checkpoints, 3, 4, 9, 1)
    assert checkpoints.find(path(3, 4, 9, 1, 7)) is deeper
    assert checkpoints.find(path(3, 4, 9)).block == 4
    assert checkpoints.find(path(3)) is None
    assert checkpoints.find(path()) is None
    checkpoints.check_integrity()


def test_that_of_a_block_with_other_tokens_is_dropped(checkpoints, allocator):
    gone, stays = add(checkpoints, 3, 4), add(checkpoints, 5, 6)
    allocator.release([4])
    assert checkpoints.drop_evicted() == []
    assert allocator.allocate(1).tolist() == [4]
    assert checkpoints.drop_evicted() == [gone]
    assert list(checkpoints) == [stays]
    assert checkpoints.find(path(3, 4)) is None
    assert checkpoints.num_evicted == 1
    assert checkpoints.blocks().tolist() == [6]


def test_the_price_is_what_lies_above_it(checkpoints):
    checkpoints.recompute_seconds = lambda tokens, cached: tokens + cached / 1000
    add(checkpoints, *range(8))
    below = add(checkpoints, *range(10))
    assert checkpoints.price(40, below.parent) == below.seconds == pytest.approx(8 + 0.032)
    assert checkpoints.price(40, None) == 40


def test_those_between_others_of_a_path_go_first(checkpoints):
    first, inner = add(checkpoints, *range(8)), add(checkpoints, *range(12))
    last = add(checkpoints, *range(13))
    assert checkpoints.cheapest() is inner
    checkpoints.evict(inner)
    assert (last.parent, first.num_children) == (first, 1)
    checkpoints.check_integrity()


def test_where_paths_part_a_checkpoint_stays(checkpoints):
    branch = add(checkpoints, *range(8))
    one, other = add(checkpoints, *range(9)), add(checkpoints, *range(8), 20)
    assert branch.num_children == 2
    assert checkpoints.cheapest() is one
    checkpoints.touch(one)
    checkpoints.evict(other)
    assert branch.num_children == 1
    checkpoints.check_integrity()


def test_dropping_one_raises_the_price_of_those_below(checkpoints):
    above, below = add(checkpoints, *range(8)), add(checkpoints, *range(10))
    checkpoints.evict(above)
    assert below.parent is None
    assert below.priority == pytest.approx(checkpoints.price(40, None))
    checkpoints.check_integrity()


def test_a_new_one_outlives_an_old_one_that_saves_as_much(checkpoints):
    old, used = add(checkpoints, 1, 2), add(checkpoints, 3, 4)
    checkpoints.evict(add(checkpoints, 5))
    checkpoints.touch(used)
    assert checkpoints.cheapest() is old
    assert checkpoints.cheapest(but=(old,)) is used
    assert checkpoints.is_worth(8, path(7), old)
    assert not checkpoints.is_worth(4, path(), used)


def test_those_of_pinned_blocks_go_last(checkpoints, allocator):
    pinned, other = add(checkpoints, 1), add(checkpoints, *range(10, 20))
    allocator.pin([1])
    assert checkpoints.cheapest() is other
    allocator.unpin([1])
    assert checkpoints.cheapest() is pinned


def test_a_block_has_one(checkpoints):
    add(checkpoints, 1)
    with pytest.raises(AssertionError, match="has a checkpoint already"):
        add(checkpoints, 1)
