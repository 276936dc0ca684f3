"""The events of a repair as entries of its trace: what was asked, tried, dropped and chosen, and why."""

from agents.api.events import RunEvent, RunEventType
from app.tui.glyphs import UNICODE
from app.tui.view.agent_trace import build_trace, trace_entries
from app.tui.view.spans import plain

TEST = "tests/test_holds.py::test_first"
DIFF = "--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-x\n+y\n"
TOLD = [
    (
        RunEventType.SUSPECTS,
        {
            "test": TEST,
            "suspects": [
                {"file": "holds.py", "name": "position", "line": 9, "score": 0.71, "in_trace": True},
                {"file": "holds.py", "name": "place", "line": 3, "score": 0.5, "in_trace": False},
            ],
        },
    ),
    (
        RunEventType.SLIPS_TRIED,
        {
            "test": TEST, "tried": 61, "dropped": {"the failing test": 55, "all tests": 4},
            "passed": [{"what": "index + 1", "name": "position", "tier": 1, "diff": DIFF}],
            "near": [{"what": "len(x)", "name": "place", "check": "all tests", "detail": "2 fail."}],
        },
    ),
    (RunEventType.MODEL_ASKED, {"test": TEST, "name": "position", "prompt": "The test fails.\nWrite it."}),
    (
        RunEventType.DECISION,
        {
            "question": "which repair", "test": TEST, "label": "", "abstained": True,
            "reason": "The tests allow 2 different repairs.",
            "clusters": [{"weight": 2.5, "what": "index + 1", "name": "position", "diff": DIFF}],
        },
    ),
    (
        RunEventType.PATCH_PROPOSED,
        {"finding": "f", "file": "holds.py", "line": 9, "cannot_do": "", "reason": "position: index + 1."},
    ),
    (
        RunEventType.PATCH_REJECTED,
        {"finding": "f", "file": "holds.py", "line": 9, "reason": "It breaks test_last.", "diff": DIFF},
    ),
    (
        RunEventType.PATCH_ACCEPTED,
        {
            "finding": "f", "file": "holds.py", "line": 9, "reason": "All tests pass.",
            "proof": "test_first", "diff": DIFF,
        },
    ),
]  # fmt: skip


def trace(told=TOLD, *, unfolded=True, cells=100):
    events = [
        RunEvent(number, 0.0, "run", kind, node="failing", agent="failing", data=data)
        for number, (kind, data) in enumerate(told)
    ]
    entries = trace_entries(events)
    lines, _ = build_trace(
        entries,
        toggled=[one.number for one in entries] if unfolded else (),
        cursor=0,
        with_agents=False,
        glyphs=UNICODE,
        cells=cells,
    )
    return plain(lines)


def test_each_event_is_a_row_in_words():
    rows = trace(unfolded=False)
    for words in (
        "suspects   position, place",
        "tried      61 usual slips, 1 pass",
        "asked      the model to write position anew",
        "decided    which repair: The tests allow 2 different repairs.",
        "proposed   holds.py:9 position: index + 1.",
        "dropped    holds.py:9 It breaks test_last.",
        "accepted   holds.py:9 All tests pass.",
    ):
        assert words in rows
    assert "{" not in rows


def test_an_unfolded_entry_has_the_question_what_was_dropped_and_the_diff():
    rows = trace()
    for words in (
        "holds.py:9  suspicion 0.71  in the trace",
        "index + 1 in position",
        "55 by the failing test",
        "len(x) in place: fails all tests. 2 fail.",
        "question   The test fails.",
        "Write it.",
        "weight 2.5",
        "+y",
        "proof      test_first",
    ):
        assert words in rows


def test_the_members_may_be_missing():
    assert trace([(kind, {}) for kind, _ in TOLD if kind is not RunEventType.DECISION])
