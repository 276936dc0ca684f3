"""The figures of sessions as lines."""

from app.server.process.sessions import Session
from app.tui.view.session_lines import ROWS, build_sessions
from app.tui.view.spans import plain


def session(name="Hello (0001)", **figures):
    values = {"requests": 3, "prompt_tokens": 1200, "computed_tokens": 300, "reread_tokens": 40}
    return Session(name, **(values | figures))


def test_a_row_has_the_figures_of_its_session():
    text = plain(build_sessions([session()], 60))
    assert "Sessions" in text
    row = next(line for line in text.splitlines() if "Hello" in line)
    assert row.split() == ["Hello", "(0001)", "3", "1.2k", "75%", "40"]


def test_without_sessions_there_is_no_heading():
    assert build_sessions([], 60) == []


def test_a_name_cannot_move_the_cursor_and_is_cut():
    text = plain(build_sessions([session("\x1b[2J" + "n" * 200)], 50))
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 50


def test_only_the_last_used_ones_are_listed():
    text = plain(build_sessions([session(f"s{n}") for n in range(ROWS + 3)], 60))
    assert f"s{ROWS - 1}" in text
    assert f"s{ROWS} " not in text
    assert "3 more in GET /v1/sessions" in text
