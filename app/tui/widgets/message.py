"""One message of the transcript: a head, its body, and a mark with figures below.

An answer is streamed with at most one write a tick:
* it starts from an empty `Markdown` and every piece is appended;
* the rest of a code fence longer than `FENCE_LIMIT` is shown plain until the fence closes (`PlainFence`);
* one final `update(source)` follows only if a fence was open or Textual's source differs from ours;
* an answer that Textual cannot parse is logged and shown as plain text.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Markdown, Static

from app.text.safe_text import SafeStream, safe_text
from app.tui.glyphs import Glyphs
from app.tui.textual_workarounds.answer_markdown import AnswerMarkdown
from app.tui.textual_workarounds.laid_out_once import LaidOutOnce
from app.tui.textual_workarounds.plain_fence import FENCE_LIMIT, PlainFence
from app.tui.textual_workarounds.uniform_rows import UniformRows
from app.tui.view.fences import FenceTracker
from app.tui.view.messages import (
    ONLY_CHILD,
    SiblingPlace,
    build_head,
    build_mark,
    build_remarks,
    build_waiting,
)
from app.tui.view.spans import Line
from app.tui.view.thought import is_thinking
from app.tui.widgets.lines import Lines
from app.tui.widgets.token_view import ShownTokens, TokenView
from engine.conversations.tree import NodeKind, NodeStatus, NodeView

log = logging.getLogger(__name__)

CROWDED_RESERVE = 6
"""Rows kept free below a growing answer while many requests run. A scroll redraws the whole transcript, so
the answer then scrolls by several rows at once."""

_Body = Literal["typed", "markdown", "fallback"]


class Message(UniformRows, LaidOutOnce, Vertical):
    """A message; what the model wrote is Markdown, all others are plain text.

    Args:
        rows_below: returns rows to show below a message that is not streamed.
        folded: returns the text of a user's message to show, and the rows of its attached files.
        thought: returns the row of an answer's reasoning, empty without any, and whether the text is shown.
    """

    def __init__(
        self,
        node: NodeView,
        glyphs: Glyphs,
        place: SiblingPlace = ONLY_CHILD,
        *,
        rows_below: Callable[[NodeView], list[Line]] = lambda node: [],
        folded: Callable[[NodeView], tuple[str, list[Line]]] = lambda node: (node.text, []),
        thought: Callable[[NodeView], tuple[Line, bool]] = lambda node: ((), False),
    ) -> None:
        super().__init__(classes=f"message -{node.kind.value}")
        self.node = node
        self._place = place
        self._glyphs = glyphs
        self._rows_below = rows_below
        self._folded = folded
        self._thought = thought
        self._marked = False
        generated = node.kind in (NodeKind.ASSISTANT, NodeKind.SUMMARY)
        self._body: _Body = "markdown" if generated else "typed"
        self._stream = SafeStream()
        self._source = ""
        self._fences = FenceTracker()
        self._plain_fence = PlainFence()
        self._token_view: TokenView | None = None

    def compose(self) -> ComposeResult:
        """Head, body and mark."""
        yield Lines(classes="message-head")
        if self._body == "markdown":
            yield AnswerMarkdown(classes="message-body")
        else:
            self._source = safe_text(self._folded(self.node)[0])
            yield Static(Content(self._source), classes="message-body", markup=False)
        yield Lines(classes="message-mark")

    async def on_mount(self) -> None:
        """Show the text that the node already has."""
        self._show_head()
        self.show_thought()
        if self._body == "markdown" and self.node.text:
            if self.node.status is NodeStatus.STREAMING:
                await self.write(self.node.text)
            else:
                self._source = safe_text(self.node.text)
                await self._complete()
        self._show_mark()

    @property
    def source(self) -> str:
        """The sanitised text, as shown and copied."""
        return self._source

    def refold(self) -> None:
        """Show or hide the texts of attached files, as `folded` says now."""
        bodies = self.query_children(".message-body")
        if self._body == "typed" and bodies:  # not while it is being removed
            self._source = safe_text(self._folded(self.node)[0])
            bodies.first(Static).update(Content(self._source))
            self._show_mark()

    def show_rows(self) -> None:
        """Show the rows below the message as they are now."""
        if self.query_children(".message-mark"):  # not before it is composed
            self._show_mark()

    @property
    def token_view(self) -> TokenView | None:
        """The tokens, if they are shown in place of the text."""
        return self._token_view

    def show_tokens(self, shown: ShownTokens | None) -> None:
        """Show tokens in place of the text, or with None the text again."""
        view = self._token_view
        if shown is None and view is None:
            return
        if shown is not None and view is not None:
            view.show(shown)
        elif shown is not None:
            marks = self.query_children(".message-mark")
            if not marks:  # not composed yet, or being removed
                return
            self._token_view = TokenView(shown, self._glyphs)
            self.mount(self._token_view, before=marks.first())
        elif view is not None:
            self._token_view = None
            view.remove()
        for body in self.query_children(".message-body"):
            body.display = shown is None

    async def write(self, text: str, *, crowded: bool = False) -> None:
        """Append new text of a streaming answer.

        Args:
            text: the new text.
            crowded: whether many requests run, so that several rows are scrolled at once.
        """
        if self._body == "markdown":
            markdown = self.query_one(AnswerMarkdown)
            markdown.reserve = CROWDED_RESERVE if crowded else 0
            markdown.citations.count = self.node.n_passages or 0
        await self._append(self._stream.feed(text))

    def wait(self, node: NodeView) -> None:
        """The engine has the request: show its prompt's length until the first token."""
        self.node = node
        self._show_head()  # the model is known
        self.show_thought()
        self._show_mark()

    async def finish(self, node: NodeView) -> None:
        """The node is no longer streamed: flush the text, complete the Markdown, show the mark."""
        self.node = node
        if node.kind is NodeKind.TOOL:
            self._show_head()
            self.refold()
            return
        self._show_head()  # the model of a question that was sent while it was loading
        self.show_thought()
        await self._append(self._stream.flush())
        self._fences.finish()
        await self._complete()
        self._show_mark()

    def show_place(self, node: NodeView, place: SiblingPlace) -> None:
        """The tree changed around the message: show its flags and which of its siblings it is."""
        self.node = replace(self.node, label=node.label, rating=node.rating)
        self._place = place
        self._show_head()

    def set_marked(self, marked: bool) -> None:
        """Show whether the message is marked for comparison."""
        if marked is not self._marked:
            self._marked = marked
            self._show_head()

    def _show_head(self) -> None:
        head = build_head(self.node, self._glyphs, self._place, marked=self._marked)
        self.query_one(".message-head", Lines).show_lines([head])

    def show_thought(self) -> None:
        """Show the row of the answer's reasoning, and the reasoning if it is unfolded."""
        line, shown = self._thought(self.node)
        rows = self.query_children(".message-thought")
        if not line and not rows:
            return
        if not rows:
            bodies = self.query_children(".message-body")
            if not bodies:  # not composed yet, or being removed
                return
            row = Lines(classes="message-thought")
            text = Static("", classes="message-reasoning", markup=False)
            text.display = False
            self.mount(row, text, before=bodies.first())
        else:
            row = rows.first(Lines)
            text = self.query_children(".message-reasoning").first(Static)
        row.show_lines([line])
        text.display = shown
        if shown:
            text.update(Content(safe_text(self.node.reasoning or "").strip()))

    def _show_mark(self) -> None:
        mark = build_mark(self.node, self._glyphs)
        awaits_text = (
            self.node.status is NodeStatus.STREAMING and self.node.kind is not NodeKind.TOOL
        )
        if awaits_text and not self._source and not is_thinking(self.node):
            mark = build_waiting(self.node, self._glyphs)
        widget = self.query_one(".message-mark", Lines)
        lines = [*([mark] if mark else []), *build_remarks(self.node, self._glyphs)]
        if self.node.status is not NodeStatus.STREAMING:
            lines = [*self._rows_below(self.node), *lines]
        if self._body == "typed":
            lines = [*self._folded(self.node)[1], *lines]
        widget.display = bool(lines)
        widget.show_lines(lines)

    async def _append(self, text: str) -> None:
        if not text:
            return
        first = not self._source
        self._source += text
        self._fences.feed(text)
        if first:
            self._show_mark()
        if self._body == "fallback":
            self.query_one(".message-body", Static).update(Content(self._source))
        if self._body != "markdown":
            return
        try:
            await self._append_markdown(text)
        except Exception:
            log.exception("Markdown could not show an answer; showing it as plain text")
            await self._fall_back()

    async def _append_markdown(self, text: str) -> None:
        markdown = self.query_one(AnswerMarkdown)
        if self._plain_fence.is_over(self._fences):
            # The long fence closed: replace the plain text by Markdown. In Textual 8.2.8 an `append`
            # after `update` continues a fence that ended the update, closed or not.
            cut = self._fences.closed_at or 0
            with self.app.batch_update():
                await self._plain_fence.remove()
                await markdown.update("")
                await markdown.append(self._source[:cut])
            text = self._source[cut:]
            if not text:
                return
        if self._plain_fence.shown or self._fences.open_length > FENCE_LIMIT:
            mark = self.query_one(".message-mark", Lines)
            await self._plain_fence.append(text, self._fences, parent=self, before=mark)
        else:
            await markdown.grow(text)

    async def _complete(self) -> None:
        if self._body != "markdown":
            return
        markdown = self.query_one(AnswerMarkdown)
        markdown.release()
        plain = self._plain_fence
        markdown.citations.count = self.node.n_passages or 0
        self._take_checked_text()
        if not plain.shown and self._fences.open_at is None and markdown.source == self._source:
            return
        try:
            await plain.remove()
            await markdown.update(self._source)
        except Exception:
            log.exception("Markdown could not show a complete answer; showing it as plain text")
            await self._fall_back()

    def _take_checked_text(self) -> None:
        """Show the answer as it is after the check of its citations."""
        text = safe_text(self.node.text)
        if self.node.checked_text is not None and text != self._source:
            self._source, self._fences = text, FenceTracker()
            self._fences.feed(text)
            self._fences.finish()

    async def _fall_back(self) -> None:
        self._body = "fallback"
        await self._plain_fence.remove()
        plain = Static(Content(self._source), classes="message-body", markup=False)
        markdown = self.query_one(Markdown)
        await self.mount(plain, before=markdown)
        await markdown.remove()
