"""Files on the screen: `@file` in a message, in every format that collections read.

Their text is read and counted on threads. If that takes longer than `QUICK_S`, the message stays in the
prompt meanwhile (`HeldMessage`). In the transcript, each file is one row; a key shows its text.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from app.slash.attachments import (
    AttachedText,
    attach_files,
    check_all_fit,
    split_attached,
    unread_files,
)
from app.tui.actions.files import FileActions
from app.tui.actions.held_message import HeldMessage
from app.tui.actions.tools import ToolActions
from app.tui.chat_screen import ChatScreen
from app.tui.glyphs import Glyphs
from app.tui.keys import hint
from app.tui.selection import Selection
from app.tui.view.attached import build_attached
from app.tui.view.spans import Line
from app.tui.widgets.prompt import Prompt
from app.tui.widgets.transcript import Transcript
from engine.api.errors import InvalidRequest
from engine.conversations.tree import NodeKind, NodeView
from engine.retrieval.parsing.document_reader import DocumentReader, FileText

QUICK_S = 0.2
"""A message whose files are read within so many seconds is sent at once; keys wait meanwhile."""

_MAX_COUNTS = 256
"""Texts whose tokens are known at a time."""

Send = Callable[[str], Awaitable[None]]


class DocumentActions:
    """Reads the files of messages.

    Args:
        files: count the tokens of a text.
        reader: reads them.
        held: holds a message while they are read.
    """

    def __init__(
        self,
        screen: ChatScreen,
        selection: Selection,
        files: FileActions,
        glyphs: Glyphs,
        keymap: Mapping[str, str],
        reader: DocumentReader,
        held: HeldMessage,
        tools: ToolActions,
    ) -> None:
        self._screen = screen
        self._selection = selection
        self._files = files
        self._glyphs = glyphs
        self._fold_key = hint("files.fold", "", keymap)[0]
        self._reader = reader
        self._held = held
        self._tools = tools
        self._unfolded: set[str] = set()
        self._counts: dict[tuple[str, int], int] = {}
        """Tokens by the name of the model and the hash of a text."""
        self._counting: set[str] = set()
        """The messages whose files are being counted."""

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
        self._held.cancel()
        paths = await asyncio.to_thread(unread_files, message) if "@" in message else []
        if not paths:
            await send(message)
            return
        texts = [self.read(path) for path in paths]
        _, waiting = await asyncio.wait(texts, timeout=QUICK_S)
        if not waiting:
            await send(await self._attached(message, dict(zip(paths, texts, strict=True))))
            return

        async def send_read(sent: str) -> None:
            self._screen.main.query_one(Prompt).text = ""
            await send(sent)

        self._held.hold(
            typed,
            [path.name for path in paths],
            texts,
            read=lambda: self._attached(message, dict(zip(paths, texts, strict=True))),
            send=send_read,
        )

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
        """The text of a message to show, and a row for each of its attached files or calls of tools."""
        if node.kind is NodeKind.TOOL:
            return self._tools.folded(node)
        if node.kind is not NodeKind.USER:
            return node.text, []
        typed, attached = split_attached(node.text)
        if not attached:
            return node.text, []
        counts = [self._counts.get(self._key_of(one.text)) for one in attached]
        if None in counts and self._files.length and node.id not in self._counting:
            self._counting.add(node.id)
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
                key="" if at else self._fold_key,
                click=click,
            )
            for at, (one, tokens) in enumerate(zip(attached, counts, strict=True))
        ]
        return node.text if shown else typed, rows

    def fold(self, node_id: str | None = None) -> None:
        """Show or hide the files of a message or the results of its calls: the selected one, else the last.

        Raises:
            InvalidRequest: it has none.
        """
        chosen = node_id or self._selection.node_id
        path = self._screen.session.path()
        with_files = [
            node.id
            for node in path
            if node.kind is NodeKind.TOOL
            or (node.kind is NodeKind.USER and split_attached(node.text)[1])
        ]
        if chosen is None and with_files:
            chosen = with_files[-1]
        if self._tools.can_fold(chosen):
            self._tools.fold(chosen or "")
            return
        if chosen not in with_files:
            raise InvalidRequest(
                "No file is attached to the message, and it has no calls of tools."
            )
        self._unfolded ^= {chosen}
        self._screen.main.query_one(Transcript).refold(chosen)

    async def _count(self, node_id: str, attached: Sequence[AttachedText]) -> None:
        try:
            for one in attached:
                if not await self.tokens(one.text):  # the model is being changed
                    return
        finally:
            self._counting.discard(node_id)
        self._screen.main.query_one(Transcript).refold(node_id)

    async def tokens(self, text: str) -> int:
        """The tokens of a file's text, counted once; 0 while no model is loaded."""
        key = self._key_of(text)
        if key not in self._counts:
            tokens = await asyncio.to_thread(self._files.count_tokens, text)
            if not tokens:
                return 0
            while len(self._counts) >= _MAX_COUNTS:
                del self._counts[next(iter(self._counts))]
            self._counts[key] = tokens
        return self._counts[key]

    def _key_of(self, text: str) -> tuple[str, int]:
        model = self._screen.client.snapshot().model
        return "" if model is None else model.name, hash(text)
