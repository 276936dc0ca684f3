"""`BlockAllocator` and `PrefixTrie` through their Python bindings, against dictionaries and lists."""

import threading

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)

from engine._core import BlockAllocator, IntegrityError, OutOfBlocks, PrefixTrie
from engine.api.snapshot import BlockState

NUM_BLOCKS = 10
BLOCK_SIZE = 2
SALTS = st.sampled_from([b"a", b"b"])
TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=9)

Path = tuple[bytes, tuple[int, ...]]


class Sequence:
    """A running sequence, as the block manager keeps one."""

    def __init__(self, salt: bytes, tokens: list[int], blocks: list[int]) -> None:
        self.salt = salt
        self.tokens = tokens
        self.blocks = blocks


class Traffic(RuleBasedStateMachine):
    """Sequences start, grow, are indexed and finish; the model does the same with lists."""

    def __init__(self) -> None:
        super().__init__()
        self.allocator = BlockAllocator(NUM_BLOCKS, BLOCK_SIZE)
        self.trie = PrefixTrie(self.allocator)
        self.refcounts = [0] * NUM_BLOCKS
        self.reuse = list(range(NUM_BLOCKS))  # free and cached blocks, next to be reused first
        self.index: dict[Path, int] = {}

    sequences = Bundle("sequences")

    def model_allocate(self, count: int) -> list[int]:
        taken = self.reuse[:count]
        del self.reuse[:count]
        for block in taken:
            # Sequences release their last block first, so the next evicted block is always a leaf.
            self.index = {path: named for path, named in self.index.items() if named != block}
            self.refcounts[block] = 1
        return taken

    def model_release(self, blocks: list[int]) -> None:
        for block in blocks:
            self.refcounts[block] -= 1
            if self.refcounts[block] == 0:
                at = len(self.reuse) if block in self.index.values() else 0
                self.reuse.insert(at, block)

    def allocate(self, count: int) -> list[int] | None:
        if count > len(self.reuse):
            before = self.allocator.stats().epoch
            with pytest.raises(OutOfBlocks):
                self.allocator.allocate(count)
            assert self.allocator.stats().epoch == before
            return None
        blocks = self.allocator.allocate(count)
        assert blocks.dtype == np.int32
        assert blocks.tolist() == self.model_allocate(count)
        return blocks.tolist()

    def release(self, blocks: list[int]) -> None:
        self.allocator.release(blocks)
        self.model_release(blocks)

    @rule(target=sequences, salt=SALTS, tokens=TOKENS)
    def start(self, salt: bytes, tokens: list[int]) -> Sequence:
        prompt = np.array(tokens[:-1], np.int32)
        hit = self.trie.match_prefix(salt, prompt).tolist()
        whole = range(BLOCK_SIZE, len(tokens), BLOCK_SIZE)
        expected = [self.index.get((salt, tuple(tokens[:end]))) for end in whole]
        assert hit == expected[: len(hit)]
        assert all(block is None for block in expected[len(hit) : len(hit) + 1])
        self.allocator.retain(hit)
        for block in hit:
            self.refcounts[block] += 1
        self.reuse = [block for block in self.reuse if block not in hit]
        fresh = self.allocate(-(-len(tokens) // BLOCK_SIZE) - len(hit))
        if fresh is None:
            self.release(hit[::-1])
            return Sequence(salt, [], [])
        return Sequence(salt, tokens, hit + fresh)

    @rule(sequence=sequences, tokens=TOKENS)
    def grow(self, sequence: Sequence, tokens: list[int]) -> None:
        wanted = -(-(len(sequence.tokens) + len(tokens)) // BLOCK_SIZE)
        fresh = self.allocate(wanted - len(sequence.blocks))
        if fresh is not None:
            sequence.tokens = sequence.tokens + tokens
            sequence.blocks = sequence.blocks + fresh

    @rule(sequence=sequences)
    def index_full_blocks(self, sequence: Sequence) -> None:
        full = sequence.blocks[: len(sequence.tokens) // BLOCK_SIZE]
        expected = list(full)
        for at, own in enumerate(full):
            path = (sequence.salt, tuple(sequence.tokens[: (at + 1) * BLOCK_SIZE]))
            expected[at] = self.index.setdefault(path, own)
            if expected[at] != own:
                break
        named = self.trie.insert(sequence.salt, sequence.tokens, full)
        assert named.tolist() == expected

    @rule(sequence=consumes(sequences))
    def finish(self, sequence: Sequence) -> None:
        self.release(sequence.blocks[::-1])

    @rule(block=st.integers(0, NUM_BLOCKS - 1))
    def release_more_often_than_held(self, block: int) -> None:
        before = self.allocator.stats().epoch
        with pytest.raises(ValueError, match="more often than it is referenced"):
            self.allocator.release([block] * (self.refcounts[block] + 1))
        assert self.allocator.stats().epoch == before

    @precondition(lambda self: self.index)
    @rule()
    def clear_the_index(self) -> None:
        cached = set(self.reuse) & set(self.index.values())
        assert self.trie.clear() == len(self.index)
        self.index.clear()
        # The order among blocks freed by one call is unspecified.
        for block in cached:
            self.reuse.remove(block)
        self.reuse = self.drain_order(len(cached)) + self.reuse

    def drain_order(self, count: int) -> list[int]:
        blocks = self.allocator.allocate(count).tolist()
        self.allocator.release(blocks[::-1])
        return blocks

    @invariant()
    def block_accounting_is_consistent(self) -> None:
        self.allocator.check_integrity()
        assert self.allocator.num_free == len(self.reuse)
        assert self.allocator.refcounts().tolist() == self.refcounts
        named = set(self.index.values())
        free = [
            BlockState.CACHED if block in named else BlockState.FREE for block in range(NUM_BLOCKS)
        ]
        assert self.allocator.states().tolist() == [
            BlockState.ACTIVE if self.refcounts[block] else free[block]
            for block in range(NUM_BLOCKS)
        ]
        stats = self.allocator.stats()
        assert stats.free + stats.cached + stats.active == stats.num_blocks == NUM_BLOCKS
        assert stats.indexed == len(self.trie) == len(self.index)


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=60, stateful_step_count=40)


@pytest.mark.parametrize("blocks", [[-1], [4], [2**31 - 1], np.array([9], np.int32)])
def test_blocks_that_do_not_exist_are_refused(blocks: list[int]) -> None:
    allocator = BlockAllocator(4, 16)
    with pytest.raises(ValueError, match="does not exist in a pool of 4"):
        allocator.release(blocks)


@pytest.mark.parametrize("blocks", [np.array([0.5]), np.zeros((1, 1), np.int32), ["0"], [0.0], 0])
def test_other_types_than_lists_of_ids_are_a_type_error(blocks: object) -> None:
    allocator = BlockAllocator(4, 16)
    with pytest.raises(TypeError, match="one-dimensional int32 array or a sequence of ints"):
        allocator.release(blocks)  # type: ignore[arg-type]


def test_an_id_beyond_32_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bits"):
        BlockAllocator(4, 16).release([2**31])


@pytest.mark.parametrize("sizes", [(0, 16), (2**24 + 1, 16), (4, 0), (4, 256)])
def test_pool_sizes_out_of_range_are_refused(sizes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"1 to \d+"):
        BlockAllocator(*sizes)


def test_the_integrity_check_reports_an_orphaned_block() -> None:
    allocator = BlockAllocator(2, 1)
    head, tail = allocator.allocate(2).tolist()
    PrefixTrie(allocator).insert(b"", [7, 8], [head, tail])
    allocator.release([head])
    with pytest.raises(IntegrityError, match="its parent"):
        allocator.check_integrity()


def test_strided_array_views_are_read_correctly() -> None:
    allocator = BlockAllocator(4, 16)
    blocks = allocator.allocate(4)
    allocator.release(blocks[::-2])
    assert allocator.refcounts().tolist() == [1, 0, 1, 0]
    assert allocator.allocate(1).tolist() == [1]


def test_concurrent_threads_share_the_trie_and_no_allocated_block() -> None:
    """The pool holds all cached and active blocks at once, so that nothing is evicted."""
    size, threads, turns, shared = 4, 4, 300, 5
    allocator = BlockAllocator(64, BLOCK_SIZE)
    trie = PrefixTrie(allocator)
    owner = np.full(64, -1)  # block → the thread that allocated it
    failures: list[BaseException] = []

    def insert(thread: int, family: int) -> tuple[list[int], list[int]]:
        """Blocks found under a family's tokens, and those the trie names after they are inserted."""
        tokens = np.full(size * BLOCK_SIZE, family, np.int32)
        hit = trie.match_prefix(b"", tokens).tolist()
        blocks = allocator.allocate(size)
        assert (owner[blocks] == -1).all(), "a block was allocated to two threads"
        owner[blocks] = thread
        named = trie.insert(b"", tokens, blocks).tolist()
        assert (owner[blocks] == thread).all()
        owner[blocks] = -1
        allocator.release(blocks[::-1])
        assert hit in ([], named[:1] + hit[1:]), "a found prefix was named differently afterwards"
        return hit, named

    def work(thread: int) -> None:
        try:
            own, first = insert(thread, shared + thread)
            assert own == []
            for turn in range(turns):
                insert(thread, (thread + turn) % shared)
                own, named = insert(thread, shared + thread)
                assert own == first
                assert named[0] == first[0]
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
    allocator.check_integrity()
    stats = allocator.stats()
    assert (stats.active, stats.cached) == (0, size * (shared + threads))
    assert stats.allocated_total == threads * (1 + 2 * turns) * size
