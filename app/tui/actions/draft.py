"""The draft before it is sent: the files that it attaches, and how many tokens it takes.

Measured on threads, `QUIET_S` after the last key: typing costs nothing. The tokenizer is the engine's; that
of a server was downloaded, so that no key is a request.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from app.slash.attachments import is_image, mentioned_files
from app.text.safe_text import safe_line
from app.tui.actions.documents import DocumentActions
from app.tui.actions.files import FileActions
from app.tui.chat_screen import ChatScreen
from app.tui.frame import Frame
from app.tui.glyphs import Glyphs
from app.tui.view.attached import build_facts, build_size
from app.tui.view.spans import Span
from app.tui.widgets.prompt import Prompt
from engine.api.errors import InvalidRequest, PravahaError

QUIET_S = 0.15
_NO_MODEL = ("", 0, 0)


class DraftActions:
    """Also a pane: it measures again when the model or the length of the conversation has changed.

    Attributes:
        files: a span for each file of the draft.
    """

    in_view = True

    def __init__(
        self, screen: ChatScreen, files: FileActions, documents: DocumentActions, glyphs: Glyphs
    ) -> None:
        self._screen = screen
        self._files = files
        self._documents = documents
        self._glyphs = glyphs
        self._text = ""
        self._context = _NO_MODEL
        self._total = 0  # tokens of the draft as it was measured
        self._due: asyncio.TimerHandle | None = None
        self.files: Sequence[Span] = ()

    def changed(self, text: str) -> None:
        """The text of the draft is `text` now."""
        if text == self._text:
            return
        self._text = text
        if self._due is not None:
            self._due.cancel()
        if not text.strip() or (text.startswith("/") and not text.startswith("//")):
            self._total = 0
            self._show_size(())
        else:
            self._due = asyncio.get_running_loop().call_later(QUIET_S, self._begin)

    def leave(self) -> None:
        """The app ends."""
        if self._due is not None:
            self._due.cancel()

    def show(self, frame: Frame) -> bool:
        """Measure again if the model has changed; an answer that grows takes from what is left."""
        model = frame.snapshot.model
        used = frame.session.context.used()
        context = _NO_MODEL if model is None else (model.name, model.context_length, used)
        if context != self._context:
            same_model, self._context = context[:2] == self._context[:2], context
            if not same_model:
                text, self._text = self._text, ""
                self.changed(text)
            elif self._total:
                self._show_size(self.files)
        return False

    def _begin(self) -> None:
        self._due = None
        self._screen.run_worker(
            self._measure(self._text), group="draft", exclusive=True, exit_on_error=False
        )

    async def _measure(self, text: str) -> None:
        total = await self._count(text)
        paths: Sequence[Path] = ()
        if "@" in text:
            try:
                paths = await asyncio.to_thread(mentioned_files, text)
            except InvalidRequest:
                paths = ()  # said when it is sent
        shown: list[Span] = []
        for path in paths:
            span, tokens = await self._file(path)
            shown.append(span)
            total += tokens
        if text != self._text:
            return
        self._total = total
        self._show_size(shown)

    async def _count(self, text: str) -> int:
        """The tokens of a text; 0 while no model is loaded."""
        _, length, _ = self._context
        return await asyncio.to_thread(self._files.count_tokens, text) if length else 0

    async def _file(self, path: Path) -> tuple[Span, int]:
        """What is shown of a file, and its tokens."""
        name = safe_line(path.name)
        if await asyncio.to_thread(is_image, path):
            return Span(f"{name} {self._glyphs.separator} image", "$accent"), 0
        try:
            file = await self._documents.read(path)
        except PravahaError as error:
            return Span(safe_line(str(error)), "$error"), 0
        tokens = await self._documents.tokens(file.text)
        facts = build_facts(file.name, self._glyphs, file.pages, tokens or None)
        return Span(facts, "$accent"), tokens

    def _show_size(self, files: Sequence[Span]) -> None:
        """Show the files, and the tokens of the draft beside those that are left."""
        _, length, used = self._context
        left, total = length - used, self._total
        size = build_size(total, left) if length and total else ""
        too_large = bool(size) and total > left
        self._screen.main.query_one(Prompt).show_size(size, too_large=too_large)
        if tuple(files) != tuple(self.files):
            self.files = tuple(files)
            self._screen.draw_all()
