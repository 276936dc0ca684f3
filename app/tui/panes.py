"""The table of panes that the pane keys open.

A pane lies in the centre, in place of the messages, or at the side of them. To add one: an entry here, a
key in `keys.py`, and `self._joined(...)` in `MainView.compose` with the entry's name as its id and, in
the centre, the class `center-pane`.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class PanePlace:
    """Where a pane is and what gets the focus when it is opened.

    Attributes:
        place: a pane at the side is beside the messages on wide screens only.
        focus: CSS selector of the widget to focus.
    """

    place: Literal["center", "side"]
    focus: str


CHAT = "chat"
"""The name of the messages, which are shown when no pane is open."""
PANES: dict[str, PanePlace] = {
    "kv": PanePlace("side", "#kv"),
    "stats": PanePlace("center", "#stats"),
    "logs": PanePlace("center", "#logs"),
    "agents": PanePlace("center", "#agents"),
    "approvals": PanePlace("center", "#approvals"),
    "sources": PanePlace("center", "#sources"),
    "scheduler": PanePlace("center", "#scheduler"),
    "compare": PanePlace("center", "#compare"),
}
