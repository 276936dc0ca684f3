#!/usr/bin/env bash
# textual 8.2.8, LinuxDriver: of two quick resizes the app may keep the older one, until the next resize.
#
# The handler of SIGWINCH is one of the interpreter: it reads the terminal's size and then posts it. A second
# SIGWINCH between the two runs the handler inside the handler, which posts the new size first; then the outer
# one posts the old size. A storm of resizes (a window that is dragged, tmux panes) hits it now and then. Seen:
# with a pause in `_get_terminal_size` and a resize to 90 columns in it, an app whose terminal went from 120 to
# 100 to 90 columns is told 100 last. `loop.add_signal_handler` instead of `signal.signal` avoids it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet textual==8.2.8
cat >"$folder/app.py" <<'PYTHON'
import fcntl
import struct
import sys
import termios
import time

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver


def resize(columns):
    fcntl.ioctl(sys.stdin, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))


class PausingDriver(LinuxDriver):
    calls = 0

    def _get_terminal_size(self):
        size = super()._get_terminal_size()
        self.calls += 1
        if self.calls == 2:
            resize(90)
            time.sleep(0.1)
        return size


class Sizes(App):
    widths = []

    def on_mount(self):
        self.set_timer(0.5, lambda: resize(100))
        self.set_timer(1.5, lambda: self.exit(list(self.widths)))

    def on_resize(self, event):
        self.widths.append(event.size.width)


widths = Sizes(driver_class=PausingDriver).run()
with open(sys.argv[1], "w") as out:
    print(*widths, file=out)
PYTHON
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import fcntl
import os
import pty
import struct
import sys
import termios
from importlib.metadata import version

folder = sys.argv[1]
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
    os.environ["TERM"] = "xterm-256color"
    os.environ.pop("COLUMNS", None)
    python = f"{folder}/venv/bin/python"
    os.execv(python, [python, f"{folder}/app.py", f"{folder}/widths"])
try:
    while os.read(terminal, 65536):
        pass
except OSError:
    pass
os.waitpid(child, 0)
widths = [int(one) for one in open(f"{folder}/widths").read().split()]
print(f"textual {version('textual')}: the terminal has 90 columns at the end, the app was told {widths}")
assert widths[-1] == 100, "the behaviour has changed"
PYTHON
