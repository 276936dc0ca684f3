"""Commands of a session: `/name` or `@name` of an agent, a pipeline or the repair, and a few of the chat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from acp.schema import AvailableCommand, AvailableCommandInput, UnstructuredCommandInput

from app.slash.agents import AgentCall, read_call
from app.slash.names import did_you_mean, near_names
from engine.api.errors import InvalidRequest

_ON_FILES = frozenset({"audit", "security", "design", "pipeline", "repair"})
"""Categories that work on the session's folder if no path is named."""
_ON_FILES_TOO = frozenset({"coder", "debugger", "validator"})
_AGENT_HINT = "[PATH…] [: task]"
ChatCommand = Literal["tools", "shorten"]
_CHAT: Mapping[ChatCommand, tuple[str, str]] = {
    "tools": ("Show or choose the tools that the model may call.", "[on | off | NAME…]"),
    "shorten": (
        "Make room in the context: leave earlier messages out, or put a summary in their place.",
        "drop | summarise",
    ),
}


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A command of the chat with its argument."""

    name: ChatCommand
    argument: str


def available_commands(catalogue: Sequence[Mapping[str, Any]]) -> list[AvailableCommand]:
    """The commands that clients complete.

    Args:
        catalogue: the agents, pipelines and the repair, as `RunService.catalogue`.
    """
    chat = [_command(name, words, hint) for name, (words, hint) in _CHAT.items()]
    order = {"repair": 0, "pipeline": 1}
    runs = sorted(catalogue, key=lambda one: order.get(str(one["kind"]), 2))
    return [
        *chat,
        *(_command(str(one["name"]), str(one["description"]), _AGENT_HINT) for one in runs),
    ]


def read_command(
    text: str, catalogue: Mapping[str, Mapping[str, Any]], folder: Path
) -> AgentCall | ChatCall | None:
    """The command in a message; None if it is none.

    Args:
        text: what was typed.
        catalogue: the agents, pipelines and the repair by name.
        folder: of the session.

    Raises:
        InvalidRequest: it is very near to a command, so it is a mistake.
    """
    if not text.startswith(("/", "@")):
        return None
    word, _, rest = text[1:].partition(" ")
    if text.startswith("/") and word in _CHAT:
        return ChatCall(word, rest.strip())  # type: ignore[arg-type]
    call = read_call(text[1:], catalogue, folder=folder)
    if call is not None:
        return call
    if text.startswith("/") and word and "/" not in word and "." not in word:
        near = near_names(word, [*_CHAT, *catalogue])
        if near:
            raise InvalidRequest(f"There is no command /{word:.60}. {did_you_mean(near)}")
    return None


def paths_of(call: AgentCall, category: str, folder: Path) -> tuple[str, ...]:
    """What an agent works on: what was named, else the session's folder if it works on files."""
    if call.paths:
        return call.paths
    on_files = category in _ON_FILES or call.name in _ON_FILES_TOO
    return (str(folder),) if on_files else ()


def _command(name: str, description: str, hint: str) -> AvailableCommand:
    wanted = AvailableCommandInput(UnstructuredCommandInput(hint=hint))
    return AvailableCommand(name=name, description=description, input=wanted)
