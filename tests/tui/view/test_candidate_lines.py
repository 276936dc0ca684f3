"""The candidates of a run as rows of its trace, from the events that `agents.width` records."""

from agents.api.events import RunEvent, RunEventType
from agents.reports.candidates import candidate_markdown, decision_markdown, read_widths
from app.tui.glyphs import ASCII, UNICODE
from app.tui.view.agent_trace import build_trace, trace_entries
from app.tui.view.spans import plain


def events(*told):
    return [
        RunEvent(
            number, 1_700_000_000.0 + number, "run", kind, agent="coder", data={"width": 3, **data}
        )
        for number, (kind, data) in enumerate(told)
    ]


STARTED = (
    RunEventType.WIDTH_STARTED,
    {"goal": "fix position", "candidates": 4, "checks": ["parses", "examples", "agreement"]},
)


def written(number, code="def f(): ...\n", same_as=None, temperature=0.0):
    return (
        RunEventType.CANDIDATE_WRITTEN,
        {
            "candidate": number, "temperature": temperature, "round": 0, "code": code, "tokens": 9,
            "same_as": same_as,
        },
    )  # fmt: skip


def checked(number, check, passed, detail=""):
    return (
        RunEventType.CANDIDATE_CHECKED,
        {"candidate": number, "check": check, "passed": passed, "detail": detail, "seconds": 0.1},
    )


def chosen(number, reason="It passes 3 of 3 examples.", diff=""):
    return (
        RunEventType.CANDIDATE_CHOSEN,
        {
            "candidate": number, "verified": number is not None, "decided_by": "examples" if number else "",
            "reason": reason, "stopped": 1, "diff": diff,
        },
    )  # fmt: skip


ALL = events(
    STARTED,
    written(0),
    checked(0, "parses", True),
    checked(0, "examples", False, "`>>> f(0)`: got 1, wanted 0"),
    written(1, same_as=0, temperature=0.4),
    written(2, "def f():\n    return 0\n", temperature=0.6),
    checked(2, "parses", True),
    checked(2, "examples", True, "3 of 3 examples pass."),
    chosen(2, diff="--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-def f(): ...\n+def f(): return 0\n"),
)


def shown(told, glyphs=UNICODE, cells=78):
    entries = trace_entries(told)
    lines, _ = build_trace(
        entries, toggled=(), cursor=0, with_agents=False, glyphs=glyphs, cells=cells
    )
    return plain(lines)


def test_the_rows_of_candidates_that_were_checked():
    text = shown(ALL)
    assert "candidates" in text
    assert "3 of 3 chosen, decided by examples" in text
    assert "✗ 1  fails examples  greedy, 9 tok" in text
    assert "`>>> f(0)`: got 1, wanted 0" in text
    assert "✗ 2  fails examples  t=0.4, 9 tok, equals 1" in text
    assert "✓ 3  passes parses, examples  chosen  t=0.6, 9 tok" in text
    assert "3 of 3 examples pass." in text
    assert "one other was stopped then" in text
    assert "+def f(): return 0" in text


def test_the_rows_while_candidates_are_written_and_checked():
    text = shown(ALL[:2])
    assert "1 of at most 4 written: fix position" in text
    assert "⋯ 1  checking parses" in text
    assert "⋯ 2  being written" in text
    assert "⋯ 1  checking examples" in shown(ALL[:3])


def test_a_run_that_ended_before_a_choice_is_no_longer_writing():
    end = RunEvent(98, 0.0, "run", RunEventType.RUN_STATE, data={"state": "exhausted"})
    text = shown([*ALL[:6], end])
    assert "being written" not in text
    assert "ended before one was chosen" in text


def test_without_unicode_and_in_a_narrow_pane_the_rows_are_the_same_facts():
    text = shown(ALL, ASCII, 40)
    assert "x 1  fails examples" in text
    assert "v 3  passes parses, examples" in text
    assert all(len(line) <= 40 for line in text.split("\n"))


def test_calls_between_do_not_part_the_candidates():
    call = RunEvent(
        99, 1_700_000_000.0, "run", RunEventType.TOOL_STARTED, agent="coder", data={"tool": "shell"}
    )
    entries = trace_entries([*ALL[:3], call, *ALL[3:]])
    assert [entry.kind for entry in entries] == [
        RunEventType.WIDTH_STARTED,
        RunEventType.TOOL_STARTED,
    ]
    assert len(entries[0].events) == len(ALL)


def test_none_is_chosen():
    told = [*ALL[:4], *events(chosen(None, "No candidate passes."))]
    assert "none of 1 chosen: No candidate passes." in shown(told)
    (report,) = read_widths(told)
    assert decision_markdown(report).startswith("- No candidate was chosen: No candidate passes.")


def test_candidates_as_messages():
    (report,) = read_widths(ALL)
    first, second, third = report.candidates
    assert candidate_markdown(report, first) == (
        "Candidate 1 of 3 (greedy) fails examples.\n\n`>>> f(0)`: got 1, wanted 0\n\n"
        "```python\ndef f(): ...\n```"
    )
    assert "(temperature 0.4) fails examples." in candidate_markdown(report, second)
    assert "passes parses, examples" in candidate_markdown(report, third)
    assert decision_markdown(report) == (
        "- Candidate 3 of 3 was chosen: It passes 3 of 3 examples.\n"
        "- Candidate 1 fails examples: `>>> f(0)`: got 1, wanted 0\n"
        "- Candidate 2 fails examples: `>>> f(0)`: got 1, wanted 0"
    )
    assert "was chosen" not in decision_markdown(
        report, "The first: It passes 3 of 3 examples. Done."
    )
    report.candidates[0].code = ""
    assert candidate_markdown(report, first).endswith("It has no code.")


def test_events_without_members_are_shown_all_the_same():
    told = [
        RunEvent(one, 0.0, "run", kind, data={})
        for one, kind in enumerate(
            (
                RunEventType.CANDIDATE_CHECKED,
                RunEventType.CANDIDATE_WRITTEN,
                RunEventType.CANDIDATE_CHOSEN,
            )
        )
    ]
    assert "none of 1 chosen" in shown(told)
