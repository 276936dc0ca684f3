"""The trace of an agent as a pure function of its events."""

from agents.api.events import RunEvent, RunEventType
from app.tui.glyphs import UNICODE
from app.tui.view.agent_trace import (
    MAX_ENTRIES,
    build_step_timeline,
    build_trace,
    trace_entries,
)
from app.tui.view.spans import plain, width

FINDING = {"severity": "high", "file": "a.py", "line": 7, "message": "A shell runs input."}


def events(*given):
    return [
        RunEvent(at, 0.0, "r", kind, "n", data.pop("who", "logic_flaw"), "", data)
        for at, (kind, data) in enumerate((kind, dict(data)) for kind, data in given)
    ]


STEP = [
    (RunEventType.STEP_STARTED, {"step": 1}),
    (RunEventType.STEP_FINISHED, {"start": 1.0, "end": 2.2, "n_prompt": 900, "n_cached": 832,
                                  "n_gen": 40, "thought": "Look at it."}),
    (RunEventType.ACTION_CHOSEN, {"action": "read", "input": {"path": "a.py"}}),
    (RunEventType.TOOL_STARTED, {"tool": "read", "arguments": '{"path": "a.py"}'}),
    (RunEventType.TOOL_FINISHED, {"tool": "read", "failed": False, "text": "import os\nx = 1"}),
]  # fmt: skip
CALL = [
    (RunEventType.APPROVAL_REQUESTED, {"tool": "write", "target": "b.md"}),
    (RunEventType.APPROVAL_RESOLVED, {"tool": "write", "allowed": True}),
    (RunEventType.TOOL_STARTED, {"tool": "write", "arguments": "{}"}),
    (RunEventType.TOOL_FINISHED, {"tool": "write", "failed": False, "text": "Wrote it.", "seconds": 0.25}),
]  # fmt: skip
DENIED = [
    (RunEventType.APPROVAL_REQUESTED, {"tool": "shell", "target": "pytest"}),
    (RunEventType.APPROVAL_RESOLVED, {"tool": "shell", "allowed": False, "reason": "shell was denied: no."}),
]  # fmt: skip


def show(given, *, toggled=(), cursor=0, cells=100, with_agents=False):
    entries = trace_entries(given)
    built, owners = build_trace(
        entries,
        toggled=set(toggled),
        cursor=cursor,
        with_agents=with_agents,
        glyphs=UNICODE,
        cells=cells,
    )
    assert len(built) == len(owners)
    assert all(width(line) <= cells for line in built)
    return plain(built)


def test_a_step_is_one_line_that_unfolds_to_thought_action_and_observation():
    given = events(*STEP)
    folded = show(given)
    assert folded.count("\n") == 0
    assert 'step 1     read {"path": "a.py"}' in folded
    assert "1.20 s, 900 prompt, 832 cached, 40 new" in folded
    opened = show(given, toggled={0})
    for words in ("thought", "Look at it.", "action", "observed", "import os", "x = 1"):
        assert words in opened


def test_a_call_and_its_approval_are_one_entry():
    text = show(events(*CALL))
    assert text.count("\n") == 0
    assert "call       write b.md" in text
    assert "250 ms" in text
    assert "asked for" in show(events(*CALL), toggled={0})


def test_a_denied_call_says_why_and_the_next_call_is_another_entry():
    entries = trace_entries(events(*DENIED, *DENIED, *CALL))
    assert [one.number for one in entries] == [0, 2, 4]
    assert "shell pytest: shell was denied: no." in show(events(*DENIED))
    assert "waits for approval" in show(events(DENIED[0]))
    assert "write b.md: allowed" in show(events(*CALL[:2]))


def test_findings_are_shown_and_decisions_counted():
    decisions = [
        (RunEventType.DECISION, {"question": "q", "label": "yes", "abstained": at > 0})
        for at in range(3)
    ]
    text = show(
        events((RunEventType.FINDING, FINDING), (RunEventType.FINDING, FINDING), *decisions)
    )
    assert "2 high" in text
    assert "a.py:7 A shell runs input." in text
    assert "3 one-token answers, 2 abstained" in text
    assert "stands" not in text
    assert "a.py:7" not in show(events((RunEventType.FINDING, FINDING)), toggled={0})


def test_the_test_of_a_model_is_one_line_that_grows():
    given = [
        (
            RunEventType.MODEL_TEST,
            {"text": f"testing toy once: loops, {n} of 3", "done": n, "total": 3},
        )
        for n in range(4)
    ]
    text = show(events(*given))
    assert text.count("testing toy once") == 1
    assert "loops, 3 of 3" in text


def test_agents_of_a_run_are_not_mixed():
    given = events(
        (RunEventType.STEP_STARTED, {"step": 1}),
        (RunEventType.STEP_STARTED, {"step": 1, "who": "other"}),
        (RunEventType.ACTION_CHOSEN, {"action": "read", "input": {}}),
    )
    entries = trace_entries(given)
    assert [len(one.events) for one in entries] == [2, 1]
    assert "logic_flaw  read" in show(given, with_agents=True)


def test_states_and_budgets_of_nodes_that_only_run_are_left_out():
    given = events(
        (RunEventType.NODE_STATE, {"state": "running"}),
        (RunEventType.RUN_STATE, {"state": "running"}),
        (RunEventType.BUDGET, {"max_tokens": 5}),
        (RunEventType.NODE_STATE, {"state": "timed_out", "reason": "It took long."}),
    )
    assert len(trace_entries(given)) == 1
    assert "timed out It took long." in show(given)


def test_untrusted_text_is_shown_without_its_escapes_and_cut():
    text = "a\x1b[31mb\n" + "x\n" * 99
    given = events((RunEventType.TOOL_STARTED, {"tool": "read", "arguments": ""}),
                   (RunEventType.TOOL_FINISHED, {"tool": "read", "failed": True, "text": text}))  # fmt: skip
    shown = show(given, toggled={0}, cells=60)
    assert "\x1b" not in shown
    assert "more rows" in shown
    assert shown.count("\n") < 20
    assert "failed" in shown


def test_a_long_trace_keeps_its_newest_entries():
    given = events(*[(RunEventType.NOTE, {"text": f"n{at}"}) for at in range(MAX_ENTRIES + 5)])
    entries = trace_entries(given)
    assert len(entries) == MAX_ENTRIES
    assert entries[-1].events[0].data["text"] == f"n{MAX_ENTRIES + 4}"


def test_steps_are_bars_in_their_order():
    steps = [
        (RunEventType.STEP_FINISHED, {"start": 1.0, "end": 2.0, "n_prompt": 900, "n_gen": 5}),
        (RunEventType.STEP_FINISHED, {"start": 2.0, "end": 4.0, "n_prompt": 950,
                                      "n_cached": 896, "n_gen": 9}),
    ]  # fmt: skip
    first, second = build_step_timeline(events(*steps), UNICODE, 100)
    assert "1.00 s, 900 prompt, 5 new" in plain([first])
    assert "2.00 s, 950 prompt, 896 cached, 9 new" in plain([second])
    bars = [plain([one]).count(UNICODE.bar_full) for one in (first, second)]
    assert bars[1] in (2 * bars[0], 2 * bars[0] - 1, 2 * bars[0] + 1)
    assert build_step_timeline([], UNICODE, 100) == []
