"""`guarded`: an error of an action becomes a notification."""

from collections.abc import Awaitable

from app.tui.chat_screen import ChatScreen
from engine.api.errors import PravahaError
from engine.conversations.errors import ConversationChanged


async def guarded(screen: ChatScreen, action: Awaitable[None]) -> None:
    """Wait for an action; shows an error that it raises as a notification."""
    try:
        await action
    except PravahaError as error:
        screen.notify_safely(str(error), "warning")
        if isinstance(error, ConversationChanged):
            await screen.show_chat()
