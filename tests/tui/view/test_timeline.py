"""The timeline of requests and the lines of the scheduler view."""

import pytest

from app.tui.glyphs import ASCII, UNICODE
from app.tui.view.scheduler_lines import build_plan, build_steps
from app.tui.view.spans import plain, width
from app.tui.view.timeline import LABEL_CELLS, WINDOW_S, Timeline, build_gantt, build_gantt_legend
from engine.api.events import (
    FirstToken,
    RequestFinished,
    RequestPreempted,
    RequestQueued,
    RequestScheduled,
)
from engine.api.request import FinishReason, Timings
from engine.api.step_view import PlannedRow, PlannedStep, RowPhase, StepEntry

CELLS = LABEL_CELLS + 10


def finished(time, request_id):
    return RequestFinished(time, request_id, FinishReason.STOP, 1, 1, Timings(0.0), None)


def test_a_request_goes_through_its_phases():
    timeline = Timeline()
    timeline.feed(
        [
            RequestQueued(90.0, "req-abcdefghij", 5),
            RequestScheduled(92.0, "req-abcdefghij", False),
            FirstToken(94.0, "req-abcdefghij", 4.0),
            RequestPreempted(96.0, "req-abcdefghij", 9, False),
            RequestScheduled(97.0, "req-abcdefghij", True),
            finished(99.0, "req-abcdefghij"),
        ]
    )
    _, row = build_gantt(timeline, 100.0, UNICODE, CELLS, 5)
    assert plain([row]) == "  abcdefgh··▒▒██╳██ ".replace("abcdefgh", "abcdefgh")
    _, row = build_gantt(timeline, 100.0, ASCII, CELLS, 5)
    assert plain([row])[LABEL_CELLS:] == "..==##x## "


def test_requests_of_another_time_are_not_shown():
    timeline = Timeline()
    timeline.feed(
        [RequestQueued(1.0, "old", 1), finished(2.0, "old"), RequestQueued(99.0, "new", 1)]
    )
    shown = plain(build_gantt(timeline, 100.0, UNICODE, CELLS, 5))
    assert "new" in shown
    assert "old" not in shown
    earlier = plain(build_gantt(timeline, 3.0, UNICODE, CELLS, 5))
    assert "old" in earlier
    assert "new" not in earlier


def test_the_newest_requests_have_room():
    timeline = Timeline()
    timeline.feed([RequestQueued(99.0, f"r{number}", 1) for number in range(8)])
    shown = plain(build_gantt(timeline, 100.0, UNICODE, CELLS, 3, own="r7"))
    assert "r7" in shown
    assert "r4" not in shown
    assert "5 older requests" in shown


def test_a_timeline_without_requests_says_so():
    assert plain(build_gantt(Timeline(), 5.0, UNICODE, CELLS, 3)).splitlines()[0].endswith(" now")
    past = plain(build_gantt(Timeline(), 5.0, UNICODE, CELLS, 3, end="14:05:09"))
    assert past.splitlines()[0].endswith(" 14:05:09")
    assert "no requests" in plain(build_gantt(Timeline(), 5.0, UNICODE, CELLS, 3))
    assert build_gantt(Timeline(), 5.0, UNICODE, LABEL_CELLS, 3) == []
    assert WINDOW_S > 0
    assert "prefill" in plain([build_gantt_legend(UNICODE)])


@pytest.mark.parametrize("cells", [40, 80, 150])
def test_the_plan_and_the_steps_fit(cells):
    rows = tuple(
        PlannedRow(f"req-{n}", RowPhase.DECODE if n else RowPhase.PREFILL, 1 if n else 400, 0, 12)
        for n in range(20)
    )
    plan = PlannedStep(7, 1.0, 512, 419, rows)
    steps = [StepEntry(n, n * 0.1, 0.02, 400 * (n % 2), 19, 3, 20) for n in range(300)]
    lines = build_plan(plan, UNICODE, cells, 12) + build_steps(steps, UNICODE, cells)
    assert all(width(line) <= cells for line in lines)
    text = plain(lines)
    assert "419 of 419" in text.replace("419 tokens", "") or "419" in text
    assert "8 more rows" in text
    assert "no step since" in plain(build_plan(None, UNICODE, cells, 3))
