"""Sessions in the pool: what is evicted first when allocations need their blocks."""

from dataclasses import replace

import numpy as np
import pytest

from engine._core import BlockAllocator
from engine.memory.pauses import PERSON
from engine.memory.sessions import MAX_SESSIONS
from tests.fakes.toy_engine import ask
from tests.fakes.toy_pipeline import ToyPipeline

SIZE = 4


@pytest.fixture
def toy():
    return ToyPipeline(blocks=24, block_size=SIZE, allocator=BlockAllocator)


def answer(toy, name, tokens, *, session=True, may_be_held=False):
    """Run a request of a session to its end; its tokens."""
    request = replace(
        ask(tokens, max_tokens=1, temperature=0.0),
        session=name if session else None,
        may_be_held=may_be_held,
    )
    toy.submit(request)
    toy.run()
    return toy.ended[-1].tokens.tolist()


def resident(toy, tokens):
    """How many leading blocks of the tokens are in the pool."""
    return len(toy.blocks.resident(np.array(tokens, np.int32), b""))


def evict(toy, count):
    """Allocate so many blocks beyond the free ones, and release them."""
    free = toy.blocks.counts().free
    toy.blocks.release(toy.blocks.allocate(free + count))


def prompt(first, blocks=4):
    return [(first + index) % 90 for index in range(SIZE * blocks)]


def test_a_session_that_is_expected_sooner_is_evicted_later(toy):
    slow, fast = prompt(0), prompt(30)
    answer(toy, "fast", fast)
    answer(toy, "slow", slow)
    pauses = toy.blocks.sessions.pauses
    pauses.observe("fast", "", 1.0)
    pauses.observe("slow", "", 30.0)
    evict(toy, 3)
    assert (resident(toy, fast), resident(toy, slow)) == (4, 1)


def test_a_session_loses_its_last_blocks_first(toy):
    answer(toy, "a", prompt(0))
    evict(toy, 2)
    assert resident(toy, prompt(0)) == 2


def test_blocks_without_a_session_go_before_those_of_sessions_that_are_expected(toy):
    answer(toy, "a", prompt(0))
    answer(toy, "", prompt(30), session=False)
    evict(toy, 3)
    assert (resident(toy, prompt(0)), resident(toy, prompt(30))) == (4, 1)


def test_a_shared_head_has_the_place_of_the_dearest_session(toy):
    head = prompt(0, 2)
    cheap, dear = head + prompt(30, 2), head + prompt(60, 2)
    answer(toy, "cheap", cheap)
    answer(toy, "dear", dear)
    toy.blocks.sessions.pauses.observe("cheap", "", 50.0)
    toy.blocks.sessions.pauses.observe("dear", "", 1.0)
    evict(toy, 2)
    assert (resident(toy, cheap), resident(toy, dear)) == (2, 4)
    evict(toy, 2)
    assert resident(toy, dear) == 2


def test_a_session_that_stays_away_has_no_price(toy):
    answer(toy, "a", prompt(0))
    toy.clock.now += 3600.0
    answer(toy, "", prompt(30), session=False)
    evict(toy, 3)
    assert (resident(toy, prompt(0)), resident(toy, prompt(30))) == (1, 4)


def test_a_run_that_has_answered_goes_before_one_that_waits_for_a_tool(toy):
    sessions = toy.blocks.sessions
    answer(toy, "tool", prompt(0), may_be_held=True)
    answer(toy, "done", prompt(30), may_be_held=True)
    sessions.waits_for("tool", "bash")
    sessions.waits_for("done", PERSON)
    sessions.pauses.observe("tool", "bash", 1000.0)
    evict(toy, 3)
    assert (resident(toy, prompt(0)), resident(toy, prompt(30))) == (4, 1)


def test_a_pause_is_from_the_answer_to_the_next_request(toy):
    sessions = toy.blocks.sessions
    tokens = answer(toy, "a", prompt(0))
    sessions.waits_for("a", "bash")
    toy.clock.now += 7.0
    answer(toy, "a", [*tokens, 1, 2])
    assert sessions.pauses.mean("a", "bash") == pytest.approx(7.0)


def test_what_is_said_of_a_session_that_runs_again_is_ignored(toy):
    sessions = toy.blocks.sessions
    tokens = answer(toy, "a", prompt(0))
    toy.submit(replace(ask([*tokens, 5], max_tokens=9, temperature=0.0), session="a"))
    toy.step()
    sessions.waits_for("a", PERSON)
    assert sessions.find("a").tool == ""
    sessions.waits_for("unknown", PERSON)
    toy.run()


def test_the_sessions_used_last_are_kept(toy):
    for number in range(MAX_SESSIONS + 2):
        answer(toy, str(number), [1, 2])
    assert len(toy.blocks.sessions) == MAX_SESSIONS
    assert toy.blocks.sessions.find("1") is None
    assert toy.blocks.sessions.find(str(MAX_SESSIONS + 1)) is not None


def test_ordering_keeps_every_invariant_and_every_block(toy):
    for number in range(4):
        answer(toy, f"s{number}", prompt(10 * number))
    before = toy.blocks.num_free
    toy.blocks.sessions.order_evictions()
    toy.check()
    assert toy.blocks.num_free == before


def lose_and_return(toy, away_s=0.0):
    tokens = answer(toy, "a", prompt(0))
    toy.clock.now += away_s
    evict(toy, 3)
    answer(toy, "a", [*tokens, 1])
    toy.clock.now += 1.0
    toy.blocks.sessions.tick(toy.clock.now)
    return toy.pipeline.scheduler.session_counts()


def test_what_a_session_lost_is_counted_by_reason(toy):
    counts = lose_and_return(toy)
    assert (counts.lost_space, counts.lost_away, counts.lost_held) == (3, 0, 0)
    assert (counts.running, counts.expected, counts.held_requests) == (0, 1, 0)


def test_what_a_session_lost_while_it_was_away_is_told_apart(toy):
    counts = lose_and_return(toy, away_s=3600.0)
    assert (counts.lost_space, counts.lost_away) == (0, 3)


def test_a_session_whose_request_outgrows_the_pool_does_not_run_any_more():
    toy = ToyPipeline(blocks=4, block_size=SIZE, allocator=BlockAllocator)
    request = ask(prompt(0, blocks=3), max_tokens=9, temperature=0.0)
    handle = toy.submit(replace(request, session="a"))
    toy.run()
    assert handle.wait_result().finish_reason == "error"
    assert toy.blocks.sessions.find("a").running == 0
