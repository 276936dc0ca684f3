"""The agents pane's rows as pure functions of views."""

import pytest

from agents.api.events import RunEvent, RunEventType, RunState
from agents.service.run_view import AgentRow, RunView, fold
from app.tui.glyphs import ASCII, UNICODE
from app.tui.view.agent_rows import (
    RowId,
    build_agent_facts,
    build_agents_head,
    build_model_line,
    build_run_timeline,
    build_runs,
)
from app.tui.view.spans import plain, width


def row(agent, state=RunState.RUNNING, **more):
    return AgentRow("", agent, state, started=1.0, **more)


ROWS = (
    row("done", RunState.OK, finished=3.0),
    row("thinking", action="generates a step", step=2, max_steps=5, computed_tokens=1200,
        max_tokens=8192, cached_tokens=8400, tokens_per_second=412.0),
    row("reading", action="read a.py", in_tool=True),
    row("broken", RunState.DENIED, reason="write was denied: no."),
    row("asking", waits=True, action="shell pytest -q"),
    AgentRow("n", "later", RunState.PENDING, started=0.0),
    row("left_out", RunState.SKIPPED),
)  # fmt: skip
VIEW = RunView(
    "r", "review", "a goal", RunState.RUNNING, started=1.0, rows=ROWS, max_tokens=100_000,
    max_seconds=1800.0, severities={"high": 2},
)  # fmt: skip


def lines(cells=140, views=(VIEW,), **more):
    options = {"now": 6.0, "order": "group", "only": "", "cursor": None, "glyphs": UNICODE}
    return build_runs(views, **{**options, **more}, cells=cells)


def line_of(agent, cells=140, **more):
    built, ids = lines(cells, **more)
    at = next(at for at, one in enumerate(ids) if one is not None and one.agent == agent)
    return plain([built[at]])


def test_rows_are_grouped_by_what_needs_a_person():
    _, ids = lines()
    assert [one.agent for one in ids if one is not None] == [
        "", "asking", "broken", "reading", "thinking", "later", "done", "left_out",
    ]  # fmt: skip


def test_the_head_counts_the_agents_of_active_runs_in_words():
    over = RunView("o", "old", "", RunState.OK, finished=2.0, rows=ROWS)
    head = plain([build_agents_head([VIEW, over], "group", 200)])
    assert (
        "7: 1 waiting for approval · 1 failed · 1 in a tool · 1 running · 1 queued · 1 done · "
        "1 skipped" in head
    )
    assert "no run is active, 1 finished" in plain([build_agents_head([over], "group", 200)])


def test_a_row_shows_step_action_speed_budget_and_saving():
    text = line_of("thinking")
    for words in ("running", "generates a step", "2/5", "412", "1.2k/8.2k", "8.4k", "5.00 s"):
        assert words in text
    assert "shell pytest -q" in line_of("asking")
    assert line_of("broken").split()[0] == "denied"
    assert "write was denied: no." in line_of("broken")


def test_a_run_shows_its_findings_budget_and_saving():
    text = plain(lines()[0][:2])
    for words in ("review", "a goal", "2 high", "8.4k saved by sharing", "1.2k of 100k tokens"):
        assert words in text
    assert "5.00 s of 30 m 00 s" in text


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("cells", [20, 56, 80, 100, 200])
def test_every_line_fits_and_rows_stay_aligned(cells, glyphs):
    built, ids = lines(cells, glyphs=glyphs)
    assert len(built) == len(ids)
    assert all(width(line) <= cells for line in built)
    assert sum(one is not None for one in ids) == len(ROWS) + 1


def test_a_narrow_pane_keeps_the_time_and_drops_other_columns():
    assert "5.00 s" in line_of("reading", cells=72)
    assert "tok/s" not in plain(lines(72)[0])
    assert "tok/s" in plain(lines(140)[0])


def test_columns_without_a_value_are_left_out():
    only = RunView("r", "review", "", RunState.RUNNING, started=1.0, rows=ROWS[:1])
    text = plain(lines(views=[only])[0])
    assert "time" in text
    assert "tokens" not in text


def test_a_filter_keeps_matching_agents_and_drops_empty_runs():
    _, ids = lines(only="READING")
    assert [one for one in ids if one is not None] == [RowId("r"), RowId("r", "", "reading")]
    assert lines(only="nothing like it") == ([], [])


def test_a_folded_run_shows_its_own_lines_only():
    built, ids = lines(folded={"r"})
    assert (len(built), [one for one in ids if one is not None]) == (2, [RowId("r")])
    assert any(one == RowId("r", "", "reading") for one in lines(folded={"r"}, only="read")[1])


def test_another_order_names_every_group():
    assert line_of("later", order="tokens").split()[0] == "queued"
    _, ids = lines(order="tokens")
    assert [one.agent for one in ids if one is not None][1] == "thinking"


def test_the_timeline_has_a_bar_for_each_agent_that_began():
    built = build_run_timeline(VIEW, 6.0, UNICODE, 100)
    assert len(built) == len(ROWS) - 1
    assert all(width(line) <= 100 for line in built)
    bars = {plain([line]).split()[0]: plain([line]).count(UNICODE.bar_full) for line in built}
    assert bars["reading"] > 2 * bars["done"] > 0
    assert build_run_timeline(RunView("r", "x", "", rows=ROWS[:1]), 6.0, UNICODE, 100) == []


def test_facts_have_their_limits():
    text = plain([build_agent_facts(ROWS[1], 6.0, UNICODE, 120)])
    assert "running · 5.00 s · step 2/5 · 1.2k of 8.2k tokens · 8.4k saved by sharing" in text


def test_rows_come_from_events_alone():
    """51 nodes are queued from the start; budgets, speed and tools follow the log."""
    nodes = {f"n{at}": f"agent{at}" for at in range(51)}
    data = [
        (RunEventType.RUN_STATE, "", "", {"state": "running", "nodes": nodes}),
        (RunEventType.BUDGET, "", "", {"max_tokens": 900, "max_seconds": 60.0}),
        (RunEventType.NODE_STATE, "n3", "agent3", {"state": "running"}),
        (RunEventType.BUDGET, "n3", "agent3", {"max_tokens": 90, "max_steps": 4, "max_tools": 2}),
        (RunEventType.STEP_STARTED, "n3", "agent3", {"step": 1}),
        (RunEventType.BUDGET, "n3", "agent3", {"computed_tokens": 30, "cached_tokens": 12}),
        (RunEventType.STEP_FINISHED, "n3", "agent3", {"start": 1.0, "end": 1.5, "n_gen": 10}),
        (RunEventType.TOOL_STARTED, "n3", "agent3", {"tool": "read", "arguments": "a.py"}),
    ]
    events = [
        RunEvent(at, 5.0 + at, "r", kind, node, agent, "", fields)
        for at, (kind, node, agent, fields) in enumerate(data)
    ]
    view = fold(RunView("r", "all", ""), events)
    assert view.summary() == "51: 1 in a tool · 50 queued"
    at_work = view.rows[3]
    assert (at_work.started, at_work.tokens_per_second, at_work.tool_calls) == (7.0, 20.0, 1)
    assert (at_work.step, at_work.max_steps, at_work.max_tokens) == (1, 4, 90)
    assert (view.computed_tokens, view.cached_tokens, view.max_tokens) == (30, 12, 900)


def test_the_model_line_fits_its_cells():
    assert (
        plain([build_model_line("toy", "short texts; writes Plan", 80)])
        == "toy: short texts; writes Plan"
    )
    assert width(build_model_line("toy", "short texts; writes Plan", 12)) <= 12


def test_a_model_that_is_tested_is_what_its_agent_does():
    def tested(done):
        return RunEvent(
            done, 1.0, "r", RunEventType.MODEL_TEST, "", "planner",
            data={"text": f"testing toy once: loops, {done} of 2", "done": done, "total": 2},
        )  # fmt: skip

    view = fold(RunView("r", "planner", ""), [tested(0), tested(1)])
    assert view.rows[0].action == "testing toy once: loops, 1 of 2"
    assert fold(view, [tested(2)]).rows[0].action == ""
