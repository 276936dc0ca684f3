"""`CallNotation`: how the calls of an answer are written whose arguments are JSON."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallNotation:
    """The texts around the names and the arguments of calls; what begins the first call is not part of it.

    Attributes:
        head: before the arguments of a call, with `NAME` for the tool's name.
        tail: after the arguments.
        separator: between two calls.
        closing: after the last call.
    """

    head: str = '{"name": "NAME", "arguments": '
    tail: str = "}"
    separator: str = "\n"
    closing: str = ""
