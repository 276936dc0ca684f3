"""`SocketHistory`: the last response of a WebSocket, from which the next one may go on without a store."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request

_STATE = "socket_history"


class SocketHistory:
    """The conversation of one connection up to its last response, in memory."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._items: Sequence[Mapping[str, Any]] = ()

    def keep(self, response_id: str, items: Sequence[Mapping[str, Any]]) -> None:
        """Keep a response with all items that led to it and its own."""
        self._last, self._items = response_id, items

    def items(self, response_id: str) -> Sequence[Mapping[str, Any]] | None:
        """The items up to a response; None if it is not the last one."""
        return self._items if response_id == self._last else None

    @property
    def state(self) -> dict[str, Any]:
        """The state of a request of this connection."""
        return {_STATE: self}


def socket_history(request: Request) -> SocketHistory | None:
    """That of the connection that a request came over; None for one over HTTP."""
    found: SocketHistory | None = getattr(request.state, _STATE, None)
    return found
