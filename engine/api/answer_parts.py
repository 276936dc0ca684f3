"""What an answer consists of while it arrives: text, reasoning and calls of tools.

Every face of the server, and the screen, makes its own events of these.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnswerText:
    """A piece of the text that the user reads."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerReasoning:
    """A piece of the reasoning before the text."""

    text: str


@dataclass(frozen=True, slots=True)
class CallBegun:
    """A call of a tool begins; `CallArguments` with its index follow.

    Attributes:
        index: its place among the calls of the answer, from 0.
        id: unique; the caller sends it back with the result.
        name: of one of the request's tools.
    """

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """A piece of the JSON text of a call's arguments; the pieces of a call are one valid JSON object.

    Only an answer that is cut by a limit leaves it incomplete.
    """

    index: int
    text: str


AnswerPart = AnswerText | AnswerReasoning | CallBegun | CallArguments
