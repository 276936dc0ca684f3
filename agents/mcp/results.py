"""What servers answer: their tools, and the result of a call."""

from dataclasses import dataclass
from typing import Any

from agents.mcp.definition import ToolDefinition


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools that a server offers.

    Attributes:
        tools: in its order; names are unique.
        refused: one sentence part for each definition that cannot be used.
    """

    tools: tuple[ToolDefinition, ...]
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call returned. All of it is data of a third party.

    Attributes:
        text: its texts; other content is named.
        structured: its structured content, or None.
        failed: whether the server says that the tool failed.
    """

    text: str
    structured: Any = None
    failed: bool = False
