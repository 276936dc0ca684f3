"""A full context: a warning before it, and a question instead of a dead end."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.tui.frame import Frame
from app.tui.numbers import percent
from app.tui.widgets.choice import Choice, ChoiceScreen
from app.tui.widgets.prompt import Prompt
from engine.api.errors import PravahaError
from engine.api.image import Image
from engine.conversations.shortening import send_shortened

if TYPE_CHECKING:
    from app.tui.app import PravahaApp

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

    def __init__(self, app: "PravahaApp") -> None:
        self._app = app
        self._warned: dict[str, float] = {}

    def show(self, frame: Frame) -> bool:
        """Warn once when the context of a conversation is nearly full, and once when it is full."""
        model = frame.snapshot.model
        session = frame.session
        if model is None or session.generating:
            return False
        share = session.context_used() / model.context_length
        level = 1.0 if share >= 1 else WARNING_SHARE if share >= WARNING_SHARE else 0.0
        if level > self._warned.get(session.tree_id, 0.0):
            used = (
                "The context is full" if level >= 1 else f"{percent(share)} of the context is used"
            )
            self._app.notify_safely(
                f"{used}: /shorten leaves out earlier messages, or summarises them.", "warning"
            )
        self._warned[session.tree_id] = level
        return False

    def ask(self, text: str, images: Sequence[Image] = ()) -> None:
        """Ask how to make room for a message that was refused; a cancelled one returns to the prompt."""
        app = self._app

        async def chosen(key: str | None) -> None:
            if key is None:
                app.query_one(Prompt).insert_unsent(text)
            else:
                await self._send(text, images, summarised=key == "s")

        reason = ("The message does not fit into the context with all earlier ones.",)
        app.open_dialog(ChoiceScreen("Context full", reason, _CHOICES), chosen)

    async def shorten(self, argument: str) -> None:
        """`/shorten drop` or `/shorten summarise`: shorten the context now.

        Raises:
            PravahaError: there is nothing to leave out.
        """
        self._app.session.branches.shorten_context(summarised=argument == "summarise")
        await self._app.show_chat()

    async def _send(self, text: str, images: Sequence[Image], *, summarised: bool) -> None:
        app = self._app
        model = app.client.snapshot().model
        try:
            send_shortened(
                app.session,
                text,
                summarised=summarised,
                length=model.context_length if model else 0,
                images=images,
            )
        except PravahaError as error:
            app.notify_safely(str(error), "error")
            app.query_one(Prompt).insert_unsent(text)
        await app.show_sent()
