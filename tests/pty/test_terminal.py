"""The terminal that the other tests read."""

import os
import sys

from tests.pty.terminal import Terminal

ASKING = r"""
import signal, time
signal.signal(signal.SIGHUP, signal.SIG_IGN)
try:
    while True:
        print("\x1b[?2026$p.", end="", flush=True)
        time.sleep(0.001)
except OSError:
    raise SystemExit(7)
"""


def test_a_hang_up_while_questions_are_answered_ends_the_reader_quietly():
    terminal = Terminal([sys.executable, "-S", "-c", ASKING], os.environ)
    terminal.wait_for("...")
    terminal.hang_up()
    assert terminal.exit_status() == 7
