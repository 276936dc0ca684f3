"""`DraftKeeper`: saves the text in the prompt while it is typed, at most once every `SAVE_S`.

The unsent text belongs to the conversation in which it was typed: it is saved under it, and shown again when
that conversation is opened, also after the process was killed.
"""

import asyncio

from engine.conversations.session import TreeSession

SAVE_S = 0.5
"""Seconds from the first change to the save; keys pressed meanwhile are saved with it."""


class DraftKeeper:
    """Used on the app's event loop.

    Args:
        session: `enter` follows whenever another of its conversations was opened.
    """

    def __init__(self, session: TreeSession) -> None:
        self._session = session
        self._text = ""
        self._typed_in = session.tree_id
        self._due: asyncio.TimerHandle | None = None

    def changed(self, text: str) -> None:
        """The text in the prompt is `text` now."""
        if text != self._text:
            self._text = text
            if self._due is None:
                self._due = asyncio.get_running_loop().call_later(SAVE_S, self.leave)

    def leave(self) -> None:
        """Save the text now: another conversation is opened, the message was sent, or the app ends.

        A command, which was typed too, may have opened the other conversation already.
        """
        if self._due is not None:
            self._due.cancel()
            self._due = None
        self._session.messages.keep_draft(self._text, typed_in=self._typed_in)

    def enter(self) -> str:
        """The text to show in the prompt for the conversation that was opened."""
        self._typed_in = self._session.tree_id
        self._text = self._session.messages.restore_draft()
        return self._text
