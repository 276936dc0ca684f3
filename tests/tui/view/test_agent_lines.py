"""The agents pane's rows as pure functions of views and events."""

from agents.api.events import RunEvent, RunEventType, RunState
from agents.runs.approvals import ApprovalRequest
from agents.service.run_view import AgentRow, RunView
from agents.tools.tool import Effect
from app.tui.glyphs import UNICODE
from app.tui.view.agent_lines import (
    RowId,
    build_approval,
    build_runs,
    build_step_timeline,
    build_trace,
    group_of,
)
from app.tui.view.spans import plain, width


def row(agent, state=RunState.RUNNING, **more):
    return AgentRow("", agent, state, started=0.0, **more)


ROWS = (
    row("done", RunState.OK),
    row("thinking", action="thinks"),
    row("reading", action="read a.py"),
    row("broken", RunState.FAILED),
    row("asking", waits=True),
    row("left_out", RunState.SKIPPED),
)


def test_groups_are_ordered_by_what_needs_a_person():
    ordered = sorted(ROWS, key=group_of)
    assert [one.agent for one in ordered] == [
        "asking", "broken", "reading", "thinking", "done", "left_out",
    ]  # fmt: skip


def lines(cells=100, **more):
    view = RunView("r", "review", "a goal", RunState.RUNNING, rows=ROWS, severities={"high": 2})
    options = {"now": 5.0, "order": "group", "only": "", "cursor": None, "glyphs": UNICODE}
    return build_runs([view], **{**options, **more}, cells=cells)


def test_every_row_stands_for_something_and_fits():
    for cells in (20, 56, 100, 200):
        built, ids = lines(cells)
        assert len(built) == len(ids) == len(ROWS) + 1
        assert all(width(line) <= cells for line in built)


def test_a_filter_keeps_matching_agents_and_drops_empty_runs():
    _, ids = lines(only="READING")
    assert ids == [RowId("r"), RowId("r", "", "reading")]
    assert lines(only="nothing like it") == ([], [])


def event(number, kind, **data):
    return RunEvent(number, 0.0, "r", kind, "", "reading", "", data)


def test_steps_are_bars_in_their_order():
    steps = [
        event(0, RunEventType.STEP_FINISHED, start=1.0, end=2.0, n_prompt=900, n_cached=0, n_gen=5),
        event(
            1, RunEventType.STEP_FINISHED, start=2.0, end=4.0, n_prompt=950, n_cached=896, n_gen=9
        ),
    ]
    first, second = build_step_timeline(steps, UNICODE, 100)
    assert "1.00 s, 900 prompt, 5 new" in plain([first])
    assert "2.00 s, 950 prompt, 896 cached, 9 new" in plain([second])
    bars = [plain([one]).count(UNICODE.bar_full) for one in (first, second)]
    assert bars[1] in (2 * bars[0], 2 * bars[0] - 1, 2 * bars[0] + 1)
    assert build_step_timeline([], UNICODE, 100) == []


def test_a_trace_shows_untrusted_text_without_its_escapes():
    events = [event(0, RunEventType.TOOL_FINISHED, tool="read", failed=False, text="a\x1b[31mb\nc")]
    text = plain(build_trace(RunView("r", "x", ""), RowId("r", "", "reading"), events, UNICODE, 60))
    assert "\x1b" not in text
    assert "observed" in text


def test_long_observations_are_cut():
    events = [event(0, RunEventType.TOOL_FINISHED, tool="read", failed=False, text="x\n" * 99)]
    built = build_trace(RunView("r", "x", ""), RowId("r"), events, UNICODE, 60)
    assert len(built) < 20
    assert "more rows" in plain(built)


def test_an_approval_shows_everything_that_would_happen():
    request = ApprovalRequest(
        "a", "r", "coder", "shell", '{"command": "rm -rf \\u001b build"}', "rm", frozenset({Effect.EXECUTE}),
        "/home/me", "the run has read untrusted and private data",
    )  # fmt: skip
    text = plain(build_approval(request, 60))
    for words in ("coder", "shell", "execute", "/home/me", "untrusted and private", "rm -rf"):
        assert words in text
    assert "\x1b" not in text
