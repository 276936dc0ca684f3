"""`TextGuard`: what a session asks before it stores a message and before it shows a text.

The engine checks nothing itself; `agents.guardrails.conversation_guard` does. Stored texts and token ids are
never changed by it: an answer is stored as it was generated, and its text stays the view of its token ids.
"""

from collections.abc import Sequence
from typing import Protocol

from engine.conversations.tree import NodeView


class AnswerCheck(Protocol):
    """The check of an answer's text, or of its reasoning, while it is generated.

    Joined, its pieces are the text or the reasoning of `TextGuard.shown`.
    """

    @property
    def blocked(self) -> bool:
        """Whether the answer must end here."""
        ...

    def feed(self, piece: str) -> str:
        """The text that can be shown after this piece."""
        ...

    def finish(self) -> str:
        """The rest of the text; nothing is fed afterwards."""
        ...


class TextGuard(Protocol):
    """Used by the session's thread only."""

    def check_input(self, tree_id: str, text: str) -> str:
        """The text to store and to let the model read in place of what the user wrote.

        Raises:
            InvalidRequest: the text must not be sent.
        """
        ...

    def begin_answer(self, tree_id: str) -> AnswerCheck:
        """Begin the check of an answer's text, or of its reasoning."""
        ...

    def shown(self, tree_id: str, node: NodeView) -> NodeView:
        """A finished node, or one without an answer, as it is shown, with `remarks` on it."""
        ...

    def shown_text(self, tree_id: str, text: str) -> str:
        """A text that `check_input` returned as its writer wrote it."""
        ...

    def forget(self, tree_ids: Sequence[str]) -> None:
        """Forget what is kept for conversations, which were deleted for good."""
        ...


class _Unchecked:
    """The check that lets everything pass."""

    blocked = False

    def feed(self, piece: str) -> str:
        return piece

    def finish(self) -> str:
        return ""


NO_CHECK: AnswerCheck = _Unchecked()
"""Has no state: one for all answers."""


class NoGuard:
    """A `TextGuard` that lets everything pass unchanged."""

    def check_input(self, tree_id: str, text: str) -> str:
        """See `TextGuard.check_input`."""
        return text

    def begin_answer(self, tree_id: str) -> AnswerCheck:
        """See `TextGuard.begin_answer`."""
        return NO_CHECK

    def shown(self, tree_id: str, node: NodeView) -> NodeView:
        """See `TextGuard.shown`."""
        return node

    def shown_text(self, tree_id: str, text: str) -> str:
        """See `TextGuard.shown_text`."""
        return text

    def forget(self, tree_ids: Sequence[str]) -> None:
        """See `TextGuard.forget`."""
