"""Why keys of navigate mode have no effect at present, for the help and the command palette.

The keys themselves say the same in a notification.
"""

from app.tui.actions.tokens import TokenActions
from app.tui.chat_screen import ChatScreen
from app.tui.keys import APP_KEYS, NAVIGATE_KEYS, TRANSCRIPT_KEYS, Group
from app.tui.selection import Selection
from engine.conversations.tree import NodeKind

_WITHOUT_MESSAGES = frozenset({"prompt", "adopt", "undo", "redo", "model"})
"""Keys of navigate mode that also have an effect in an empty conversation."""
_NOTHING_RUNS = "no answer is being generated"
_OF_A_FINISHED_ANSWER = (
    *("fork", "edit", "regen", "regen.params", "regen.model"),
    *("tok.next", "alternatives", "expand.deep"),
)


class Availability:
    """Which keys have no effect on the screen as it is."""

    def __init__(self, screen: ChatScreen, selection: Selection, tokens: TokenActions) -> None:
        self._screen = screen
        self._selection = selection
        self._tokens = tokens

    def reasons(self) -> dict[str, str]:
        """Action id → the reason why it is not available now."""
        session, selected = self._screen.session, self._selection.node_id
        return disabled_reasons(
            empty=session.head is None,
            answered=any(node.kind is NodeKind.ASSISTANT for node in session.path()),
            running=(selected or session.head) in session.answers.running,
            stoppable=session.answers.generating or selected in session.answers.running,
            token_cursor=self._tokens.cursor is not None,
        )


def disabled_reasons(
    *, empty: bool, answered: bool, running: bool, stoppable: bool, token_cursor: bool
) -> dict[str, str]:
    """Action id → the reason why it is not available now.

    Args:
        empty: whether the conversation has no message.
        answered: whether the open path has an answer.
        running: whether the selected answer runs.
        stoppable: whether an answer runs that the key would stop.
        token_cursor: whether an answer has the token cursor.
    """
    if empty:
        keys = (*APP_KEYS, *TRANSCRIPT_KEYS, *NAVIGATE_KEYS)
        ids = {key.id for key in keys if key.group is Group.NAVIGATE} - _WITHOUT_MESSAGES
        return dict.fromkeys(ids, "the conversation is empty") | {"stop": _NOTHING_RUNS}
    reasons: dict[str, str] = {}
    if running:
        reasons |= dict.fromkeys(_OF_A_FINISHED_ANSWER, "the answer is being generated")
    if not stoppable:
        reasons["stop"] = reasons["thought.end"] = _NOTHING_RUNS
    if not token_cursor and "expand.deep" not in reasons:
        reasons["expand.deep"] = "there is no token cursor"
    if not answered:
        reasons["copy"] = reasons["copy.code"] = "there is no answer yet"
    return reasons
