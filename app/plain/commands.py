"""The slash commands of the line-mode chat: their table and the parsing of a line."""

import difflib
from dataclasses import dataclass

COMMANDS = {
    "new": "start a new conversation",
    "trees": "list conversations; with words, those that contain them",
    "open": "open conversation N of that list",
    "history": "print this conversation",
    "system": "show the system prompt; with text, set it; with -, remove it",
    "regen": "regenerate the last answer",
    "undo": "undo the last message or regeneration",
    "redo": "redo what /undo undid",
    "rename": "rename this conversation",
    "delete": "archive this conversation",
    "export": "write this conversation to a JSON Lines file",
    "stats": "show the engine's figures",
    "help": "show this list",
    "quit": "quit; the end of input does the same",
}


_WITH_ARGUMENT = frozenset({"trees", "open", "system", "rename", "export"})


@dataclass(frozen=True, slots=True)
class Command:
    """A line that is a command."""

    name: str
    argument: str


@dataclass(frozen=True, slots=True)
class Message:
    """A line to send."""

    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A line that begins with a slash but is not a valid command; it is not sent."""

    sentence: str


def read_line(line: str) -> Command | Message | Unknown:
    """Parse a line. `//` at its start sends one slash."""
    if line.startswith("//"):
        return Message(line[1:])
    if not line.startswith("/"):
        return Message(line)
    name, _, argument = line[1:].partition(" ")
    if name in COMMANDS and argument.strip() and name not in _WITH_ARGUMENT:
        return Unknown(f"/{name} takes no argument.")
    if name in COMMANDS:
        return Command(name, argument.strip())
    near = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean /{near[0]}?" if near else "/help lists them, // sends a slash."
    return Unknown(f"There is no command /{name}: {hint}")


def help_lines() -> list[str]:
    """The table as text."""
    lines = [f"/{name}: {meaning}" for name, meaning in COMMANDS.items()]
    return [
        *lines,
        "A line that ends with \\ continues in the next; // sends a slash; Ctrl+C stops an answer.",
    ]
