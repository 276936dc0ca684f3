"""Textual's `Markdown` for text that arrives in pieces: what did not change is not drawn again.

Guard: growing a paragraph costs a parse of that paragraph, and draws the rows that changed. Textual 8.2.8
would make a widget for each piece, lay out the whole screen, and draw every row of the paragraph.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Self

from markdown_it import MarkdownIt
from markdown_it.token import Token
from textual.content import Content
from textual.geometry import Region, Size
from textual.widgets import Markdown
from textual.widgets._markdown import MarkdownParagraph
from textual.widgets.markdown import MarkdownBlock

from app.tui.markdown_parser import make_parser
from app.tui.textual_workarounds.kept_strips import KeptStrips
from app.tui.textual_workarounds.laid_out_once import LaidOutOnce
from app.tui.textual_workarounds.uniform_rows import UniformRows


class GrowingParagraph(KeptStrips, LaidOutOnce, MarkdownParagraph):
    """A paragraph whose text may change at its end; only a change of height is laid out anew.

    Attributes:
        reserve: empty rows to keep below the text, so that as many more can be filled without a layout.
    """

    reserve = 0
    _changed: tuple[Region, ...] = ()
    _wrapped: tuple[int, Sequence[Content]] = (0, ())
    """The width and the rows of what was shown last."""

    def go_on(self, opening: Token, inline: Token) -> None:
        """Show the paragraph's text so far, parsed."""
        self._token, self._inline_token = opening, inline
        self._show(self._token_to_content(inline))

    def _show(self, content: Content) -> None:
        width, height = self.size
        if not width:
            self.set_content(content)
            return
        wrapped_to, before = self._wrapped
        if wrapped_to != width:
            before = self._content.wrap(width)
        after = content.wrap(width)
        self._wrapped = (width, after)
        if not 0 <= height - len(after) <= self.reserve:
            self.set_content(content)
            return
        self._content = content
        self._changed = tuple(
            Region(0, row, width, 1)
            for row, (old, new) in enumerate(zip_longest(before, after))
            if old is None or new is None or not old.is_same(new)
        )
        if self._changed:
            self.update(content, layout=False)
            self._changed = ()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Rows of text, and the reserve."""
        return super().get_content_height(container, viewport, width) + self.reserve

    def refresh(self, *regions: Region, **options: Any) -> Self:
        """As a widget does; while the text is replaced, of its changed rows alone."""
        return super().refresh(*(regions or self._changed), **options)


class AnswerMarkdown(UniformRows, LaidOutOnce, Markdown):
    """An answer's Markdown, of untrusted text.

    Attributes:
        reserve: `GrowingParagraph.reserve` of the paragraph that grows.
    """

    reserve = 0
    BLOCKS: dict[str, type[MarkdownBlock]] = {  # noqa: RUF012 - Textual's own name and type
        **Markdown.BLOCKS,
        "paragraph_open": GrowingParagraph,
    }

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__("", classes=classes, parser_factory=self._one_parser, open_links=False)
        self._parser: MarkdownIt | None = None

    async def grow(self, text: str) -> None:
        """Append text: as `append`, but a paragraph that goes on is changed in place."""
        if self._go_on(text):
            return
        # Each of these asks for a layout, some of them much later than others: one serves all.
        with self.app.batch_update():
            self.release()
            await self.append(text)
            self._reserve(self.reserve)
        self.screen.check_idle()  # what was asked for meanwhile

    def release(self) -> None:
        """The last paragraph grows no more: give its reserve back."""
        self._reserve(0)

    def _reserve(self, rows: int) -> None:
        """Keep so many rows below the last block, if that is a paragraph."""
        last = self.children[-1] if self.children else None
        if isinstance(last, GrowingParagraph) and last.reserve != rows:
            last.reserve = rows
            last.refresh(layout=True)

    def _go_on(self, text: str) -> bool:
        """Give `text` to the last block, if that is a paragraph and stays one."""
        last = self.children[-1] if self.children else None
        if not isinstance(last, GrowingParagraph):
            return False
        source = self.source + text
        first_line = self._last_parsed_line
        open_part = "".join(source.splitlines(keepends=True)[first_line:])
        tokens = self._one_parser().parse(open_part)
        if [token.type for token in tokens] != ["paragraph_open", "inline", "paragraph_close"]:
            return False
        begin, end = tokens[0].map or (0, 0)
        if begin != 0:
            return False
        self._markdown = source
        last.source_range = (first_line, first_line + end)
        last.reserve = self.reserve
        last.go_on(tokens[0], tokens[1])
        return True

    def _one_parser(self) -> MarkdownIt:
        # Textual asks for one at every append, and making one takes longer than a parse. Its own
        # lock keeps two parses of one answer apart.
        if self._parser is None:
            self._parser = make_parser()
        return self._parser
