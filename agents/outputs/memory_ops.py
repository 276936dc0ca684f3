"""`MemoryOps`: operations on the memory that a task asks for."""

from typing import Literal

from pydantic import Field

from agents.outputs.base import Line, Output, Paragraph, Part, Word


class MemoryOp(Part):
    """One operation.

    Attributes:
        op: what to do.
        text: what to store, recall or forget.
        key: stable hash of the normalised text, the same in every process.
        scope: whose memory.
        importance: in [0, 1]; stored entries only.
        result: what the memory answered; empty if it was not used.
    """

    op: Literal["store", "recall", "forget"]
    text: Paragraph
    key: Word
    scope: Literal["user", "project", "agent"] = "project"
    importance: float = Field(default=0.5, ge=0, le=1)
    result: Paragraph = ""


class MemoryOps(Output):
    """Operations in order; `refused` says what is not stored, and why."""

    operations: list[MemoryOp] = Field(default_factory=list, max_length=100)
    refused: list[Line] = Field(default_factory=list, max_length=100)
