"""`Diagnosis`: where and why a program failed."""

from pydantic import Field

from agents.outputs.base import Document, Line, Output, Paragraph, Part, Probability, Word


class StackFrame(Part):
    """A frame of a trace; `in_workspace` if its file is one of the workspace's."""

    file: Line
    line: int = Field(ge=0)
    function: Line = ""
    source: Line = ""
    in_workspace: bool = False


class Diagnosis(Output):
    """The failure, its frames (outermost first), the suspected line, and what to do.

    Attributes:
        language: of the trace.
        error: kind of the exception or panic.
        message: its message.
        frames: as in the trace.
        file: of the suspected line, relative to the workspace.
        line: the suspected line, or 0.
        cause: what probably happened, with the reason.
        confidence: that the line and cause are right.
        next_steps: how to go on, such as the commands of a bisection.
        diff: a unified diff that corrects it, if there is a deterministic one.
    """

    language: Word = ""
    error: Line = ""
    message: Paragraph = ""
    frames: list[StackFrame] = Field(default_factory=list, max_length=200)
    file: Line = ""
    line: int = Field(default=0, ge=0)
    cause: Paragraph = ""
    confidence: Probability = 0
    next_steps: list[Line] = Field(default_factory=list, max_length=20)
    diff: Document = ""
