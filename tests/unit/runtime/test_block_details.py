"""Single blocks and the prefix tree, described on request."""

import pytest

from engine._core import BlockAllocator
from engine.api.errors import InvalidRequest
from engine.api.residency import Residency
from engine.api.snapshot import BlockState
from engine.runtime.block_details import describe_block, describe_tree
from tests.fakes.toy_engine import ask, toy_config, toy_engine
from tests.fakes.toy_pipeline import ToyPipeline

BLOCK = 4
PATIENCE_S = 30


def prompt(length, start=1):
    return [(start + i) % 90 for i in range(length)]


def toy_pipeline(**settings):
    return ToyPipeline(**{"allocator": BlockAllocator, "block_size": BLOCK} | settings)


def spelled(token_ids):
    return " ".join(map(str, token_ids))


def describe(toy, block):
    return describe_block(block, toy.blocks, toy.table, decode=spelled, last_used=None)


def blocks_of(toy, handle):
    row = toy.row(handle)
    return toy.table.block_tables[row, : toy.table.num_blocks[row]].tolist()


def test_a_shared_block_names_all_owners_and_its_relatives():
    toy = toy_pipeline()
    parent = toy.submit(ask(prompt(9), max_tokens=20))
    toy.step()
    (child,) = toy.fork(parent)
    toy.step()
    first, second, partial = blocks_of(toy, parent)
    detail = describe(toy, second)
    assert [one.request_id for one in detail.owners] == [parent.request_id, child.request_id]
    assert [one.first_token for one in detail.owners] == [4, 4]
    assert (detail.state, detail.refcount, detail.fill) == (BlockState.ACTIVE, 2, BLOCK)
    assert detail.text == spelled(prompt(4, 5))
    assert (detail.parent, detail.first_token) == (first, 4)
    assert describe(toy, first).children == (second,)
    unfinished = describe(toy, partial)
    assert (unfinished.fill, unfinished.parent) == (2, second)
    assert unfinished.token_ids[0] == prompt(9)[8]


def test_a_cached_block_keeps_its_tokens_without_an_owner():
    toy = toy_pipeline()
    handle = toy.submit(ask(prompt(9), max_tokens=20))
    toy.step()
    _, second, _ = blocks_of(toy, handle)
    handle.abort()
    detail = describe(toy, second)
    assert (detail.state, detail.owners, detail.refcount) == (BlockState.CACHED, (), 0)
    assert detail.text == spelled(prompt(4, 5))


def test_a_free_block_holds_nothing():
    detail = describe(toy_pipeline(), 3)
    assert detail.state is BlockState.FREE
    assert (detail.token_ids, detail.text, detail.first_token) == ((), "", None)
    assert (detail.parent, detail.children) == (None, ())


def test_the_prefix_tree_shows_a_fork_as_chains():
    toy = toy_pipeline()
    toy.submit(ask([*prompt(8), 70, 71, 72, 73], max_tokens=1))
    toy.run()
    toy.submit(ask([*prompt(8), 80, 81, 82, 83], max_tokens=1))
    toy.run()
    tree = describe_tree(toy.blocks, decode=spelled)
    trunk, *branches = tree.chains
    assert (trunk.parent, trunk.num_blocks, trunk.first_token) == (-1, 2, 0)
    assert trunk.text == spelled(prompt(4))
    assert {(one.parent, one.first_token, one.num_blocks) for one in branches} == {(0, 8, 1)}
    assert {one.text for one in branches} == {"70 71 72 73", "80 81 82 83"}
    assert not tree.truncated
    short = describe_tree(toy.blocks, decode=spelled, limit=1)
    assert (len(short.chains), short.truncated) == (1, True)


def test_without_a_prefix_cache_the_tree_is_empty():
    assert describe_tree(toy_pipeline(prefixes=False).blocks, decode=spelled).chains == ()


def test_an_engine_describes_its_blocks_and_prefixes(tmp_path):
    settings = {"block_size": BLOCK, "swap_bytes": 1 << 20, "swap_dir": tmp_path}
    engine, _ = toy_engine(toy_config(**settings))
    assert engine.block(0) is engine.prefix_tree() is None
    engine.start()
    engine.wait_ready(PATIENCE_S)
    engine.submit(ask(prompt(50), max_tokens=1)).wait_result(PATIENCE_S)
    (chain,) = engine.prefix_tree().chains
    assert chain.num_blocks == len(chain.blocks) == 12
    assert chain.blocks[0] == chain.first_block
    assert engine.residency(prompt(50)) == Residency(50, 48, 0, chain.blocks)
    with pytest.raises(InvalidRequest):
        engine.block(10**6)
    with pytest.raises(InvalidRequest):
        engine.pin([], pin_id="nothing")
    engine.shutdown()
    second, _ = toy_engine(toy_config(**settings))
    second.start()
    second.wait_ready(PATIENCE_S)
    assert second.residency(prompt(50)) == Residency(50, 0, 48)
    second.shutdown()
