"""A person asks a folder: the real `pravaha` with the demo and the embedding model on a pseudo-terminal."""

import os
import sys
from pathlib import Path

import pytest

from engine.models.demo import MINILM
from engine.models.store import ModelStore
from tests.pty.terminal import Terminal

PRAVAHA = str(Path(sys.executable).with_name("pravaha"))
ENTER, ESCAPE, SHIFT_TAB, CTRL_Q = "\r", "\x1b", "\x1b[Z", "\x11"
F6 = "\x1b[17~"
HARBOUR = """# The harbour of Velmora

The harbour of Velmora was built in 1871 by the engineer Ilse Karmin.

## The lighthouse

The lighthouse of Velmora is 43 metres high. Its lamp burns whale oil.
"""
BRIDGE = """# The bridge of Tarn

The bridge of Tarn has nine arches and was finished in 1904.
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "harbour.md").write_text(HARBOUR)
    (folder / "bridge.md").write_text(BRIDGE)
    return folder


@pytest.fixture
def opened(demo_model, tmp_path):
    """Starts the program; it has the same conversations and collections each time."""
    ModelStore().add(MINILM.name)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PRAVAHA_", "TEXTUAL"))}
    for name in ("NO_COLOR", "TMUX"):
        kept.pop(name, None)
    folders = {f"PRAVAHA_{k}_DIR": str(tmp_path / k.lower()) for k in ("DATA", "CONFIG")}
    environ = kept | folders | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    command = [PRAVAHA, "--model", str(demo_model), "--ctx", "2048", "--kv-cache", "128MiB"]
    terminals = []

    def start():
        terminals.append(Terminal(command, environ, columns=150, rows=44))
        terminals[-1].wait_for("ready")
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.kill()


def submit(terminal, text, *words):
    """Type a line, send it and wait for what follows."""
    terminal.type(text)
    terminal.wait_for(text[-20:])
    terminal.type(ENTER)
    terminal.wait_for(*words)


def test_a_person_fills_a_collection_asks_it_opens_the_citation_and_finds_it_after_a_restart(
    opened, folder
):
    terminal = opened()
    submit(terminal, "/sources create papers", "papers is empty")
    submit(terminal, f"/sources add papers {folder}", "2 documents added to papers")
    submit(terminal, "@papers How high is the lighthouse of Velmora?", "from papers")

    # The answer cites the passage that says so, and a key opens it in its document.
    terminal.wait_for("[1] harbour.md")
    terminal.type(SHIFT_TAB)
    terminal.wait_for("NAVIGATE")
    terminal.type("C")
    terminal.wait_for("harbour.md", "The lighthouse of Velmora is 43 metres high.", "Ilse Karmin")
    terminal.type(ESCAPE)
    terminal.wait_until(lambda text: "Ilse Karmin" not in text, "the chat")

    # What the folder does not say is not answered.
    terminal.type("i")
    terminal.wait_for("PROMPT")
    submit(
        terminal,
        "How do I bake bread with sourdough?",
        "The attached documents do not answer this.",
    )
    terminal.type(CTRL_Q)
    assert terminal.exit_status() == 0

    again = opened()
    again.wait_for("[1] harbour.md", "The attached documents do not answer this.")
    again.type(F6)
    again.wait_for("attached to this branch: papers")
    again.type(CTRL_Q)
    assert again.exit_status() == 0
