"""`ToolResult`: the result of one tool call."""

from typing import Any

from pydantic import Field

from agents.outputs.base import Document, Output, Word


class ToolResult(Output):
    """A call and its output. `failed` says that the tool ran and could not do it."""

    tool: Word = ""
    arguments: dict[str, Any] = Field(default_factory=dict, max_length=50)
    text: Document = ""
    failed: bool = False
