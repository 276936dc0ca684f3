"""The real `pravaha` with the demo model on a pseudo-terminal."""

import os
import re
import signal
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.fakes.full_disk import full_disk
from tests.pty.terminal import Terminal
from tests.server.process import pravaha_process

PRAVAHA = str(Path(sys.executable).with_name("pravaha"))
CAPITAL = "What is the capital of France?"
LONG = "Write a long story about a river, at least a thousand words."

ENGINE = ("--ctx", "2048", "--kv-cache", "128MiB")

SEND = "\r"
CTRL_C = "\x03"
CTRL_Q = "\x11"
SHIFT_TAB = "\x1b[Z"

RESTORED = {
    "the alternate screen is left": b"\x1b[?1049l",
    "the cursor is shown": b"\x1b[?25h",
    "the mouse is off": b"\x1b[?1003l",
    "bracketed paste is off": b"\x1b[?2004l",
}


@pytest.fixture
def open_pravaha(demo_model, tmp_path):
    opened = []
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PRAVAHA_", "TEXTUAL")) and name not in {"NO_COLOR", "TMUX"}
    }
    environ |= {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LC_ALL": "C.UTF-8",
        "PRAVAHA_DATA_DIR": str(tmp_path / "data"),
        "PRAVAHA_CONFIG_DIR": str(tmp_path / "config"),
    }
    engine = ("--model", str(demo_model), *ENGINE)

    def open_one(*options, temperature="0", shown="ready", **variables):
        command = [PRAVAHA, *(options or engine), "--temperature", temperature]
        terminal = Terminal(command, environ | variables)
        terminal.database = tmp_path / "data" / "conversations.db"
        opened.append(terminal)
        terminal.wait_for(shown)
        return terminal

    yield open_one
    for terminal in opened:
        terminal.kill()


def ask(terminal, question):
    terminal.type(question)
    terminal.wait_for(question)
    terminal.type(SEND)


def answer_words(text):
    """Words of the answer to `LONG` that are on the screen; its question must be, too."""
    above_the_prompt = text.partition("╭")[0]
    rows = [row.rpartition("▕")[2].strip(" ▌▄▅▆▇█▁▂▃") for row in above_the_prompt.splitlines()]
    return " ".join(rows).partition(LONG)[2].split()[3:]  # after glyph, model and time of day


def stream_words(terminal, count):
    """Ask `LONG`; the first `count` words of its answer, once they are on the screen."""
    ask(terminal, LONG)
    # One more than `count`: the last word may be incomplete.
    # The terminal may be read between two writes of one frame: the bar is written after the words.
    text = terminal.wait_until(
        lambda text: len(answer_words(text)) > count and "answering" in text,
        f"{count} words of a running answer",
    )
    return answer_words(text)[:count]


def saved_answer(terminal, question=LONG, *, first=None):
    """The status and the `first` words of an answer that another program finds on disk."""
    query = (
        "SELECT node.status, node.text FROM node JOIN node AS asked ON asked.id = node.parent_id "
        "WHERE asked.text = ? ORDER BY node.n DESC LIMIT 1"
    )
    with closing(sqlite3.connect(terminal.database)) as connection:
        status, text = connection.execute(query, (question,)).fetchone()
    return status, text.split()[:first]


def not_restored(terminal):
    entered = terminal.output.rindex(b"\x1b[?1049h")
    return [what for what, code in RESTORED.items() if code not in terminal.output[entered:]]


def assert_restored(terminal):
    assert not terminal.left_raw
    assert not not_restored(terminal)


def test_words_stream_ctrl_c_stops_ctrl_q_quits_and_the_next_start_shows_the_history(open_pravaha):
    first = open_pravaha()
    ask(first, CAPITAL)
    first.wait_until(lambda text: "Paris" in text and "● ready" in text, "the answer")
    ask(first, LONG)
    early = first.wait_until(lambda text: len(answer_words(text)) > 20, "twenty words")
    first.wait_until(
        lambda text: "answering" in text and len(answer_words(text)) > 40, "words that stream"
    )
    assert "answering" in early
    first.type(CTRL_C)
    first.wait_for("■ stopped", "● ready")
    first.type(CTRL_Q)
    assert first.exit_status() == 0
    assert_restored(first)
    assert "Your conversations are saved" in first.output.decode()

    again = open_pravaha()
    again.wait_for("■ stopped")
    again.type(SHIFT_TAB)
    again.wait_for("NAVIGATE")
    again.type("g")
    again.wait_for(CAPITAL, "Paris")
    again.type(CTRL_Q)
    assert again.exit_status() == 0


def cpu_seconds(pid):
    """Processor time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


F3, F10, CTRL_T = "\x1bOR", "\x1b[21~", "\x14"


def idle_window(terminal):
    """Seconds of processor time and bytes written in two seconds without input."""
    seconds, written = cpu_seconds(terminal.pid), len(terminal.output)
    threading.Event().wait(2)
    return cpu_seconds(terminal.pid) - seconds, len(terminal.output) - written


VIEWS = {"": "● ready", F3: "no request holds it", F10: "Last steps", CTRL_T: "enter open"}
"""Keys that are pressed one after the other, each with a word of what is then open."""


def test_60_an_idle_screen_and_engine_cost_no_cpu(open_pravaha):
    """Screen, engine and compute threads after an answer: under 2 % of a core, and no byte is written."""
    terminal = open_pravaha()
    ask(terminal, CAPITAL)
    terminal.wait_until(lambda text: "Paris" in text and "● ready" in text, "the answer")
    assert cpu_seconds(terminal.pid) > 0.5  # it has worked until now
    for key, opened in VIEWS.items():
        terminal.type(key)
        terminal.wait_for(opened)
        for _ in range(15):  # calibration steps and the last animation come first
            seconds, written = idle_window(terminal)
            if seconds <= 0.04 and not written:
                break
        else:
            pytest.fail(
                f"{opened!r}: {seconds:.2f} s of processor time and {written} bytes in two idle seconds"
            )


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_in_mid_answer_restores_the_terminal_and_keeps_the_words(open_pravaha, number):
    terminal = open_pravaha()
    seen = stream_words(terminal, 20)
    terminal.signal(number)
    assert terminal.exit_status() == 128 + number
    assert_restored(terminal)
    assert saved_answer(terminal, first=len(seen)) == ("stopped", seen)


def test_a_hang_up_in_mid_answer_keeps_the_words(open_pravaha):
    terminal = open_pravaha()
    seen = stream_words(terminal, 20)
    terminal.hang_up()
    assert terminal.exit_status() == 128 + signal.SIGHUP
    assert saved_answer(terminal, first=len(seen)) == ("stopped", seen)


def test_stopped_and_continued_the_whole_screen_is_back(open_pravaha):
    terminal = open_pravaha()
    stream_words(terminal, 20)
    for number in (signal.SIGTSTP, signal.SIGSTOP):
        terminal.signal(number)
        terminal.wait_stopped()
        if number == signal.SIGTSTP:  # nothing can be done about SIGSTOP
            # What was written before the stop may not have been read yet.
            terminal.wait_until(lambda _: not not_restored(terminal), "the restored terminal")
            assert not terminal.is_raw
        terminal.clear()
        terminal.signal(signal.SIGCONT)
        # The header, the list, a frame of the prompt, which do not change, and the status.
        terminal.wait_for("Pravāha", "filter", "Ask anything", "╰───", "f1 keys")
        assert terminal.is_raw
    terminal.type("typed once")
    terminal.wait_for("typed once")
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0
    assert_restored(terminal)


def test_killed_in_mid_answer_the_finished_messages_and_the_partial_one_are_kept(open_pravaha):
    doomed = open_pravaha()
    ask(doomed, CAPITAL)
    doomed.wait_until(lambda text: "Paris" in text and "● ready" in text, "the answer")
    seen = stream_words(doomed, 60)
    # Streaming text is saved within half a second: what was seen is on disk while more arrives.
    doomed.wait_until(
        lambda text: saved_answer(doomed, first=len(seen)) == ("streaming", seen),
        "the words on disk",
    )
    assert doomed.kill() == -signal.SIGKILL

    again = open_pravaha()
    assert saved_answer(again, first=len(seen)) == ("stopped", seen)
    again.wait_for("interrupted: the text up to there is kept")
    again.type(SHIFT_TAB)
    again.wait_for("NAVIGATE")
    again.type("g")
    shown = again.wait_for(CAPITAL, "Paris", LONG)
    assert answer_words(shown)[: len(seen)] == seen


def test_a_full_disk_is_told_and_what_was_said_is_saved_when_there_is_room(open_pravaha):
    terminal = open_pravaha()
    ask(terminal, CAPITAL)
    terminal.wait_until(lambda text: "Paris" in text and "● ready" in text, "the answer")
    with full_disk(terminal.database, terminal.pid):
        stream_words(terminal, 20)
        terminal.wait_for("not saved", "cannot be saved to")
        terminal.type(CTRL_C)
        terminal.wait_for("■ stopped", "● ready", "not saved")
        assert saved_answer(terminal, CAPITAL)[0] == "done"
        terminal.type(CTRL_Q)
        terminal.wait_for("Quit and lose the last messages?")
        terminal.type("n")
        terminal.wait_until(lambda text: "Quit and lose" not in text, "the end of the question")
    terminal.wait_until(lambda text: "not saved" not in text, "room on the disk")
    status, words = saved_answer(terminal)
    assert status == "stopped"
    assert len(words) >= 20  # the notice hides some of them on the screen
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0
    assert "Your conversations are saved" in terminal.output.decode()


def test_a_session_that_ends_on_a_full_disk_says_what_is_lost(open_pravaha):
    terminal = open_pravaha()
    ask(terminal, CAPITAL)
    terminal.wait_until(lambda text: "Paris" in text and "● ready" in text, "the answer")
    with full_disk(terminal.database, terminal.pid):
        stream_words(terminal, 20)
        terminal.wait_for("not saved")
        terminal.type(CTRL_Q)
        terminal.wait_for("Quit and lose the last messages?")
        terminal.type("y")
        assert terminal.exit_status() == 1
    assert_restored(terminal)
    said = terminal.output.decode()
    assert "The last messages could not be saved" in said
    assert "Your conversations are saved" not in said


def test_attached_to_a_server_that_dies_and_comes_back(open_pravaha, demo_model):
    with pravaha_process(demo_model, *ENGINE) as server:
        terminal = open_pravaha("--attach", server.url)
        terminal.wait_for(server.url, "SmolLM2")
        ask(terminal, CAPITAL)
        terminal.wait_until(lambda text: "Paris" in text and "● ready" in text, "the answer")
        seen = stream_words(terminal, 20)
        terminal.type(CTRL_C)
        terminal.wait_for("■ stopped", "● ready")
        assert saved_answer(terminal, first=len(seen)) == ("stopped", seen)
        terminal.type("/regen" + SEND)
        terminal.wait_for("answering")
        server.process.kill()
        terminal.wait_for("✗ failed", f"The server at {server.url} does not answer")
    port = server.url.rpartition(":")[2]
    # Without a key: the screen notices by itself that the server is back, and has not the answer.
    with pravaha_process(demo_model, *ENGINE, "--port", port):
        terminal.wait_for("● ready", "✗ The connection to the server broke")
        assert saved_answer(terminal)[0] == "error"
        ask(terminal, "And the capital of Italy?")
        terminal.wait_until(lambda text: "Rome" in text and "● ready" in text, "the answer")
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0


def test_a_second_terminal_attached_to_the_server_follows_and_continues_the_conversation(
    open_pravaha, demo_model, tmp_path
):
    with pravaha_process(demo_model, *ENGINE, "--threads", "1") as server:
        first = open_pravaha("--attach", server.url)
        stream_words(first, 5)
        second = open_pravaha("--attach", server.url, shown="working")
        # One process at a time adds to a conversation.
        ask(second, CAPITAL)
        second.wait_for("Another Pravāha process is generating")
        first.type(CTRL_C)
        second.wait_for("■ stopped", "● ready", CAPITAL)
        last_word = saved_answer(first)[1][-1]
        assert last_word in second.text.partition("■ stopped")[0].split()[-8:]
        second.type(SEND)
        second.wait_until(lambda text: "Paris" in text and "● ready" in text, "the answer")
        first.wait_for("Paris")
        first.type(CTRL_Q)
        assert first.exit_status() == 0
        second.type(CTRL_Q)
        assert second.exit_status() == 0
        again = open_pravaha("--attach", server.url)
        again.wait_for("Paris")
        # Conversations are those of the data folder, not of the server.
        elsewhere = open_pravaha(
            "--attach", server.url, PRAVAHA_DATA_DIR=str(tmp_path / "other folder")
        )
        assert "Paris" not in elsewhere.wait_for("Ask anything")


def test_a_screen_that_serves_its_engine_quits_while_a_client_is_answered(open_pravaha):
    terminal = open_pravaha()
    terminal.type("/serve 0" + SEND)
    url = re.search(r"serving (http://[\d.:]+)", terminal.wait_for("serving http"))[1]
    model = httpx.get(f"{url}/v1/models").json()["data"][0]["id"]
    body = {"model": model, "prompt": "Once", "max_tokens": 1500, "ignore_eos": True}
    with httpx.stream("POST", f"{url}/v1/completions", json=body | {"stream": True}) as response:
        lines = response.iter_lines()
        next(lines)
        terminal.type(CTRL_Q)
        assert "shutting_down" in [line for line in lines if line][-1]
    assert terminal.exit_status() == 0
    assert_restored(terminal)


def test_a_fork_is_pruned_restored_and_there_after_a_restart(open_pravaha):
    first = open_pravaha()
    ask(first, CAPITAL)
    first.wait_until(lambda text: "Paris" in text and "● ready" in text, "the answer")
    first.type(SHIFT_TAB)
    first.wait_for("NAVIGATE", "f fork", "r again")
    first.type("k")
    first.type("f")
    first.wait_for("Branch fork begins here", "PROMPT")
    ask(first, "And of Italy?")
    first.wait_until(lambda text: "prompt tokens computed" in text, "the cost")
    first.wait_until(lambda text: "Rome" in text and "● ready" in text, "the second answer")
    first.type(SHIFT_TAB)
    first.wait_for("NAVIGATE")
    first.type("kk")
    first.type("r")  # answers the selected message again, beside its first answer
    first.wait_for("◀ 2/2 ▶", "branches")
    first.wait_for("● ready")
    first.type("D")
    first.wait_until(lambda text: "◀" not in text and "pruned; u restores" in text, "the pruning")
    first.type("u")
    first.wait_for("◀ 2/2 ▶", "Undone: prune")
    first.type(CTRL_Q)
    assert first.exit_status() == 0

    second = open_pravaha()
    second.wait_for("◀ 2/2 ▶", "branches", "Rome")
    second.type(SHIFT_TAB)
    second.wait_for("NAVIGATE")
    second.type("h")
    second.wait_for("◀ 1/2 ▶", "Rome")
    second.type(CTRL_Q)
    assert second.exit_status() == 0


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
    ids=["encoding", "locale"],
)
def test_an_output_that_is_not_utf8_gets_ascii_glyphs(open_pravaha, variables):
    terminal = open_pravaha(**variables)
    terminal.wait_for("PROMPT   * ready")
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0
    for state, sequence in RESTORED.items():
        assert sequence in terminal.output, state


def test_a_terminal_without_cursor_movement_is_refused_in_one_sentence():
    terminal = Terminal([PRAVAHA], dict(os.environ) | {"TERM": "dumb"})
    assert terminal.exit_status() == 2
    assert b"--plain" in terminal.output
    assert b"\x1b" not in terminal.output


def test_the_log_holds_no_chat_text(open_pravaha):
    terminal = open_pravaha()
    terminal.type("Say zyzzyva and stop.")
    terminal.wait_for("zyzzyva")
    terminal.type(SEND)
    terminal.wait_for("to first token")
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0
    log = terminal.database.with_name("pravaha.log")
    assert "zyzzyva" not in (log.read_text() if log.exists() else "")


def test_a_notification_covers_neither_prompt_nor_newest_text(open_pravaha):
    terminal = open_pravaha()
    terminal.type(CTRL_C)
    words = "again to quit"
    terminal.wait_for(words)
    (row,) = [row for row, text in enumerate(terminal.text.splitlines()) if words in text]
    assert row <= 2


def test_a_storm_of_resizes_in_mid_answer_leaves_a_whole_screen_and_the_answer(open_pravaha):
    terminal = open_pravaha()
    words = stream_words(terminal, 10)
    for step in range(30):
        terminal.resize(*((160, 45), (38, 9), (80, 24), (100, 30), (60, 15))[step % 5])
    terminal.resize(120, 36)
    terminal.wait_until(lambda text: len(answer_words(text)) > len(words) + 10, "more words")
    terminal.type(CTRL_C)
    shown = terminal.wait_for("■ stopped", "● ready", "PROMPT")
    assert answer_words(shown)[: len(words)] == words
    terminal.type("typed")
    terminal.wait_for("typed")
    terminal.type(CTRL_C)
    terminal.type(CTRL_C)
    assert terminal.exit_status() == 0
    assert_restored(terminal)


def test_a_fork_at_a_token_continues_the_answer_with_another_token(open_pravaha):
    terminal = open_pravaha()
    ask(terminal, CAPITAL)
    terminal.wait_until(lambda text: "Paris" in text and "● ready" in text, "the answer")
    terminal.type(SHIFT_TAB)
    terminal.wait_for("NAVIGATE")
    terminal.type("L")
    terminal.wait_for("token 1/", "f fork", "perplexity")
    terminal.type("L")
    terminal.wait_for("token 2/")
    terminal.type(".")
    terminal.wait_for("Alternatives", "▸ ━")
    terminal.type("\r")
    terminal.wait_until(lambda text: "token 2/" not in text and "● ready" in text, "the fork")
    query = "SELECT text, forked_from, fork_token FROM node WHERE kind = 'assistant' ORDER BY n"
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0
    with closing(sqlite3.connect(terminal.database)) as connection:
        (first, _, _), (second, origin, kept) = connection.execute(query).fetchall()
    assert kept == 2
    assert origin is not None
    assert second.split()[0] == first.split()[0]
    assert second.split()[1] != first.split()[1]


def test_four_answers_side_by_side_the_third_is_adopted_and_compared(open_pravaha):
    terminal = open_pravaha(temperature="1")
    ask(terminal, "Write two sentences about a river.")
    terminal.wait_until(lambda text: "to first token" in text and "● ready" in text, "the answer")
    terminal.type(SHIFT_TAB)
    terminal.wait_for("NAVIGATE")
    terminal.type("x")
    terminal.wait_for("how many answers side by side?")
    terminal.type("4")
    terminal.wait_for("4 answers", "prefilled")
    # Card 4 is on the next page; an answer may contain any word, also "running".
    terminal.wait_until(
        lambda text: not re.search(r"4 answers, \d running", text), "the ends of four answers"
    )
    terminal.type("3")
    terminal.type(SEND)
    terminal.wait_for("PROMPT")
    terminal.type(SHIFT_TAB)
    terminal.wait_for("NAVIGATE")
    terminal.type("c")
    text = terminal.wait_for("part at token", "3/5", "4/5", "ppl", "TTFT")
    assert "4 answers" not in text
    terminal.type("n")  # answers without a common word have one difference
    terminal.wait_until(lambda text: re.search(r"difference (2 of|1 of 1\b)", text), "the next one")
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0
    with closing(sqlite3.connect(terminal.database)) as connection:
        (head,) = connection.execute("SELECT node_id FROM head WHERE name = 'HEAD'").fetchone()
        answers = [
            one
            for (one,) in connection.execute(
                "SELECT id FROM node WHERE kind = 'assistant' ORDER BY n"
            )
        ]
    assert answers.index(head) == 3  # after the first answer and two of the four
