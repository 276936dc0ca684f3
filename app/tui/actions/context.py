"""A full context: a warning before it, and a question instead of a dead end."""

from collections.abc import Awaitable, Callable, Sequence

from app.tui.chat_screen import ChatScreen
from app.tui.frame import Frame
from app.tui.numbers import percent
from app.tui.widgets.choice import Choice, ChoiceScreen
from app.tui.widgets.prompt import Prompt
from engine.api.errors import PravahaError
from engine.api.image import Image
from engine.conversations.shortening import send_shortened

WARNING_SHARE = 0.8
"""Part of the context from which on its use is reported."""

_CHOICES = (
    Choice(
        "d",
        "Leave out earlier messages",
        (
            "They stay in the conversation, but the model no longer reads them.",
            "The messages that stay are computed again.",
        ),
    ),
    Choice(
        "s",
        "Summarise earlier messages",
        (
            "The model first writes a summary, which takes their place; its prompt shares the KV",
            "of this conversation. Then the messages that stay are computed again.",
        ),
    ),
)


class ContextActions:
    """Watches the context of the open conversation. A pane without a widget: `show` draws nothing."""

    in_view = True

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._warned: dict[str, float] = {}

    def show(self, frame: Frame) -> bool:
        """Warn once when the context of a conversation is nearly full, and once when it is full."""
        model = frame.snapshot.model
        session = frame.session
        if model is None or session.answers.generating:
            return False
        share = session.context.used() / model.context_length
        level = 1.0 if share >= 1 else WARNING_SHARE if share >= WARNING_SHARE else 0.0
        if level > self._warned.get(session.tree_id, 0.0):
            used = (
                "The context is full" if level >= 1 else f"{percent(share)} of the context is used"
            )
            self._screen.notify_safely(
                f"{used}: /shorten leaves out earlier messages, or summarises them.", "warning"
            )
        self._warned[session.tree_id] = level
        return False

    def ask(
        self, text: str, images: Sequence[Image], *, show_sent: Callable[[], Awaitable[None]]
    ) -> None:
        """Ask how to make room for a message that was refused; a cancelled one returns to the prompt.

        Args:
            show_sent: shows the message when it was sent.
        """
        screen = self._screen

        async def chosen(key: str | None) -> None:
            if key is None:
                screen.main.query_one(Prompt).insert_unsent(text)
            else:
                self._send(text, images, summarised=key == "s")
                await show_sent()

        reason = ("The message does not fit into the context with all earlier ones.",)
        screen.open_dialog(ChoiceScreen("Context full", reason, _CHOICES), chosen)

    async def shorten(self, argument: str) -> None:
        """`/shorten drop` or `/shorten summarise`: shorten the context now.

        Raises:
            PravahaError: there is nothing to leave out.
        """
        self._screen.session.context.shorten(summarised=argument == "summarise")
        await self._screen.show_chat()

    def _send(self, text: str, images: Sequence[Image], *, summarised: bool) -> None:
        screen = self._screen
        model = screen.client.snapshot().model
        try:
            send_shortened(
                screen.session,
                text,
                summarised=summarised,
                length=model.context_length if model else 0,
                images=images,
            )
        except PravahaError as error:
            screen.notify_safely(str(error), "error")
            screen.main.query_one(Prompt).insert_unsent(text)
