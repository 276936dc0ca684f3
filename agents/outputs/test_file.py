"""`TestFile`: a test that fails before a fix and passes after it."""

from typing import ClassVar, Literal

from pydantic import Field

from agents.outputs.base import Document, Line, Output, Paragraph, Word


class TestFile(Output):
    """A pytest file.

    `behaviour` calls the code with the value that breaks it. `source check` only asserts a property of the
    syntax tree: it proves that the pattern is gone, not that the program works.
    """

    __test__: ClassVar[bool] = False  # pytest must not collect it

    path: Line = ""
    code: Document = ""
    kind: Literal["behaviour", "source check", ""] = ""
    finding_ids: list[Word] = Field(default_factory=list)
    reason: Paragraph = ""
