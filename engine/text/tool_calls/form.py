"""`CallForm`: how a family of models writes a call of a tool."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from engine.text.tool_calls.call_ids import new_call_id
from engine.text.tool_calls.call_sink import CallSink
from engine.text.tool_calls.characters import Characters, Reading

CallReader = Callable[[Characters, CallSink], Reading[None]]
"""Reads calls after an opening; raises `Unreadable` if there are none."""

ArgumentStyle = Literal["json", "tagged", "python", "quoted"]


@dataclass(frozen=True, slots=True)
class CallForm:
    """The form of one family.

    Attributes:
        name: of the form, as the user chooses it.
        signs: texts in chat templates; a template with one of them has this form.
        openings: the texts that begin a call, each with the reader of what follows it.
        marks: the control tokens, by their texts, that are part of a call. Answers are decoded with them.
        opening: what is written before the first call.
        separator: what is written between two calls.
        closing: what is written after the last call.
        head: what is written before the arguments of a call, with `NAME` for the tool's name.
        tail: what is written after the arguments.
        arguments: how they are written between the two: as `json`; each in `tags`; as `python`'s keyword
            arguments; or as an object with `quoted` texts, between two of `quote`.
        tags: what is written before and after the value of an argument, with `KEY` for its name, and
            `IS_TEXT` for whether it is a text (`true` or `false`).
        is_single: whether an answer has at most one call.
        new_id: makes the id of a call.
    """

    name: str
    signs: tuple[str, ...]
    openings: Mapping[str, CallReader]
    marks: tuple[str, ...] = ()
    opening: str = ""
    separator: str = ""
    closing: str = ""
    head: str = '{"name": "NAME", "arguments": '
    tail: str = "}"
    arguments: ArgumentStyle = "json"
    tags: tuple[str, str] = ("", "")
    quote: str = ""
    is_single: bool = False
    new_id: Callable[[], str] = new_call_id

    @property
    def begun(self) -> str:
        """The beginning of every call, up to the tool's name."""
        return self.head.partition("NAME")[0]
