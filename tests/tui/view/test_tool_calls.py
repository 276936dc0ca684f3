"""Rows of calls: what was called with what, and how it ended."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.tui.glyphs import UNICODE as GLYPHS
from app.tui.view.tool_calls import build_arguments, build_calls
from engine.conversations.made_calls import MadeCall
from engine.conversations.tree import NodeStatus


def rows(*calls, status=NodeStatus.DONE, shown=False, waiting=frozenset()):
    lines = build_calls(
        calls, status, GLYPHS, shown=shown, key="z", click="", waiting=waiting, approve_key="f8"
    )
    return ["".join(span.text for span in line) for line in lines]


READ = MadeCall("read", '{"path": "notes.txt"}', "ok", 0.04)


def test_a_row_says_what_was_called_with_what_and_how_it_ended():
    assert rows(READ) == ["▸ read path=notes.txt  ok 0.0 s  z shows it"]
    assert rows(READ, shown=True)[0].endswith("z hides it")


@pytest.mark.parametrize(
    ("state", "said"), [("failed", "✗ failed 1.5 s"), ("denied", "✗ denied 1.5 s")]
)
def test_what_went_wrong_is_said(state, said):
    assert said in rows(MadeCall("read", "{}", state, 1.5))[0]


def test_a_call_that_waits_says_for_whom_and_how_to_answer():
    press = MadeCall("press", "{}")
    running = rows(press, MadeCall("read", "{}"), status=NodeStatus.STREAMING, waiting={"press"})
    assert "waits for your approval: f8" in running[0]
    assert running[1].endswith("running")
    assert "waits" not in rows(press, waiting={"press"})[0]


def test_what_has_to_be_done_is_not_cut_off_after_long_arguments():
    long = MadeCall("http_fetch", json.dumps({"url": "x" * 200}))
    (row,) = rows(long, status=NodeStatus.STREAMING, waiting={"http_fetch"})
    assert row.endswith("waits for your approval: f8")
    assert len(row) <= 76


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"path": "a.txt", "lines": [1, 2], "all": true}', "path=a.txt  lines=[1,2]  all=true"),
        ('{"text": "two words"}', 'text="two words"'),
        ('{"path": "a", "end": null}', "path=a"),
        ('{"text": ""}', 'text=""'),
        ("{}", ""),
        ("", ""),
        ("[1]", "[1]"),
        ('{"path": ', '{"path":'),
        ('{"path": "a.py", "old": "x = 1", "new": "x = 2"}', "path=a.py"),
        ('{"old": "x", "new": "y"}', "old=x  new=y"),
    ],
)
def test_arguments_are_readable(arguments, text):
    assert build_arguments(arguments).strip() == text


@given(st.text() | st.dictionaries(st.text(max_size=3), st.text(max_size=9)).map(json.dumps))
def test_any_arguments_are_one_line_without_control_characters(arguments):
    text = build_arguments(arguments)
    assert len(text.splitlines()) <= 1
    assert "\x1b" not in text
