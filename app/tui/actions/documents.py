"""Files on the screen: `@file` in a message, in every format that collections read.

Their text is read and counted on threads. If that takes longer than `QUICK_S`, the message stays in the
prompt meanwhile, and so in the draft: it is sent once its files are read, unless it was changed or Esc was
pressed. In the transcript, each file is one row; a key shows its text.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.slash.attachments import (
    AttachedText,
    attach_files,
    check_all_fit,
    split_attached,
    unread_files,
)
from app.text.safe_text import safe_line
from app.tui.actions.files import FileActions
from app.tui.actions.guarded import guarded
from app.tui.chat_screen import ChatScreen
from app.tui.glyphs import Glyphs
from app.tui.keys import hint
from app.tui.selection import Selection
from app.tui.view.attached import build_attached
from app.tui.view.spans import Line
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest, PravahaError
from engine.conversations.tree import NodeKind, NodeView
from engine.retrieval.parsing.document_reader import DocumentReader, FileText

QUICK_S = 0.2
"""A message whose files are read within so many seconds is sent at once; keys wait meanwhile."""

_MAX_COUNTS = 256
"""Texts whose tokens are known at a time."""

Send = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """A message whose files are being read."""

    typed: str
    tree_id: str
    texts: "Sequence[asyncio.Future[FileText]]"


class DocumentActions:
    """Reads the files of messages.

    Args:
        files: count the tokens of a text.
        reader: reads them.
    """

    def __init__(
        self,
        screen: ChatScreen,
        selection: Selection,
        files: FileActions,
        glyphs: Glyphs,
        keymap: Mapping[str, str],
        reader: DocumentReader,
    ) -> None:
        self._screen = screen
        self._selection = selection
        self._files = files
        self._glyphs = glyphs
        self._key = hint("files.fold", "", keymap)[0]
        self._reader = reader
        self._reading: _Reading | None = None
        self._unfolded: set[str] = set()
        self._counts: dict[
            int, int
        ] = {}  # tokens by the hash of a text, of the model that counted it

    @property
    def reading(self) -> bool:
        """Whether a message waits for the text of its files."""
        return self._reading is not None

    def read(self, path: Path) -> "asyncio.Future[FileText]":
        """The text of a file; see `DocumentReader.read`."""
        return asyncio.wrap_future(self._reader.read(path))

    async def attach(self, typed: str, message: str, send: Send) -> None:
        """Send a message with the text of the files that it names, at once or when they are read.

        Args:
            typed: the message as it was typed.
            message: the same with the text of its images.
            send: called with the message as it is sent.

        Raises:
            PravahaError: a file cannot be read within `QUICK_S`, or is too large for the context.
        """
        self.cancel()
        paths = await asyncio.to_thread(unread_files, message) if "@" in message else []
        if not paths:
            await send(message)
            return
        texts = [self.read(path) for path in paths]
        _, waiting = await asyncio.wait(texts, timeout=QUICK_S)
        if not waiting:
            await send(await self._attached(message, dict(zip(paths, texts, strict=True))))
            return
        reading = _Reading(typed, self._screen.session.tree_id, texts)
        names = ", ".join(safe_line(path.name) for path in paths)
        self._prompt.hold(typed, f"reading {names}")
        self._reading = reading

        async def send_when_read() -> None:
            try:
                sent = await self._attached(message, dict(zip(paths, texts, strict=True)))
            except PravahaError as error:
                if self._reading is reading:
                    self._end()
                    self._screen.notify_safely(str(error), "error")
                return
            if self._reading is not reading:
                return
            self._end()
            if self._screen.session.tree_id == reading.tree_id:  # else it is that one's draft
                self._prompt.text = ""
                await guarded(self._screen, send(sent))

        self._screen.run_worker(send_when_read(), group="documents", exit_on_error=False)

    def text_changed(self, text: str) -> None:
        """The text in the prompt is `text` now; a message that was changed is not sent."""
        if self._reading is not None and text != self._reading.typed:
            self.cancel()

    def cancel(self) -> None:
        """Leave the message in the prompt, unsent."""
        reading = self._end()
        for one in () if reading is None else reading.texts:
            one.cancel()

    async def _attached(
        self, message: str, texts: "Mapping[Path, asyncio.Future[FileText]]"
    ) -> str:
        found = dict(zip(texts, await asyncio.gather(*texts.values()), strict=True))
        files = self._files
        left = files.length - self._screen.session.context.used()
        await asyncio.to_thread(
            check_all_fit, list(found.values()), files.count_tokens, files.length, left
        )
        for file in found.values():
            for note in file.notes:
                self._screen.notify_safely(f"{file.name}: {note}", "warning")
        return await asyncio.to_thread(attach_files, message, found)

    # In the transcript.

    def folded(self, node: NodeView) -> tuple[str, list[Line]]:
        """The text of a user's message to show, and a row for each of its attached files."""
        if node.kind is not NodeKind.USER:
            return node.text, []
        typed, attached = split_attached(node.text)
        if not attached:
            return node.text, []
        counts = [self._counts.get(hash(one.text)) for one in attached]
        if None in counts and self._files.length:
            self._screen.run_worker(
                self._count(node.id, attached), group="counts", exit_on_error=False
            )
        shown = node.id in self._unfolded
        click = f"app.perform_later('documents','fold',{node.id!r})"
        rows = [
            build_attached(
                one.name,
                self._glyphs,
                one.pages,
                tokens,
                shown=shown,
                key="" if at else self._key,
                click=click,
            )
            for at, (one, tokens) in enumerate(zip(attached, counts, strict=True))
        ]
        return node.text if shown else typed, rows

    def fold(self, node_id: str | None = None) -> None:
        """Show or hide the texts of the files of a message: the selected one, else the last with files.

        Raises:
            InvalidRequest: it has none.
        """
        chosen = node_id or self._selection.node_id
        path = self._screen.session.path()
        with_files = [
            node.id for node in path if node.kind is NodeKind.USER and split_attached(node.text)[1]
        ]
        if chosen is None and with_files:
            chosen = with_files[-1]
        if chosen not in with_files:
            raise InvalidRequest("No file is attached to the message.")
        self._unfolded ^= {chosen}
        self._screen.main.query_one(Transcript).refold(chosen)

    async def _count(self, node_id: str, attached: Sequence[AttachedText]) -> None:
        for one in attached:
            tokens = await asyncio.to_thread(self._files.count_tokens, one.text)
            if not tokens:  # the model is being changed
                return
            while len(self._counts) >= _MAX_COUNTS:
                del self._counts[next(iter(self._counts))]
            self._counts[hash(one.text)] = tokens
        self._screen.main.query_one(Transcript).refold(node_id)

    # Internal.

    def _end(self) -> _Reading | None:
        """The reading, which is over."""
        reading, self._reading = self._reading, None
        if reading is not None:
            self._prompt.release()
        return reading

    @property
    def _prompt(self) -> Prompt:
        return self._screen.main.query_one(Prompt)
