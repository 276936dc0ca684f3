"""Input that only a real terminal sends: pastes with control sequences, Ctrl+Z, bytes that are not UTF-8."""

import os
import signal
import sqlite3
import threading
import time
from contextlib import closing

from app.tui.input_bursts import BURST_S
from tests.pty.terminal import DEADLINE_S
from tests.pty.test_real_terminal import (
    CTRL_Q,
    SHIFT_TAB,
    not_restored,
    open_pravaha,  # noqa: F401 - a fixture
)

CTRL_L, CTRL_Z = "\x0c", "\x1a"
ALT_ENTER, SHIFT_ENTER = "\x1b\r", "\x1b[27;2;13~"


def saved_drafts(terminal):
    with closing(sqlite3.connect(terminal.database)) as connection:
        return [text for (text,) in connection.execute("SELECT text FROM draft")]


def saved_messages(terminal):
    with closing(sqlite3.connect(terminal.database)) as connection:
        return [text for (text,) in connection.execute("SELECT text FROM node WHERE kind = 'user'")]


def wait_until(holds):
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


def paste(text):
    return f"\x1b[200~{text}\x1b[201~"


def test_a_coloured_paste_is_text_and_nothing_of_it_is_a_key(open_pravaha):  # noqa: F811
    terminal = open_pravaha()
    terminal.type(paste("\x1b[31merror:\x1b[0m red\r\x1b\x11second \x1b[1mline\r") + "typed")
    screen = terminal.wait_for("error: red", "second line", "typed")
    assert "answering" not in screen
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0


def test_lines_pasted_without_brackets_stay_in_the_prompt_and_enter_sends(open_pravaha):  # noqa: F811
    terminal = open_pravaha()
    terminal.type("def flow():\r\n\treturn 1\r\nquit?\r\rlast")
    screen = terminal.wait_for("def flow():", "return 1", "quit?", "last")
    assert "answering" not in screen
    assert saved_messages(terminal) == []
    threading.Event().wait(
        4 * BURST_S
    )  # a person presses enter later than the letters of a burst come
    terminal.type("\r")
    wait_until(lambda: saved_messages(terminal))
    assert saved_messages(terminal)[0].startswith("def flow():\n\treturn 1\nquit?\n")
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0


def test_one_line_and_its_enter_in_one_write_are_sent(open_pravaha):  # noqa: F811
    terminal = open_pravaha()
    terminal.type("Tell me of the river.\r")
    wait_until(lambda: saved_messages(terminal) == ["Tell me of the river."])
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0


def test_letters_in_the_same_write_as_the_key_that_opens_the_prompt(open_pravaha):  # noqa: F811
    terminal = open_pravaha()
    terminal.type(SHIFT_TAB)
    terminal.wait_for("NAVIGATE")
    terminal.type("iremember")
    assert "remember" in terminal.wait_for("PROMPT", "remember")
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0


def test_alt_enter_does_not_send_and_shift_enter_breaks_the_line(open_pravaha):  # noqa: F811
    terminal = open_pravaha()
    terminal.type("first" + ALT_ENTER)
    terminal.type(SHIFT_ENTER + "second")
    screen = terminal.wait_for("first", "second")
    rows = screen.splitlines()
    first = next(number for number, row in enumerate(rows) if "first" in row)
    assert "second" in rows[first + 1]
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0


def test_ctrl_z_undoes_a_paste_then_suspends_and_the_whole_screen_comes_back(open_pravaha):  # noqa: F811
    terminal = open_pravaha()
    terminal.type(paste("\r".join(f"line {number}" for number in range(30))))
    terminal.wait_for("line 29")
    terminal.type(CTRL_Z)
    terminal.wait_for("Ask anything")
    terminal.type(CTRL_Z)
    terminal.wait_stopped()
    # What was written before the stop may not have been read yet.
    terminal.wait_until(lambda _: not not_restored(terminal), "the restored terminal")
    assert not terminal.is_raw
    terminal.clear()
    terminal.signal(signal.SIGCONT)
    terminal.wait_for("Pravāha", "Ask anything", "f1 keys")
    terminal.clear()
    terminal.type(CTRL_L)
    terminal.wait_for("Pravāha", "Ask anything", "f1 keys")
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0


def test_a_resize_back_to_the_same_size_draws_the_whole_screen(open_pravaha):  # noqa: F811
    terminal = open_pravaha()
    terminal.wait_for("Ask anything")
    terminal.clear()  # the terminal was small for a moment; only the last size arrives
    terminal.signal(signal.SIGWINCH)
    terminal.wait_for("Pravāha", "Ask anything", "f1 keys")
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0


def test_bytes_that_are_not_utf_8_do_not_end_the_app(open_pravaha):  # noqa: F811
    terminal = open_pravaha()
    os.write(terminal._fd, b"a\xff\x9b\xc3b\x1b[99999999999u")
    terminal.type("alive")
    terminal.wait_for("alive")
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0


def test_what_was_typed_before_a_kill_is_in_the_prompt_again(open_pravaha):  # noqa: F811
    terminal = open_pravaha()
    terminal.type("half a thought")
    terminal.wait_for("half a thought")
    terminal.type(" more")

    # An idle screen writes nothing: look at the file itself.
    wait_until(lambda: saved_drafts(terminal) == ["half a thought more"])
    assert terminal.kill() == -signal.SIGKILL
    again = open_pravaha()
    again.wait_for("half a thought more")
    again.type(CTRL_Q)
    assert again.exit_status() == 0
