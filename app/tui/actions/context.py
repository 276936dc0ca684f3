"""A full context: a warning before it, and a question instead of a dead end."""

from collections.abc import Awaitable, Callable, Sequence

from app.text.safe_text import safe_line
from app.tui.chat_screen import ChatScreen
from app.tui.frame import Frame
from app.tui.numbers import percent
from app.tui.view.messages import cut_summary
from app.tui.view.spans import fit
from app.tui.widgets.choice import Choice, ChoiceScreen
from app.tui.widgets.prompt import Prompt
from engine.api.errors import PravahaError
from engine.api.image import Image
from engine.conversations.context_window import Outlook
from engine.conversations.session import TreeSession
from engine.conversations.shortening import (
    kept_when_left_out,
    kept_when_summarised,
    send_shortened,
)
from engine.conversations.summaries import summary_tokens
from engine.conversations.tree import NodeStatus

WARNING_SHARE = 0.8
"""Part of the context from which on its use is reported."""
OFFER_SHARE = 0.85
"""Part of the context that a message may fill, with all before it, without a question."""

_QUOTE = 40


def build_outlook(outlook: Outlook, *, quote: bool = True) -> str:
    """Which messages the model still knows, with the beginning of the first one if `quote`."""
    if not outlook.stays:
        return "nothing of this conversation"
    words = f", from “{fit(safe_line(outlook.stays[0]), _QUOTE)}” on" if quote else ""
    if len(outlook.stays) == 1:
        return f"your last message{words}, with its answer"
    return f"your last {len(outlook.stays)} messages{words}, with their answers"


def _messages(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"


_AS_IT_IS = Choice(
    "a",
    "Send it as it is",
    ("The answer ends where the context is full. You are not asked again here.",),
)


class ContextActions:
    """Watches the context of the open conversation. A pane without a widget: `show` draws nothing."""

    in_view = True

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._warned: dict[str, float] = {}
        self._kept_whole: set[str] = set()
        """Conversations whose user did not want them shortened."""
        self._summary: str | None = None
        """The summary that is being written."""

    def show(self, frame: Frame) -> bool:
        """Warn once when the context of a conversation is nearly full, and once when it is full."""
        model = frame.snapshot.model
        session = frame.session
        self._check_summary(session)
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

    def _check_summary(self, session: TreeSession) -> None:
        """Say it if the summary was cut off."""
        if self._summary is None or self._summary not in session.tree:
            return
        node = session.view(self._summary)
        if node.status is NodeStatus.STREAMING:
            return
        self._summary = None
        if missing := cut_summary(node):
            self._screen.notify_safely(f"The summary: {missing}.", "warning")

    def is_nearly_full(self, text: str, images: Sequence[Image]) -> bool:
        """Whether a message would nearly fill the context, so that it should be shortened first."""
        session, model = self._screen.session, self._screen.client.snapshot().model
        busy = session.answers.generating or session.messages.queued
        if model is None or busy or session.tree_id in self._kept_whole:
            return False
        limit = OFFER_SHARE * model.context_length
        used = session.context.used()
        if not used or used + len(text.encode()) < limit:  # a token has at least one byte
            return False
        if not session.context.outlook(summarised=False, keep=0).leaves:
            return False
        # A message that fits nowhere is refused when it is sent.
        return limit <= session.context.tokens_with(text, images) < model.context_length

    def ask(
        self,
        text: str,
        images: Sequence[Image],
        *,
        show_sent: Callable[[], Awaitable[None]],
        send: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Ask how to make room for a message; a cancelled one returns to the prompt.

        Args:
            show_sent: shows the message when it was sent.
            send: sends it as it is; None if it was refused.
        """
        screen = self._screen

        async def chosen(key: str | None) -> None:
            if key is None:
                screen.main.query_one(Prompt).insert_unsent(text)
            elif key == "a" and send is not None:
                self._kept_whole.add(screen.session.tree_id)
                await send()
            else:
                self._send(text, images, summarised=key == "s")
                await show_sent()

        title, reason = (
            ("Context full", "The message does not fit into the context with all earlier ones.")
            if send is None
            else ("Context nearly full", "With this message, the context is nearly full.")
        )
        choices = [
            Choice("d", "Leave out earlier messages", self._effect_of_leaving_out(text, images)),
            Choice("s", "Summarise earlier messages", self._effect_of_summary(text)),
            *((_AS_IT_IS,) if send is not None else ()),
        ]
        screen.open_dialog(ChoiceScreen(title, (reason,), choices), chosen)

    def _effect_of_leaving_out(self, text: str, images: Sequence[Image]) -> Sequence[str]:
        session = self._screen.session
        try:
            keep = kept_when_left_out(session, text, images)
            if keep is None:
                return ("That does not make enough room.",)
            outlook = session.context.outlook(summarised=False, keep=keep)
        except PravahaError as error:
            return (str(error),)
        return (
            f"The model no longer reads {_messages(outlook.leaves)}; they stay in the conversation.",
            f"It still knows {build_outlook(outlook)}.",
        )

    def _effect_of_summary(self, text: str) -> Sequence[str]:
        session, model = self._screen.session, self._screen.client.snapshot().model
        length = model.context_length if model else 0
        try:
            keep = kept_when_summarised(session, text, length)
            if keep is None:
                return ("A summary would not make enough room.",)
            outlook = session.context.outlook(summarised=True, keep=keep)
        except PravahaError as error:
            return (str(error),)
        effect = (
            f"The model first sums up {_messages(outlook.leaves - outlook.unread)}, in at most "
            f"{summary_tokens(length)} tokens.",
            f"It still knows that, and {build_outlook(outlook)}.",
        )
        if not outlook.unread:
            return effect
        return (*effect, f"The first {outlook.unread} are too much to be read for the summary.")

    async def shorten(self, argument: str) -> None:
        """`/shorten drop` or `/shorten summarise`: shorten the context now.

        Raises:
            PravahaError: there is nothing to leave out.
        """
        session, summarised = self._screen.session, argument == "summarise"
        outlook = session.context.outlook(summarised=summarised)
        node_id = session.context.shorten(summarised=summarised)
        known = build_outlook(outlook, quote=False)
        if summarised:
            self._summary = node_id
            known = f"the summary, and {known}"
            if outlook.unread:
                known += f"; the first {outlook.unread} are too much to be read for the summary"
        self._screen.notify_safely(f"From now on the model knows {known}.", "information")
        await self._screen.show_chat()

    def _send(self, text: str, images: Sequence[Image], *, summarised: bool) -> None:
        screen = self._screen
        model = screen.client.snapshot().model
        try:
            self._summary = send_shortened(
                screen.session,
                text,
                summarised=summarised,
                length=model.context_length if model else 0,
                images=images,
            )
        except PravahaError as error:
            screen.notify_safely(str(error), "error")
            screen.main.query_one(Prompt).insert_unsent(text)
