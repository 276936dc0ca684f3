"""`SseDecoder`: server-sent events from the bytes of a stream, whatever their division into chunks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One complete event.

    Attributes:
        number: the value of its `id` field; None without one.
        data: the value of its `data` field.
    """

    number: int | None
    data: bytes


class SseDecoder:
    """Decodes events with one line of data, separated by LF as Pravāha's server does.

    Only an event whose empty line has arrived is complete, so a connection that breaks inside an event
    does not deliver a part of it. Lines end at LF only: JSON text may contain U+2028.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that are complete with this chunk; comments and events without data are left out."""
        *blocks, self._rest = (self._rest + chunk).split(b"\n\n")
        return [event for block in blocks if (event := _event(block)) is not None]


def _event(block: bytes) -> SseEvent | None:
    number: int | None = None
    data: bytes | None = None
    for line in block.split(b"\n"):
        name, _, value = line.partition(b": ")
        if name == b"id" and value.isdigit():
            number = int(value)
        elif name == b"data":
            data = value
    return None if data is None else SseEvent(number, data)
