"""The event strip, the flashes after events, and the request table."""

import numpy as np
import pytest

from app.tui.glyphs import ASCII, UNICODE
from app.tui.view.kv_events import build_event_strip, is_shown, short_id
from app.tui.view.kv_flash import BLINK_HALF_S, BLINK_S, MAX_FLASHES, SHARED_S, Flashes
from app.tui.view.kv_requests import build_request_table
from app.tui.view.spans import plain, width
from engine.api.events import (
    BlocksEvicted,
    BlocksSwappedIn,
    BlocksSwappedOut,
    FirstToken,
    PrefixHit,
    PrefixPinned,
    PrefixUnpinned,
    RequestFinished,
    RequestForked,
    RequestPreempted,
    RequestQueued,
    RequestScheduled,
    StepFailed,
)
from engine.api.request import FinishReason, Timings
from engine.api.request_status import RequestState, RequestStatus
from engine.api.snapshot import BlockMap

FORK = RequestForked(12.5, "req-child", "req-parent", 9, 2, 7)


def block_map():
    return BlockMap(
        epoch=1,
        state=np.ones(8, np.uint8),
        refcount=np.ones(8, np.uint16),
        fill=np.full(8, 4, np.uint8),
        owner=np.zeros(8, np.int32),
        owners=("req-child", "req-parent"),
        first_token=np.zeros(8, np.int32),
        pinned=np.zeros(8, np.bool_),
        last_used=np.full(8, np.nan),
        held_blocks=np.array([0, 1, 7, 0, 1, 2], np.int32),
        held_by=np.array([0, 0, 0, 1, 1, 1], np.int32),
    )


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (RequestScheduled(1.0, "req-abcdefghij", resumed=False), "admit    abcdefgh"),
        (RequestScheduled(1.0, "req-a", resumed=True), "resume   a"),
        (PrefixHit(1.0, "req-a", 32, 2, None), "hit      a  32 tokens, 2 blocks shared"),
        (FORK, "fork     child from parent  9 tokens, 2 blocks shared + 1 copied"),
        (BlocksEvicted(1.0, 1, 0), "evict    1 block"),
        (BlocksEvicted(1.0, 5, 2), "evict    5 blocks, 2 not saved"),
        (BlocksSwappedOut(1.0, 3), "swap out 3 blocks"),
        (BlocksSwappedIn(1.0, "req-a", 3), "swap in  a  3 blocks"),
        (PrefixPinned(1.0, "pin-1", 40, 2), "pin      2 blocks of 40 tokens"),
        (PrefixUnpinned(1.0, "pin-1", 2, dropped=True), "unpin    2 blocks, needed by a request"),
        (RequestPreempted(1.0, "req-a", 40, swapped=True), "preempt  a  40 tokens, swapped"),
        (
            RequestFinished(3.0, "req-a", FinishReason.STOP, 5, 7, Timings(1.0), None),
            "finish   a  stop, 7 tokens in 2.00 s",
        ),
        (StepFailed(1.0, "bad\x1b[2J", 1), "failed   bad"),
    ],
)
def test_an_event_in_words(event, words):
    assert is_shown(event)
    row = plain(build_event_strip([event], 0.0, 3, 100))
    assert words in row
    assert "\x1b" not in row


def test_events_that_say_nothing_about_blocks_are_not_shown():
    assert not is_shown(RequestQueued(1.0, "r", 3))
    assert not is_shown(FirstToken(1.0, "r", 0.1))


def test_the_newest_event_is_on_top_with_its_time():
    events = [BlocksEvicted(float(second), second, 0) for second in range(1, 200, 60)]
    rows = plain(build_event_strip(events, 1.0, 2, 30)).splitlines()
    assert [row.split()[0] for row in rows] == ["3:00.0", "2:00.0"]
    assert all(width(row) <= 12 for row in build_event_strip(events, 0.0, 9, 12))


def test_beside_the_chat_a_fork_is_told_with_its_price():
    row = plain(build_event_strip([FORK], 0.0, 3, 37))
    assert row == "0:12.5 fork     chil 2 blk +1 copied"


def test_an_id_is_short_and_safe():
    assert short_id("req-0123456789") == "01234567"
    assert "\x1b" not in short_id("\x1b]52;c;x\x07")


def test_a_fork_lights_the_shared_prefix_once_and_blinks_the_copy():
    flashes = Flashes().started([FORK], 100.0)
    blocks = block_map()
    assert flashes.flashing(blocks, 100.0).tolist() == [0, 1, 7]
    assert flashes.flashing(blocks, 100.0 + BLINK_HALF_S * 1.5).tolist() == [0, 1]
    assert flashes.flashing(blocks, 100.0 + BLINK_HALF_S * 2.1).tolist() == [0, 1, 7]
    later = 100.0 + max(SHARED_S, BLINK_HALF_S * 4) + 0.01
    assert flashes.flashing(blocks, later).tolist() == [7]
    assert flashes.started([], 100.0 + BLINK_S).running == ()


def test_without_animations_the_copy_does_not_blink():
    flashes = Flashes().started([FORK], 100.0)
    for age in (0.0, BLINK_HALF_S * 1.5):
        assert 7 in flashes.flashing(block_map(), 100.0 + age, still=True)


def test_flashes_are_bounded_and_survive_a_smaller_pool():
    flashes = Flashes().started([FORK] * 100, 0.0)
    assert len(flashes.running) == MAX_FLASHES
    far = Flashes().started([RequestForked(1.0, "gone", "req-parent", 9, 2, 700)], 0.0)
    assert far.flashing(block_map(), 0.0).tolist() == []


def status(request_id="req-abc", **changes):
    values = {
        "request_id": request_id, "state": RequestState.DECODE, "prompt_tokens": 1200,
        "computed_tokens": 1220, "generated_tokens": 21, "cached_tokens": 960, "blocks": 39,
        "preemptions": 0, "priority": 0, "queued_at": 0.0, "deadline": None, "ttft": 0.25,
        "itl": 0.0125,
    }  # fmt: skip
    return RequestStatus(**values | changes)


def test_the_table_has_a_heading_and_a_row_per_request():
    table = build_request_table(
        [status(), status("req-def", priority=3, ttft=None, itl=None)],
        "req-abc",
        "req-def",
        UNICODE,
        now=0.0,
        rows=9,
        cells=110,
    )
    head, own, lit = plain(table).splitlines()
    assert head.split()[:3] == ["request", "state", "prompt"]
    assert own.split() == ["▸", "abc", "decode", "1.2k", "960", "1.2k", "21", "39", "250", "ms", "12",
                           "ms", "–", "–"]  # fmt: skip
    assert lit.split()[0] == "◆"
    assert lit.split()[-2:] == ["3", "–"]


@pytest.mark.parametrize(
    ("ttft", "deadline", "said"),
    [
        (0.25, 10.3, "met"),
        (0.25, 10.2, "missed"),
        (None, 12.5, "in 500 ms"),
        (None, 11.9, "missed"),
    ],
)
def test_the_table_says_whether_the_first_token_meets_its_deadline(ttft, deadline, said):
    one = status(queued_at=10.0, ttft=ttft, deadline=deadline)
    table = build_request_table([one], None, None, UNICODE, now=12.0, rows=9, cells=110)
    assert plain(table).splitlines()[1].endswith(f" {said}")


def test_requests_that_do_not_fit_are_counted():
    table = build_request_table(
        [status(f"req-{n}") for n in range(9)], None, None, ASCII, now=0.0, rows=5, cells=60
    )
    assert len(table) == 5
    assert "and 6 more" in plain(table)
    assert all(width(row) <= 60 for row in table)
    assert build_request_table([], None, None, ASCII, now=0.0, rows=5, cells=60) == []
