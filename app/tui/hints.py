"""The key hints of the status bar: those of the focused pane, the help, then a few that work everywhere."""

from collections.abc import Mapping

from textual.widget import Widget
from textual.widgets import TextArea

from app.tui.keys import Group, hint
from app.tui.view.key_hints import KeyHint

Hint = tuple[str, str]
"""An action's id and its label in the status bar."""

PROMPT: tuple[Hint, ...] = (("send", "send"), ("navigate", "navigate"))
EMPTY: tuple[Hint, ...] = (("prompt", "type"),)
MESSAGES: tuple[Hint, ...] = (
    ("prompt", "type"),
    ("fork", "fork"),
    ("regen", "again"),
    ("expand", "expand"),
    ("edit", "edit"),
    ("msg.prev", "select"),
    ("copy", "copy"),
)
SELECTED: tuple[Hint, ...] = (
    ("fork", "fork"),
    ("regen", "again"),
    ("expand", "expand"),
    ("edit", "edit"),
    ("prune", "prune"),
    ("undo", "undo"),
    ("label", "label"),
)
BRANCHES: tuple[Hint, ...] = (
    ("adopt", "open"),
    ("fork", "fork"),
    ("regen", "again"),
    ("expand", "expand"),
    ("mark", "mark"),
    ("compare", "compare"),
    ("edit", "edit"),
    ("prune", "prune"),
    ("undo", "undo"),
    ("label", "label"),
    ("fold", "fold"),
)
CARDS: tuple[Hint, ...] = (
    ("card.adopt", "adopt"),
    ("card.next", "select"),
    ("mark", "mark"),
    ("compare", "compare"),
    ("copy", "copy"),
    ("card.prune", "prune"),
    ("card.close", "close"),
)
COMPARE: tuple[Hint, ...] = (
    ("compare.adopt", "adopt"),
    ("compare.next", "difference"),
    ("compare.right", "select"),
    ("compare.down", "scroll"),
    ("compare.close", "close"),
)
ONE_MARKED: tuple[Hint, ...] = (("mark", "mark another"),)
"""Before the hints of a node or card while one message is marked."""
MARKED: tuple[Hint, ...] = (("compare", "compare"), ("kv.show", "shared KV"))
"""The same while two or more are marked."""
LIST: tuple[Hint, ...] = (
    ("chat.open", "open"),
    ("chat.filter", "filter"),
    ("chat.delete", "archive"),
)
KV: tuple[Hint, ...] = (
    ("kv.owner", "owner"),
    ("kv.tree", "tree"),
    ("kv.zoom_in", "finer"),
    ("kv.zoom_out", "coarser"),
)
SCHEDULER: tuple[Hint, ...] = (("scheduler.policy", "policy"), ("scheduler.steps", "steps"))
LOG: tuple[Hint, ...] = (("logs.level", "level"), ("logs.find", "find"))
STATS: tuple[Hint, ...] = (("pane.chat", "chat"),)
AGENTS: tuple[Hint, ...] = (
    ("agent.open", "trace"),
    ("agent.stop", "stop"),
    ("agent.filter", "filter"),
    ("agent.order", "order"),
    ("agent.fold", "fold"),
)
APPROVALS: tuple[Hint, ...] = (("approval.open", "open"),)
SOURCES: tuple[Hint, ...] = (
    ("sources.open", "open"),
    ("sources.attach", "attach"),
    ("sources.fold", "documents"),
    ("sources.watch", "watch"),
    ("sources.remove", "delete"),
)
HELP: Hint = ("help", "keys")
EVERYWHERE: tuple[Hint, ...] = (
    ("palette", "commands"),
    ("tree.toggle", "branches"),
    ("pane.kv", "kv"),
    ("pane.stats", "stats"),
    ("chat.new", "new"),
    ("quit", "quit"),
)

_OF_PANE = {
    "prompt": PROMPT,
    "empty": EMPTY,
    "messages": MESSAGES,
    "selected": SELECTED,
    "branches": BRANCHES,
    "cards": CARDS,
    "compare": COMPARE,
    "list": LIST,
    "kv": KV,
    "stats": STATS,
    "scheduler": SCHEDULER,
    "logs": LOG,
    "agents": AGENTS,
    "approvals": APPROVALS,
    "sources": SOURCES,
}


PRICED = frozenset({"messages", "selected", "branches"})
"""The panes in which the keys act on a node, so that their hints say what that would cost."""
MARKING = PRICED | {"cards"}
"""The panes in which messages can be marked."""


_PANE_OF_WIDGET = {
    "chats": "list",
    "branches": "branches",
    "cards": "cards",
    "compare": "compare",
    "kv": "kv",
    "stats": "stats",
    "scheduler": "scheduler",
    "logs": "logs",
    "agents": "agents",
    "approvals": "approvals",
    "sources": "sources",
}


GROUPS: dict[str, Group] = {
    "prompt": Group.PROMPT,
    "empty": Group.NAVIGATE,
    "messages": Group.NAVIGATE,
    "selected": Group.NAVIGATE,
    "branches": Group.BRANCHES,
    "cards": Group.CARDS,
    "compare": Group.COMPARE,
    "list": Group.LIST,
    "kv": Group.KV,
    "stats": Group.PANES,
    "scheduler": Group.SCHEDULER,
    "logs": Group.LOG,
    "agents": Group.AGENTS,
    "approvals": Group.AGENTS,
    "sources": Group.SOURCES,
}
"""The group of keys that the help shows first, by the pane that has the focus."""


def focused_pane(focused: Widget | None, *, selected: bool = False, empty: bool = False) -> str:
    """The entry of the table for the widget that has the focus.

    Args:
        focused: the widget.
        selected: whether a node is selected.
        empty: whether the conversation has no message.
    """
    if isinstance(focused, TextArea):
        return "prompt"
    names = {widget.id for widget in focused.ancestors_with_self} if focused else set()
    for widget_id, pane in _PANE_OF_WIDGET.items():
        if widget_id in names:
            return pane
    return "empty" if empty else "selected" if selected else "messages"


def build_hints_of(
    pane: str,
    keymap: Mapping[str, str],
    *,
    generating: bool = False,
    in_past: bool = False,
    marked: int = 0,
    waiting: int = 0,
    running: int = 0,
    indexing: str = "",
    prices: Mapping[str, str] | None = None,
) -> list[KeyHint]:
    """The hints in the order of their importance.

    Args:
        pane: what has the focus: a key of the table, `selected` for the messages with a cursor, `empty` if
            there are none.
        generating: whether an answer runs, which can be stopped.
        in_past: whether an earlier instant is shown.
        marked: number of marked messages.
        waiting: calls of agents that wait for an approval.
        running: runs of agents that are active.
        indexing: how far the documents are that are being added, such as `adding 3/40`; empty if none are.
        prices: text after the label by action id, such as `1 tok+1 blk`.
    """
    first: tuple[Hint, ...] = (("copy_or_stop", "stop"),) if generating else ()
    if running and pane not in ("agents", "approvals"):
        first = (("pane.agents", f"{running} running"), *first)
    if indexing and pane != "sources":
        first = (("pane.sources", indexing), *first)
    if waiting and pane != "approvals":
        key = "pane.approvals" if pane == "prompt" else "approve.next"
        first = ((key, f"approve {waiting}"), *first)
    if in_past:
        first = (("escape" if pane == "prompt" else "time.live", "now"), *first)
    own = _OF_PANE[pane][1:] if generating and pane == "prompt" else _OF_PANE[pane]
    if marked and pane in MARKING:
        next_keys = MARKED if marked > 1 else ONE_MARKED
        actions = {name for name, _ in next_keys}
        own = (*next_keys, *(one for one in own if one[0] not in actions))
    prices = prices or {}
    listed = [*first, *own]
    # The list of all keys is among the two or three for which a narrow terminal has room.
    shown = [*listed[:1], HELP, *listed[1:], *(one for one in EVERYWHERE if one not in own)]
    return [KeyHint(*hint(name, word, keymap), price=prices.get(name, "")) for name, word in shown]
