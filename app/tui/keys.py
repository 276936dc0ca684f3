"""The key map: the one table behind bindings, help, command palette and status bar.

Every action has an id, by which it can be remapped; a letter has the same meaning in every pane. Not
used: ^S ^B ^A (flow control, multiplexers), ^H ^M ^I ^[ (aliases of other keys), Alt+letter, F11.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding, BindingType
from textual.keys import Keys, _character_to_key


class Group(StrEnum):
    """The scope of a key; also a heading of the help."""

    GLOBAL = "Everywhere"
    PANES = "Panes"
    PROMPT = "Prompt"
    NAVIGATE = "Navigate"
    LIST = "Conversation list"
    KV = "KV map"


@dataclass(frozen=True, slots=True)
class Key:
    """One action and its keys.

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
    Key("quit", "ctrl+q", "quit", "quit", "Quit; conversations are saved", Group.GLOBAL, True),
    Key("pane.chat", "f2,1", "pane('chat')", "chat", "The conversation", Group.PANES, True),
    Key("pane.kv", "f3,2", "pane('kv')", "kv", "The KV blocks; press again to maximise", Group.PANES, True),
    Key("pane.stats", "f5,4", "pane('stats')", "stats", "The engine's figures; press again to maximise", Group.PANES, True),
    Key("prompt", "i", "prompt", "prompt", "Focus the prompt", Group.NAVIGATE),
    Key("navigate", "shift+tab", "navigate", "navigate", "Move from the prompt to the messages", Group.PROMPT, False, False),
    Key("msg.next", "j", "message('next')", "next", "Select the next message", Group.NAVIGATE, False, False),
    Key("msg.prev", "k", "message('previous')", "previous", "Select the previous message", Group.NAVIGATE, False, False),
    Key("path.first", "g", "message('first')", "first", "Select the first message", Group.NAVIGATE),
    Key("path.last", "G", "message('last')", "last", "Select the last message", Group.NAVIGATE),
    Key("regen", "r", "regenerate", "again", "Regenerate the last answer", Group.NAVIGATE),
    Key("stop", "s", "stop", "stop", "Stop the answer and keep its text", Group.NAVIGATE),
    Key("copy", "y", "copy", "copy", "Copy the selected message, else the last answer, as Markdown", Group.NAVIGATE),
)  # fmt: skip

PROMPT_KEYS: tuple[Key, ...] = (
    Key("send", "enter", "send", "send", "Send; queues while an answer runs", Group.PROMPT, False, False),
    Key("newline", "ctrl+j,shift+enter", "newline", "newline", "A new line (also a backslash, then enter)", Group.PROMPT, False, False),
    Key("history.prev", "up", "history_up", "history", "At the first line: the previous prompt", Group.PROMPT, False, False),
    Key("history.next", "down", "history_down", "history", "At the last line: the next prompt", Group.PROMPT, False, False),
    Key("scroll.up", "pageup", "app.scroll_messages(-1)", "up", "Scroll the messages up", Group.PROMPT, False, False),
    Key("scroll.down", "pagedown", "app.scroll_messages(1)", "down", "Scroll the messages down", Group.PROMPT, False, False),
    Key("complete", "tab", "complete", "complete", "Complete a /command", Group.PROMPT, False, False),
)  # fmt: skip

TRANSCRIPT_KEYS: tuple[Key, ...] = (
    Key("path.start", "home", "app.message('first')", "start", "Go to the first message", Group.NAVIGATE, False, False),
    Key("path.end", "end", "app.message('end')", "end", "Go to the end and follow the newest text", Group.NAVIGATE, False, False),
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
    Key("kv.owner", "enter", "light_owner", "owner", "Highlight all blocks of this block's request", Group.KV, False, False),
)  # fmt: skip

ALL_KEYS = (*APP_KEYS, *PROMPT_KEYS, *TRANSCRIPT_KEYS, *LIST_KEYS, *KV_KEYS)

_NAMES = {
    "question_mark": "?", "slash": "/", "plus": "+", "equals_sign": "=", "minus": "-",
    "escape": "esc", "delete": "del",
}  # fmt: skip


def _split(key: Key, keys: str) -> tuple[str, str]:
    """The keys that are handled before the focused widget, and those that are handled after it.

    A digit or letter is never handled before, because it may be input of the prompt.
    """
    names = [name.strip() for name in keys.split(",")]
    urgent = [name for name in names if len(name) > 1 and key.priority]
    return ",".join(urgent), ",".join(name for name in names if name not in urgent)


def _halves(key: Key) -> tuple[tuple[str, bool], ...]:
    """Binding ids of an action, and whether each has priority."""
    urgent, plain = _split(key, key.keys)
    if urgent and plain:
        return (key.id, True), (f"{key.id}.letter", False)
    return ((key.id, bool(urgent)),)


def bindings(keys: tuple[Key, ...]) -> list[BindingType]:
    """Textual bindings of a table."""
    made: list[BindingType] = []
    for key in keys:
        urgent, plain = _split(key, key.keys)
        for name, priority in _halves(key):
            made.append(
                Binding(
                    urgent if priority else plain,
                    key.action,
                    key.label,
                    id=name,
                    show=False,
                    priority=priority,
                    tooltip=key.help,
                )
            )
    return made


def shown(key: Key, keymap: Mapping[str, str] | None = None) -> str:
    """The keys of an action for display, after remapping."""
    keys = (keymap or {}).get(key.id, key.keys)
    return " ".join(_NAMES.get(name.strip(), name.strip()) for name in keys.split(","))


def hint(name: str, word: str, keymap: Mapping[str, str]) -> tuple[str, str, str]:
    """An action's first key, its label, and the action that a click on them runs.

    A widget's own action has no click, because the widget may not have the focus.
    """
    key = next(key for key in ALL_KEYS if key.id == name)
    click = f"app.{key.action}" if key in APP_KEYS else ""
    return shown(key, keymap).split()[0], word, click


def read_keymap(keymap: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The valid entries of a key map, and one sentence for each invalid one.

    Args:
        keymap: action id → keys, comma-separated, which replace the action's own.
    """
    good = {name: ",".join(one.strip() for one in keys.split(",")) for name, keys in keymap.items()}
    problems: list[str] = []
    # Removing an entry restores its action's old keys, which another entry may use: check again.
    while bad := next(((name, why) for name in good if (why := _problem(name, good))), None):
        del good[bad[0]]
        problems.append(f"The key map's entry for {bad[0]!r} {bad[1]}.")
    return good, problems


def to_textual(keymap: Mapping[str, str]) -> dict[str, str]:
    """A checked key map by binding id, for `App.set_keymap`."""
    given: dict[str, str] = {}
    for key in ALL_KEYS:
        if key.id in keymap:
            urgent, plain = _split(key, keymap[key.id])
            for name, priority in _halves(key):
                # Textual ignores an entry without keys, so unbind with a name that no key has.
                given[name] = (urgent if priority else plain) or f"unbound.{name}"
    return given


def _problem(name: str, keymap: Mapping[str, str]) -> str:
    """Why an entry is invalid; empty if it is valid."""
    found = next((key for key in ALL_KEYS if key.id == name), None)
    if found is None:
        near = difflib.get_close_matches(name, [key.id for key in ALL_KEYS], n=3)
        return "names no action" + (f": perhaps {' or '.join(near)}" if near else "")
    letters_work = found not in PROMPT_KEYS and (not found.priority or len(_halves(found)) > 1)
    for one in keymap[name].split(","):
        if not _is_key(one):
            return f"holds {one!r}, which is not a key"
        if len(one) == 1 and not letters_work:
            return f"holds {one!r}, which the prompt needs: use a function key or one with ctrl"
        for other in _scope(found):
            if other is not found and one in keymap.get(other.id, other.keys).split(","):
                return f"holds {one!r}, which is taken by {other.id!r}"
    return ""


def _scope(key: Key) -> tuple[Key, ...]:
    """The actions in the same scope, whose keys must differ."""
    tables = (APP_KEYS, PROMPT_KEYS, TRANSCRIPT_KEYS, LIST_KEYS, KV_KEYS)
    return next(table for table in tables if key in table)


_KEY_NAMES = frozenset(str(key.value) for key in Keys)
_MODIFIERS = ("ctrl+", "shift+", "alt+", "super+", "hyper+", "meta+")


def _is_key(name: str) -> bool:
    """Whether Textual can report a key of this name."""
    if name in _KEY_NAMES:
        return True
    while modifier := next((one for one in _MODIFIERS if name.startswith(one)), ""):
        name = name.removeprefix(modifier)
    if len(name) == 1:
        return name.isprintable() and not name.isspace()
    return name in _KEY_NAMES or name in _CHARACTER_NAMES


_CHARACTER_NAMES = frozenset(_character_to_key(chr(code)) for code in range(33, 127))
