"""Tells a person who looks elsewhere that a long answer has ended: OSC 9, OSC 777 or the bell.

Only terminals that report the focus (in tmux with `focus-events on`) are known to be unfocused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from app.tui.frame import Frame
from app.tui.numbers import duration

LONG_S = 10.0
"""An answer that took less is not reported."""

Means = Literal["auto", "bell", "off"]
"""`auto`: a notification of the desktop on terminals known to have them, else nothing."""

_OSC_9 = frozenset({"iTerm.app", "WezTerm", "ghostty"})
"""Values of `TERM_PROGRAM`."""
_OSC_777 = ("foot", "rxvt")
"""Beginnings of `TERM`."""


def notification(environ: Mapping[str, str], means: Means, text: str) -> str:
    """What to write to the terminal; empty for nothing. `text` is our own: no part of a chat."""
    if means == "bell":
        return "\a"
    if means == "off" or "TMUX" in environ:
        return ""
    if environ.get("TERM_PROGRAM") in _OSC_9 or environ.get("TERM", "").startswith("xterm-kitty"):
        return f"\x1b]9;{text}\x1b\\"
    if environ.get("TERM", "").startswith(_OSC_777):
        return f"\x1b]777;notify;Pravāha;{text}\x1b\\"
    return ""


@dataclass(frozen=True, slots=True)
class _Running:
    tree_id: str
    since: float


class FinishNotice:
    """A pane without a widget, which watches the answers of the open conversation.

    Args:
        means: how to notify.
        environ: the environment, which names the terminal.
        focused: whether the terminal has the focus.
        write: writes to the terminal.
    """

    in_view = True

    def __init__(
        self,
        means: Means,
        environ: Mapping[str, str],
        *,
        focused: Callable[[], bool],
        write: Callable[[str], None],
    ) -> None:
        self._means = means
        self._environ = environ
        self._focused = focused
        self._write = write
        self._running: _Running | None = None

    def show(self, frame: Frame) -> bool:
        """Notify if a long answer has ended since the last frame."""
        session, before = frame.session, self._running
        if session.answers.generating:
            if before is None or before.tree_id != session.tree_id:
                self._running = _Running(session.tree_id, frame.now)
            return False
        self._running = None
        if before is None or before.tree_id != session.tree_id or self._focused():
            return False
        seconds = frame.now - before.since
        if seconds > LONG_S:
            text = f"The answer is complete, after {duration(seconds)}."
            sequence = notification(self._environ, self._means, text)
            if sequence:
                self._write(sequence)
        return False
