"""A person reviews a project with agents: the real `pravaha` with the demo model on a pseudo-terminal."""

import os
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from app.tui.widgets.quiet_time import QUIET_S
from tests.pty.terminal import Terminal
from tests.unit.agents.project_tests.conftest import make_venv

PRAVAHA = str(Path(sys.executable).with_name("pravaha"))
ENTER, ESCAPE, SHIFT_TAB, CTRL_Q = "\r", "\x1b", "\x1b[Z", "\x11"
F2, F4 = "\x1bOQ", "\x1bOS"
SHOP = """import sqlite3

from flask import Flask, request

app = Flask(__name__)


@app.route("/users")
def users():
    db = sqlite3.connect("app.db")
    return db.execute("SELECT * FROM users WHERE name = '" + request.args["name"] + "'").fetchall()
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "app.py").write_text(SHOP)
    (folder / "test_app.py").write_text("def test_sum():\n    assert 1 + 1 == 2\n")
    make_venv(folder / ".venv", "pytest")
    return folder


@pytest.fixture
def terminal(demo_model, tmp_path):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PRAVAHA_", "TEXTUAL"))}
    for name in ("NO_COLOR", "TMUX"):
        kept.pop(name, None)
    folders = {f"PRAVAHA_{k}_DIR": str(tmp_path / k.lower()) for k in ("DATA", "CONFIG")}
    environ = kept | folders | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    command = [PRAVAHA, "--model", str(demo_model), "--ctx", "2048", "--kv-cache", "128MiB"]
    opened = Terminal(command, environ, columns=150, rows=50)
    opened.wait_for("ready")
    yield opened
    opened.kill()


def answer(terminal, *keys):
    """Open the oldest call that waits and answer it, once the dialog no longer ignores keys."""
    terminal.type("a")
    terminal.wait_for("wants to call", "deny, with a reason")
    threading.Event().wait(2 * QUIET_S)
    for key in keys:
        terminal.type(key)


def test_a_person_reviews_a_project_denies_a_call_allows_one_and_finds_the_finding(
    terminal, project, tmp_path
):
    terminal.type(f"/agents secure-code-review {project}")
    terminal.wait_for("/agents secure-code-review")
    terminal.type(ENTER)
    terminal.wait_for("secure-code-review is running")
    terminal.type(F4)
    terminal.wait_for("Agents  16")
    terminal.type(F4)  # over the whole screen
    terminal.wait_for("security_audit", "injection_scanner", "secrets_scanner")

    # The first call runs the project's tests.
    terminal.wait_for(
        "1 waiting for approval", "output_verifier", "shell ./.venv/bin/python -m pytest"
    )
    answer(terminal, "n")
    terminal.wait_for("why not?")
    terminal.type("no tests now")
    terminal.wait_for("no tests now")
    terminal.type(ENTER)

    # The second one writes the report.
    terminal.wait_for("write security-review.md")
    assert not (project / "security-review.md").exists()
    answer(terminal, "y")
    terminal.wait_for("no run is active, 1 finished")
    assert "sql-injection" in (project / "security-review.md").read_text()

    # What the verifier did.
    terminal.type("F")
    terminal.wait_for("find")
    terminal.type(f"output_verifier{ENTER}")
    terminal.wait_until(lambda text: "injection_scanner" not in text, "the filtered rows")
    terminal.type("j")
    terminal.type(ENTER)
    terminal.wait_for("shell was denied: no tests now")
    terminal.type(ESCAPE)

    # The finding is in the conversation.
    terminal.type(F2)
    terminal.wait_until(lambda text: "Agents" not in text and "reasons" in text, "the chat")
    terminal.type(SHIFT_TAB)
    terminal.wait_for("NAVIGATE")
    terminal.type("g")
    terminal.wait_for("@secure-code-review", "app.py:11", "sql-injection")
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0
    with closing(sqlite3.connect(tmp_path / "data" / "conversations.db")) as connection:
        query = "SELECT text FROM node WHERE kind = 'assistant'"
        ((text,),) = connection.execute(query).fetchall()
    assert "app.py:11" in text
    assert "no tests now" in text
