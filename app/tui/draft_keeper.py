"""`DraftKeeper`: saves the text in the prompt while it is typed, at most once every `SAVE_S`.

The unsent text belongs to the open conversation: it is saved under it, and shown again when the
conversation is opened, also after the process was killed.
"""

import asyncio

from engine.conversations.session import TreeSession

SAVE_S = 0.5
"""Seconds from the first change to the save; keys pressed meanwhile are saved with it."""


class DraftKeeper:
    """Used on the app's event loop.

    Args:
        session: its open conversation must only change between `leave` and `enter`.
    """

    def __init__(self, session: TreeSession) -> None:
        self._session = session
        self._text = ""
        self._due: asyncio.TimerHandle | None = None

    def changed(self, text: str) -> None:
        """The text in the prompt is `text` now."""
        if text != self._text:
            self._text = text
            if self._due is None:
                self._due = asyncio.get_running_loop().call_later(SAVE_S, self.leave)

    def leave(self) -> None:
        """Save the text now: another conversation is opened, the message was sent, or the app ends."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        self._session.messages.keep_draft(self._text)

    def enter(self) -> str:
        """The text to show in the prompt for the conversation that was opened."""
        self._text = self._session.messages.restore_draft()
        return self._text
