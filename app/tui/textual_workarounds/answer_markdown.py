"""Textual's `Markdown` for text that arrives in pieces, which redraws only the rows that changed.

Guard: appending to a paragraph costs one parse of that paragraph and the drawing of the rows that
changed. Textual 8.2.8 would create a widget for each piece, lay out the whole screen, and draw every row
of the paragraph.
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

from app.tui.citation_links import CitationLinks
from app.tui.markdown_blocks.code import CodeBlock
from app.tui.markdown_blocks.table import TableBlock
from app.tui.markdown_parser import make_parser
from app.tui.textual_workarounds.cached_strips import CachedStrips
from app.tui.textual_workarounds.laid_out_once import LaidOutOnce
from app.tui.textual_workarounds.uniform_rows import UniformRows


class GrowingParagraph(CachedStrips, LaidOutOnce, MarkdownParagraph):
    """A paragraph whose text changes at its end; only a change of height causes a layout.

    Attributes:
        reserve: number of empty rows below the text, which can be filled without a layout.
    """

    reserve = 0
    _changed: tuple[Region, ...] = ()
    _wrapped: tuple[int, Sequence[Content]] = (0, ())
    """Width and wrapped rows of the text shown last."""

    def grow(self, opening: Token, inline: Token) -> None:
        """Show the paragraph's text so far, given as parsed tokens."""
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
        """Rows of text plus the reserve."""
        return super().get_content_height(container, viewport, width) + self.reserve

    def refresh(self, *regions: Region, **options: Any) -> Self:
        """As `Widget.refresh`, but only the changed rows while the text is replaced."""
        return super().refresh(*(regions or self._changed), **options)


class AnswerMarkdown(UniformRows, LaidOutOnce, Markdown):
    """The Markdown of an answer, which is untrusted text.

    Attributes:
        reserve: `GrowingParagraph.reserve` of the last paragraph.
        citations: what its citations refer to.
    """

    reserve = 0
    BLOCKS: dict[str, type[MarkdownBlock]] = {  # noqa: RUF012 - Textual's own name and type
        **Markdown.BLOCKS,
        "paragraph_open": GrowingParagraph,
        "table_open": TableBlock,
        "fence": CodeBlock,
        "code_block": CodeBlock,
    }

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__("", classes=classes, parser_factory=self._cached_parser, open_links=False)
        self._parser: MarkdownIt | None = None
        self.citations = CitationLinks()

    async def grow(self, text: str) -> None:
        """Append text: as `append`, but text of the last paragraph is changed in place."""
        if self._grow_last(text):
            return
        # Each of these requests a layout, some of them later than others: combine them into one.
        with self.app.batch_update():
            self.release()
            await self.append(text)
            self._reserve(self.reserve)
        self.screen.check_idle()  # process the requests made in the batch

    def release(self) -> None:
        """Remove the reserve of the last paragraph, which no longer grows."""
        self._reserve(0)

    def _reserve(self, rows: int) -> None:
        """Set the reserve of the last block, if that is a paragraph."""
        last = self.children[-1] if self.children else None
        if isinstance(last, GrowingParagraph) and last.reserve != rows:
            last.reserve = rows
            last.refresh(layout=True)

    def _grow_last(self, text: str) -> bool:
        """Append `text` to the last block; False unless that is, and remains, one paragraph."""
        last = self.children[-1] if self.children else None
        if not isinstance(last, GrowingParagraph):
            return False
        source = self.source + text
        first_line = self._last_parsed_line
        open_part = "".join(source.splitlines(keepends=True)[first_line:])
        tokens = self._cached_parser().parse(open_part)
        if [token.type for token in tokens] != ["paragraph_open", "inline", "paragraph_close"]:
            return False
        begin, end = tokens[0].map or (0, 0)
        if begin != 0:
            return False
        self._markdown = source
        last.source_range = (first_line, first_line + end)
        last.reserve = self.reserve
        last.grow(tokens[0], tokens[1])
        return True

    def _cached_parser(self) -> MarkdownIt:
        # Textual calls the factory for every append, and creating a parser takes longer than a parse.
        # Textual's own lock prevents concurrent parses of one answer.
        if self._parser is None:
            self._parser = make_parser()
            self.citations.install(self._parser)
        return self._parser
