"""Slash commands of the prompt: their table, the parser, and suggestions for typos."""

import difflib
from dataclasses import dataclass

from app.tui.view.spans import Line, Span


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command.

    Attributes:
        action: method of `SlashActions` that runs the command; called with the argument text.
        argument: the argument as shown in help, empty if there is none.
    """

    name: str
    action: str
    help: str
    argument: str = ""


COMMANDS: tuple[Command, ...] = (
    Command("new", "new", "start a new conversation", "[TEXT]"),
    Command("resume", "resume", "choose a conversation", "[words]"),
    Command("rename", "rename", "rename this conversation", "TITLE"),
    Command("delete", "delete", "archive this conversation; asks"),
    Command("system", "system", "show or set the system prompt", "[TEXT|clear]"),
    Command("model", "model", "show the model and its executor"),
    Command("regen", "regen", "regenerate the last answer"),
    Command("stop", "stop", "stop the answer"),
    Command("copy", "copy", "copy the last answer as Markdown"),
    Command("kv", "kv", "show the KV blocks"),
    Command("stats", "stats", "show the engine's figures"),
    Command("theme", "theme", "choose a theme, or name one", "[NAME]"),
    Command("keys", "keys", "show every key"),
    Command("help", "keys", "show every key and command"),
    Command("quit", "quit", "quit; conversations are saved"),
)
_BY_NAME = {command.name: command for command in COMMANDS}


@dataclass(frozen=True, slots=True)
class Plain:
    """Not a command: text to send, one leading slash of `//` removed."""

    text: str


@dataclass(frozen=True, slots=True)
class Invocation:
    """A known command and its argument text, stripped."""

    command: Command
    argument: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A text that begins with a slash but is not a command; nothing is sent."""

    name: str
    near: tuple[str, ...]


def read(text: str) -> Plain | Invocation | Unknown:
    """Parse a submitted prompt. A path such as `/usr/bin` is an unknown command; `//usr/bin` sends it."""
    if text.startswith("//"):
        return Plain(text[1:])
    if not text.startswith("/"):
        return Plain(text)
    name, _, argument = text[1:].partition(" ")
    command = _BY_NAME.get(name.strip().lower())
    if command is not None:
        return Invocation(command, argument.strip())
    return Unknown(name, tuple(difflib.get_close_matches(name.lower(), _BY_NAME, n=3, cutoff=0.5)))


def matches(text: str) -> tuple[Command, ...]:
    """Commands that complete the text; empty after a white space or if the text is not a command."""
    if not text.startswith("/") or text.startswith("//") or any(c.isspace() for c in text):
        return ()
    return tuple(command for command in COMMANDS if command.name.startswith(text[1:].lower()))


_COMPLETIONS = 7


def build_completions(text: str) -> list[Line]:
    """Rows of the commands that complete the text, and the number of further ones."""
    found = matches(text)
    lines: list[Line] = [
        (Span(f"/{one.name} {one.argument}".ljust(24), "$accent"), Span(one.help, "$muted"))
        for one in found[:_COMPLETIONS]
    ]
    if len(found) > _COMPLETIONS:
        lines.append((Span(f"{len(found) - _COMPLETIONS} more; f1 lists all", "$faint"),))
    return lines
