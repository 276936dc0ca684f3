"""The key map: one table from which bindings, help, palette and footer are all made.

Every action has an id, so that people can remap it; a letter means the same in every pane. Avoided
on purpose: ^S ^B ^A (flow control, multiplexers), ^H ^M ^I ^[ (aliases of other keys), Alt+letter, F11.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding, BindingType


class Group(StrEnum):
    """Where a key works; also the headings of the help."""

    GLOBAL = "Everywhere"
    PANES = "Panes"
    PROMPT = "Prompt"
    NAVIGATE = "Navigate"
    LIST = "Conversation list"
    KV = "KV map"


@dataclass(frozen=True, slots=True)
class Key:
    """One action and the keys that run it.

    Attributes:
        id: stable name for remapping.
        keys: Textual key names, comma-separated; the first one is shown.
        action: Textual action.
        label: one word.
        help: one short sentence.
        priority: runs before the focused widget sees the key.
        palette: listed in the command palette.
    """

    id: str
    keys: str
    action: str
    label: str
    help: str
    group: Group
    priority: bool = False
    palette: bool = True

    @property
    def name(self) -> str:
        """The action without its arguments."""
        return self.action.partition("(")[0].rpartition(".")[2]


APP_KEYS: tuple[Key, ...] = (
    Key("palette", "ctrl+p", "command_palette", "commands", "Find and run any command", Group.GLOBAL, True, False),
    Key("help", "f1,question_mark", "help", "help", "Show every key", Group.GLOBAL),
    Key("copy_or_stop", "ctrl+c", "copy_or_stop", "stop", "Copy the selection; else stop the answer; twice quits", Group.GLOBAL, True, False),
    Key("escape", "escape", "escape", "back", "Undo one thing: popup, selection, queued message, answer, mode", Group.GLOBAL, False, False),
    Key("chat.new", "ctrl+n", "new_chat", "new", "Start a new conversation", Group.GLOBAL, True),
    Key("tree.toggle", "ctrl+t", "conversations", "chats", "Show and focus the conversations", Group.GLOBAL, True),
    Key("theme", "f9", "theme", "theme", "Choose a theme, with a live preview", Group.GLOBAL, True),
    Key("quit", "ctrl+q", "quit", "quit", "Leave; prints how to come back", Group.GLOBAL, True),
    Key("pane.chat", "f2,1", "pane('chat')", "chat", "The conversation", Group.PANES, True),
    Key("pane.kv", "f3,2", "pane('kv')", "kv", "The KV blocks; again to maximise", Group.PANES, True),
    Key("pane.stats", "f5,4", "pane('stats')", "stats", "The engine's figures; again to maximise", Group.PANES, True),
    Key("prompt", "i", "prompt", "prompt", "Type", Group.NAVIGATE),
    Key("navigate", "shift+tab", "navigate", "navigate", "From the prompt to the messages", Group.PROMPT, False, False),
    Key("msg.next", "j,down", "message('next')", "next", "Select the next message", Group.NAVIGATE, False, False),
    Key("msg.prev", "k,up", "message('previous')", "previous", "Select the previous message", Group.NAVIGATE, False, False),
    Key("path.first", "g,home", "message('first')", "first", "Go to the first message", Group.NAVIGATE, False),
    Key("path.last", "G,end", "message('last')", "last", "Go to the last message", Group.NAVIGATE, False),
    Key("regen", "r", "regenerate", "again", "Answer the last message again", Group.NAVIGATE),
    Key("stop", "s", "stop", "stop", "Stop the answer and keep its text", Group.NAVIGATE),
    Key("copy", "y", "copy", "copy", "Copy the selected message, else the last answer, as Markdown", Group.NAVIGATE),
)  # fmt: skip

PROMPT_KEYS: tuple[Key, ...] = (
    Key("send", "enter", "send", "send", "Send; queues while an answer runs", Group.PROMPT, False, False),
    Key("newline", "ctrl+j,shift+enter", "newline", "newline", "A new line (also a backslash, then enter)", Group.PROMPT, False, False),
    Key("history.prev", "up", "history_up", "history", "At the first line: the previous prompt", Group.PROMPT, False, False),
    Key("history.next", "down", "history_down", "history", "At the last line: the next prompt", Group.PROMPT, False, False),
    Key("complete", "tab", "complete", "complete", "Complete a /command", Group.PROMPT, False, False),
)  # fmt: skip

LIST_KEYS: tuple[Key, ...] = (
    Key("chat.open", "enter", "select_cursor", "open", "Open the conversation", Group.LIST, False, False),
    Key("chat.filter", "slash", "filter", "filter", "Filter by the words of titles and messages", Group.LIST, False, False),
    Key("chat.delete", "delete", "delete", "delete", "Archive the conversation; asks", Group.LIST, False, False),
    Key("list.next", "j,down", "cursor_down", "next", "Next conversation", Group.LIST, False, False),
    Key("list.prev", "k,up", "cursor_up", "previous", "Previous conversation", Group.LIST, False, False),
)  # fmt: skip

KV_KEYS: tuple[Key, ...] = (
    Key("kv.left", "left,h", "move(-1,0)", "left", "Move the cursor", Group.KV, False, False),
    Key("kv.right", "right,l", "move(1,0)", "right", "Move the cursor", Group.KV, False, False),
    Key("kv.up", "up,k", "move(0,-1)", "up", "Move the cursor", Group.KV, False, False),
    Key("kv.down", "down,j", "move(0,1)", "down", "Move the cursor", Group.KV, False, False),
    Key("kv.zoom_in", "plus,equals_sign", "zoom(-1)", "finer", "Fewer blocks a cell", Group.KV, False, False),
    Key("kv.zoom_out", "minus", "zoom(1)", "coarser", "More blocks a cell", Group.KV, False, False),
    Key("kv.owner", "enter", "light_owner", "owner", "Light up every block of this one's request", Group.KV, False, False),
)  # fmt: skip

ALL_KEYS = (*APP_KEYS, *PROMPT_KEYS, *LIST_KEYS, *KV_KEYS)

_NAMES = {
    "question_mark": "?", "slash": "/", "plus": "+", "equals_sign": "=", "minus": "-",
    "escape": "esc", "delete": "del",
}  # fmt: skip


def bindings(keys: tuple[Key, ...]) -> list[BindingType]:
    """Textual bindings of a table.

    A digit or letter never has priority: it would be stolen from the prompt.
    """
    made: list[BindingType] = []
    for key in keys:
        urgent = [name for name in key.keys.split(",") if len(name) > 1 and key.priority]
        plain = [name for name in key.keys.split(",") if name not in urgent]
        for names, priority, suffix in (
            (urgent, True, ""),
            (plain, False, ".letter" if urgent else ""),
        ):
            if names:
                made.append(
                    Binding(
                        ",".join(names),
                        key.action,
                        key.label,
                        id=key.id + suffix,
                        show=False,
                        priority=priority,
                        tooltip=key.help,
                    )
                )
    return made


def shown(key: Key, keymap: Mapping[str, str] | None = None) -> str:
    """The keys of an action as people write them, after remapping."""
    keys = (keymap or {}).get(key.id, key.keys)
    return " ".join(_NAMES.get(name.strip(), name.strip()) for name in keys.split(","))


def check_keymap(keymap: Mapping[str, str]) -> list[str]:
    """One sentence for each id that no action has, with its nearest neighbours."""
    known = [key.id for key in ALL_KEYS]
    problems = []
    for name in keymap:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else "."
            problems.append(f"The key map names {name!r}, which is no action{hint}")
    return problems
