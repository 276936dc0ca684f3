"""`ForkCosts`: reports what a fork, an edit or a regenerated answer has cost, once the engine has said so."""

from collections.abc import Callable

from app.tui.frame import Frame
from app.tui.view.price import build_paid
from engine.conversations.tree import NodeStatus


class ForkCosts:
    """A `Pane` without a widget: watches answers until the number of cached prompt tokens is known.

    Args:
        report: shows a sentence.
    """

    in_view = True

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._awaited: dict[str, str] = {}
        self._next: str | None = None

    def expect(self, operation: str, node_id: str | None) -> None:
        """Report the cost of an answer; with None that of the next answer of the open path."""
        if node_id is None:
            self._next = operation
        else:
            self._awaited[node_id] = operation

    def show(self, frame: Frame) -> bool:
        """Report the costs that became known."""
        session = frame.session
        if self._next is not None and session.answers.generating and session.head is not None:
            self._awaited[session.head] = self._next
            self._next = None
        for node_id, operation in list(self._awaited.items()):
            if node_id not in session.tree:
                del self._awaited[node_id]  # another conversation is open
                continue
            node = session.view(node_id)
            if node.n_cached is not None and node.n_prompt:
                self._report(build_paid(operation, node.n_prompt, node.n_cached))
                del self._awaited[node_id]
            elif node.status is not NodeStatus.STREAMING:
                del self._awaited[node_id]
        return False
