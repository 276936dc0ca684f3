"""`Sending`: the way of a text from the prompt to a running request.

`submit` takes what enter was pressed on: the changed text of an earlier message, a slash command or a message
(`send`). A message

1. stays in the prompt if it names what nobody knows; sent again, it goes as it is;
2. may call an agent, or only attach collections of documents; then nothing is sent;
3. waits until the text of its images is read, if the model does not see them;
4. waits until the files that it names are read, and gets their text;
5. leaves enough of the context free, or a question comes first;
6. goes to the session, which answers from the attached collections, and queues it while an answer runs;
7. is shown, and its answer followed.

If it does not fit into the context, a question comes first. If it is refused, it returns to the prompt, as a
command does whose argument is refused. What is typed is saved as the draft of its conversation
(`DraftKeeper`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

from app.slash import parse
from app.slash.attachments import split_attached
from app.slash.mentions import unknown_name, with_whole_names
from app.tui.action_groups import ActionGroups
from app.tui.chat_screen import ChatScreen
from app.tui.draft_keeper import DraftKeeper
from app.tui.screen_layout import ScreenLayout
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.transcript import Transcript
from engine.api.errors import PravahaError
from engine.api.image import Image
from engine.conversations.errors import ContextFull, ConversationChanged


class Sending:
    """Sends messages.

    Args:
        actions: the groups that a message passes on its way.
        run_command: runs a slash command; False if it was refused.
    """

    def __init__(
        self,
        screen: ChatScreen,
        layout: ScreenLayout,
        drafts: DraftKeeper,
        actions: ActionGroups,
        *,
        run_command: Callable[[parse.Invocation], Awaitable[bool]],
    ) -> None:
        self._screen = screen
        self._layout = layout
        self._drafts = drafts
        self._actions = actions
        self._run_command = run_command
        self._warned = ""
        """The message that names what nobody knows: sent again, it goes as it is."""

    @property
    def _prompt(self) -> Prompt:
        return self._screen.main.query_one(Prompt)

    def text_changed(self, text: str) -> None:
        """The text in the prompt is `text` now: a held message is not sent, and the draft is saved."""
        self._actions.held.text_changed(text)
        if self._prompt.editing is None:  # an edited message is no draft
            self._drafts.changed(text)
            self._actions.draft.changed(text)

    async def submit(self, text: str, editing: str | None = None) -> None:
        """Take a text from the prompt.

        Args:
            editing: the node whose text it is instead, None for a new message or command.
        """
        if editing is not None:
            if await self._actions.tree.finish_edit(editing, text):
                self._remember(text)
            return
        match parse.read(text, "screen"):
            case parse.Plain(message):
                await self.send(message)
            case parse.Invocation() as invocation:
                # First: the command may open another conversation.
                self._screen.session.messages.remember_command(text.strip())
                if not await self._run_command(invocation) and invocation.argument:
                    self._prompt.insert_unsent(text)
                self._show_history()
            case parse.Refused(sentence):
                self._screen.notify_safely(sentence, "warning")
                self._prompt.insert_unsent(text)

    async def send(self, text: str) -> None:
        """Send a message; if it is refused, its text returns to the prompt."""
        if "@" in text:
            text = await self._with_known_names(text)
            if not text:
                return
        try:
            if await self._actions.agents.start_if_called(text):
                self._remember(text)  # it is stored with the result
                return
            if await self._actions.sources.attach_mentioned(text):
                self._screen.session.messages.remember_command(text.strip())
                self._show_history()
                return
            images = self._actions.images.named(text)
            if self._actions.images.begin_reading(text, images, send=self._send_read):
                return  # it is sent when they are read
        except PravahaError as error:
            await self._return_unsent(text, error)
            return
        await self._send_read(text, text, images=[one.image for one in images])

    async def _with_known_names(self, text: str) -> str:
        """The message with whole names in place of their beginnings; empty if it returned to the prompt."""
        known = await self._actions.known_names()
        if known is None:
            return text
        text, problem = await asyncio.to_thread(_checked, text, *known)
        if problem and text != self._warned:
            self._warned = text
            self._screen.notify_safely(f"{problem} Enter again sends it as it is.", "warning")
            self._prompt.insert_unsent(text)
            return ""
        self._warned = ""
        return text

    async def _send_read(self, text: str, message: str, *, images: Sequence[Image] = ()) -> None:
        """Send a message whose images were read; if it is refused, its text returns to the prompt.

        Args:
            text: as it was typed.
            message: what is sent, together with the files that it names.
            images: the images that the model sees.
        """
        try:
            await self._actions.documents.attach(
                text, message, partial(self._deliver, text, images)
            )
        except PravahaError as error:
            await self._return_unsent(text, error)

    async def _deliver(self, text: str, images: Sequence[Image], sent: str) -> None:
        """Send a message whose files were read, as `_send_read`."""
        try:
            if self._actions.context.is_nearly_full(sent, images):
                self._actions.context.ask(
                    sent,
                    images,
                    show_sent=self._show_sent,
                    send=partial(self._deliver, text, images, sent),
                )
                return
            self._screen.session.messages.send(sent, images=images)
        except ContextFull:
            self._actions.context.ask(sent, images, show_sent=self._show_sent)
            return
        except PravahaError as error:
            await self._return_unsent(text, error)
            return
        await self._show_sent()

    async def _return_unsent(self, text: str, error: PravahaError) -> None:
        self._screen.notify_safely(str(error), "error")
        self._prompt.insert_unsent(text)
        if isinstance(error, ConversationChanged):
            await self._screen.show_chat()

    async def _show_sent(self) -> None:
        """Show the message that was sent and follow its answer."""
        self._drafts.leave()
        self._show_history()
        self._layout.uncover_messages()
        await self._screen.show_chat()
        await self._screen.main.query_one(Transcript).select("end")

    def withdraw(self) -> None:
        """Take the newest queued message back into the prompt."""
        withdrawn = self._screen.session.messages.withdraw()
        if withdrawn is not None:
            self._prompt.insert_unsent(split_attached(withdrawn)[0])
        self._screen.wake()

    def _remember(self, text: str) -> None:
        """What is stored in another way was typed."""
        self._screen.session.messages.remember(text)
        self._show_history()

    def _show_history(self) -> None:
        """Let the prompt offer what was typed, without the texts of attached files."""
        self._prompt.set_history(typed_before(self._screen.session.messages.history()))


def typed_before(history: Sequence[str]) -> list[str]:
    """Messages and commands as they were typed, without consecutive duplicates."""
    typed = [split_attached(one)[0] for one in history]
    return [one for at, one in enumerate(typed) if at == 0 or one != typed[at - 1]]


def _checked(text: str, agents: Collection[str], collections: Collection[str]) -> tuple[str, str]:
    """The message with whole names, and why it is probably not what was meant."""
    whole = with_whole_names(text, agents, collections)
    return whole, unknown_name(whole, agents, collections)
