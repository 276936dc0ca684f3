"""The plain chat's slash commands: their table and how a line is read."""

import difflib
from dataclasses import dataclass

COMMANDS = {
    "new": "start a new conversation",
    "trees": "list conversations; with words, those that contain them",
    "open": "open conversation N of that list",
    "history": "print this conversation",
    "system": "show the system prompt; with text, set it; with -, remove it",
    "regen": "answer the last message again",
    "undo": "go back to before the last message or regeneration",
    "redo": "take the last /undo back",
    "rename": "give this conversation another title",
    "delete": "archive this conversation",
    "export": "write this conversation to a JSON Lines file",
    "stats": "show what the engine does",
    "help": "show this list",
    "quit": "leave; the end of input does the same",
}


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
    """A line that looks like a command and is none; it is not sent."""

    sentence: str


def read_line(line: str) -> Command | Message | Unknown:
    """What a line means. `//` at its start sends one slash."""
    if line.startswith("//"):
        return Message(line[1:])
    if not line.startswith("/"):
        return Message(line)
    name, _, argument = line[1:].partition(" ")
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
        "A line that ends with \\ goes on in the next; // sends a slash; Ctrl+C stops an answer.",
    ]
