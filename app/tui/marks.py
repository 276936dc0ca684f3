"""`Marks`: the messages marked for comparison, shown wherever messages are drawn."""

from collections.abc import Callable

from engine.api.errors import InvalidRequest

MAX_MARKS = 4
"""Most messages that are compared side by side."""


class Marks:
    """Ids of marked nodes of the open conversation, in the order of marking.

    Listeners are called after every change.
    """

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._listeners: list[Callable[[], None]] = []

    @property
    def ids(self) -> tuple[str, ...]:
        """The marked nodes, first marked first."""
        return tuple(self._ids)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change."""
        self._listeners.append(listener)

    def toggle(self, node_id: str) -> bool:
        """Mark a node, or remove its mark; whether it is marked now.

        Raises:
            InvalidRequest: `MAX_MARKS` nodes are marked.
        """
        if node_id in self._ids:
            self._ids.remove(node_id)
        elif len(self._ids) >= MAX_MARKS:
            raise InvalidRequest(f"{MAX_MARKS} messages are marked: c compares them, esc unmarks.")
        else:
            self._ids.append(node_id)
        self._changed()
        return node_id in self._ids

    def keep(self, wanted: Callable[[str], bool]) -> None:
        """Remove the marks of nodes that are not wanted, such as those of another conversation."""
        kept = [one for one in self._ids if wanted(one)]
        if kept != self._ids:
            self._ids = kept
            self._changed()

    def clear(self) -> None:
        """Remove all marks."""
        if self._ids:
            self._ids.clear()
            self._changed()

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()
