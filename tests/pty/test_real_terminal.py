"""The real `pravaha` with the demo model on a pseudo-terminal."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from tests.pty.terminal import Terminal

PRAVAHA = str(Path(sys.executable).with_name("pravaha"))
CAPITAL = "What is the capital of France?"
LONG = "Write a long story about a river, at least a thousand words."

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
    command = [PRAVAHA, "--model", str(demo_model), "--ctx", "2048", "--kv-cache", "128MiB"]

    def open_one():
        terminal = Terminal([*command, "--temperature", "0"], environ)
        opened.append(terminal)
        terminal.wait_for("ready")
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
    return " ".join(rows).partition(LONG)[2].split()


def assert_restored(terminal):
    entered = terminal.output.rindex(b"\x1b[?1049h")
    missing = [what for what, code in RESTORED.items() if code not in terminal.output[entered:]]
    assert not missing


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


def test_60_an_idle_screen_and_engine_cost_no_cpu(open_pravaha):
    """Screen, engine and compute threads of the real program after an answer: under 2 % of a core."""
    terminal = open_pravaha()
    ask(terminal, CAPITAL)
    terminal.wait_until(lambda text: "Paris" in text and "● ready" in text, "the answer")
    threading.Event().wait(2)  # calibration steps and the end of the last animation
    before = cpu_seconds(terminal.pid)
    assert before > 0.5  # it has worked until now
    threading.Event().wait(2)
    assert cpu_seconds(terminal.pid) - before <= 0.04


def test_sigterm_restores_the_terminal(open_pravaha):
    terminal = open_pravaha()
    terminal.signal(signal.SIGTERM)
    assert terminal.exit_status() == 128 + signal.SIGTERM
    assert_restored(terminal)


def test_killed_in_mid_answer_the_finished_messages_and_the_partial_one_are_kept(open_pravaha):
    doomed = open_pravaha()
    ask(doomed, CAPITAL)
    doomed.wait_until(lambda text: "Paris" in text and "● ready" in text, "the answer")
    ask(doomed, LONG)
    # Streaming text is saved within half a second: by sixty words the first ones are on disk.
    doomed.wait_until(lambda text: len(answer_words(text)) > 60, "sixty words")
    assert doomed.kill() == -signal.SIGKILL

    again = open_pravaha()
    again.wait_for("interrupted: the text up to there is kept")
    again.type(SHIFT_TAB)
    again.wait_for("NAVIGATE")
    again.type("g")
    shown = again.wait_for(CAPITAL, "Paris", LONG)
    assert len(answer_words(shown)) > 10
