"""`Sending`: the way of a text from the prompt to a running request.

`submit` takes what enter was pressed on: the changed text of an earlier message, a slash command or a message
(`send`). A message

1. may call an agent, or only attach collections of documents; then nothing is sent;
2. waits until the text of its images is read, if the model does not see them;
3. gets the files that it names inserted;
4. leaves enough of the context free, or a question comes first;
5. goes to the session, which answers from the attached collections, and queues it while an answer runs;
6. is shown, and its answer followed.

If it does not fit into the context, a question comes first. If it is refused, it returns to the prompt. What
is typed is saved as the draft of its conversation (`DraftKeeper`).
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from app.slash import parse
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
        run_command: runs a slash command.
    """

    def __init__(
        self,
        screen: ChatScreen,
        layout: ScreenLayout,
        drafts: DraftKeeper,
        actions: ActionGroups,
        *,
        run_command: Callable[[parse.Invocation], Awaitable[None]],
    ) -> None:
        self._screen = screen
        self._layout = layout
        self._drafts = drafts
        self._actions = actions
        self._run_command = run_command

    @property
    def _prompt(self) -> Prompt:
        return self._screen.main.query_one(Prompt)

    def text_changed(self, text: str) -> None:
        """The text in the prompt is `text` now: a held message is not sent, and the draft is saved."""
        self._actions.images.text_changed(text)
        if self._prompt.editing is None:  # an edited message is no draft
            self._drafts.changed(text)

    async def submit(self, text: str, editing: str | None = None) -> None:
        """Take a text from the prompt.

        Args:
            editing: the node whose text it is instead, None for a new message or command.
        """
        if editing is not None:
            await self._actions.tree.finish_edit(editing, text)
            return
        match parse.read(text, "screen"):
            case parse.Plain(message):
                await self.send(message)
            case parse.Invocation() as invocation:
                await self._run_command(invocation)
            case parse.Refused(sentence):
                self._screen.notify_safely(sentence, "warning")
                self._prompt.insert_unsent(text)

    async def send(self, text: str) -> None:
        """Send a message; if it is refused, its text returns to the prompt."""
        try:
            if await self._actions.agents.start_if_called(
                text
            ) or await self._actions.sources.attach_mentioned(text):
                return
            images = self._actions.images.named(text)
            if self._actions.images.begin_reading(text, images, send=self._send_read):
                return  # it is sent when they are read
        except PravahaError as error:
            await self._return_unsent(text, error)
            return
        await self._send_read(text, text, images=[one.image for one in images])

    async def _send_read(self, text: str, message: str, *, images: Sequence[Image] = ()) -> None:
        """Send a message whose images were read; if it is refused, its text returns to the prompt.

        Args:
            text: as it was typed.
            message: what is sent, together with the files that it names.
            images: the images that the model sees.
        """
        sent = message
        try:
            sent = self._actions.files.expanded(message)
            if self._actions.context.is_nearly_full(sent, images):
                self._actions.context.ask(
                    sent,
                    images,
                    show_sent=self._show_sent,
                    send=partial(self._send_read, text, message, images=images),
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
        self._prompt.set_history(self._screen.session.messages.history())
        self._layout.uncover_messages()
        await self._screen.show_chat()
        await self._screen.main.query_one(Transcript).select("end")

    def withdraw(self) -> None:
        """Take the newest queued message back into the prompt."""
        withdrawn = self._screen.session.messages.withdraw()
        if withdrawn is not None:
            self._prompt.insert_unsent(withdrawn)
        self._screen.wake()
