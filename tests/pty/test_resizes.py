"""Sizes of the terminal reach the app in their order."""

import os
import sys
from pathlib import Path

from tests.pty.terminal import Terminal

APP = Path(__file__).with_name("resized_while_resizing.py")


def test_a_resize_while_another_is_handled_is_the_last_one():
    environ = os.environ | {
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(APP.parents[2]),
    }
    environ.pop("COLUMNS", None)
    environ.pop("LINES", None)
    terminal = Terminal([sys.executable, str(APP)], environ)
    try:
        terminal.wait_for("120 columns")
        terminal.resize(100, 30)
        terminal.wait_for("90 columns")
        terminal.wait_until(lambda text: "100 columns" not in text, "the last size alone")
    finally:
        terminal.kill()
