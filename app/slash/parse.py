"""Parsing of what was typed: a message, a command, or a mistake with the sentence that explains it."""

import difflib
import keyword
from dataclasses import dataclass

from app.slash.commands import COMMANDS, Command, FrontEnd
from app.slash.names import beginning_with, either

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
class Refused:
    """A text that begins with a slash but is not a valid command, with the reason; nothing is sent."""

    sentence: str


def read(text: str, front_end: FrontEnd) -> Plain | Invocation | Refused:
    """Parse a submitted text. A path such as `/usr/bin` is not a command; `//usr/bin` sends it.

    The beginning of only one name stands for it, in commands and in arguments that are one of several words.
    """
    if text.startswith("//"):
        return Plain(text[1:])
    if not text.startswith("/"):
        return Plain(text)
    words = text[1:].split(maxsplit=1)
    name = words[0] if words and not text[1:2].isspace() else ""
    argument = words[1].strip() if len(words) > 1 else ""
    command = _BY_NAME.get(name.lower()) or _beginning(name, front_end)
    if command is None:
        return Refused(_unknown(name, front_end))
    if missing := command.missing_in(front_end):
        place = "the screen" if front_end == "screen" else "line mode"
        return Refused(f"/{command.name} is not for {place}. {missing}")
    if argument and not command.argument:
        return Refused(f"/{command.name} takes no argument.")
    if command.needs_argument and not argument:
        return Refused(f"/{command.name} needs an argument: {command.argument}.")
    if command.choices and argument:
        found = beginning_with(argument, command.choices)
        # What cannot be undone is written out.
        if len(found) != 1 or (command.name == "gc" and argument != found[0]):
            return Refused(f"/{command.name} takes {_either(command)}.")
        argument = found[0]
    return Invocation(command, argument)


def method_name(name: str) -> str:
    """The name of a command's method: a word of Python's gets an underscore."""
    return f"{name}_" if keyword.iskeyword(name) else name


def available(front_end: FrontEnd) -> tuple[Command, ...]:
    """The commands of a front end."""
    return tuple(command for command in COMMANDS if not command.missing_in(front_end))


def matches(text: str, front_end: FrontEnd = "screen") -> tuple[Command, ...]:
    """Commands that complete the text; empty after a white space or if the text is not a command."""
    if not text.startswith("/") or text.startswith("//") or any(c.isspace() for c in text):
        return ()
    typed = text[1:].lower()
    return tuple(command for command in available(front_end) if command.name.startswith(typed))


def _either(command: Command) -> str:
    *others, last = command.choices if command.needs_argument else (*command.choices, "nothing")
    return f"{', '.join(others)} or {last}" if others else last


def _beginning(name: str, front_end: FrontEnd) -> Command | None:
    """The only command that begins so; None if several do, or none."""
    found = beginning_with(name, [one.name for one in available(front_end)]) if name else []
    return _BY_NAME[found[0]] if len(found) == 1 else None


def _unknown(name: str, front_end: FrontEnd) -> str:
    names = [command.name for command in available(front_end)]
    found = beginning_with(name, names) if name else []
    if found:
        return f"/{name} begins several commands: {either([f'/{one}' for one in found])}."
    near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join('/' + one for one in near)}?" if near else ""
    return f"There is no command /{name}; // sends a slash.{hint}"
