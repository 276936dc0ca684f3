"""`OpenDocumentReader`: the content or the page styles of an OpenDocument file as blocks.

Deleted text (`text:tracked-changes`) and hidden text, paragraphs and sections are left out.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from posixpath import normpath

from engine.retrieval.parsing.attribute_values import integer
from engine.retrieval.parsing.element_reader import Closer, ElementReader, Handler, skip, skipped
from engine.retrieval.parsing.mathml import mathml_text
from engine.retrieval.parsing.open_document_styles import (
    MAX_LEVEL,
    OpenDocumentStyles,
    item_label,
)
from engine.retrieval.parsing.safe_xml import Attributes
from engine.retrieval.parsing.safe_zip import SafeZip
from engine.retrieval.parsing.superscript import raised
from engine.retrieval.parsing.text_flow import (
    MAX_COLUMNS,
    Block,
    TextFlow,
    comment_block,
    picture_text,
)

_SPACES = re.compile(r"[ \t\r\n]+")
_SHAPES = (
    *("frame", "custom-shape", "rect", "ellipse", "circle", "line", "polyline", "polygon", "path"),
    *("regular-polygon", "connector", "caption", "measure"),
)
_NOT_READ = ("tracked-changes", "forms", "number")
_MAX_SPACES = 64


@dataclass(slots=True)
class _Paragraph:
    """The paragraph that is being read.

    Attributes:
        level: of the heading that it is, otherwise 0.
        ends_with_space: white space that follows means nothing.
    """

    level: int = 0
    label: str = ""
    hidden: bool = False
    ends_with_space: bool = True


@dataclass(slots=True)
class _ListItem:
    """The list around.

    Attributes:
        label: what stands before the item's first paragraph, which takes it.
    """

    style: str
    level: int
    label: str = ""


@dataclass(slots=True)
class Shape:
    """A frame on a page, or the page's header or footer.

    Attributes:
        purpose: `title`, `outline`, `notes`, `page header`, `footer` and others; empty for one without any.
        blocks: its text.
    """

    purpose: str = ""
    blocks: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class _Frame:
    """The frame that is being read: whether it holds a picture, and what its author says of it."""

    is_picture: bool = False
    description: list[str] = field(default_factory=list)


class OpenDocumentReader(ElementReader):
    """Reads one part: the styles that it brings, then its text.

    A slide and a master page are pages: lists of shapes. Other text goes to `sink`, block by block.
    """

    def __init__(
        self,
        archive: SafeZip,
        styles: OpenDocumentStyles,
        *,
        sink: Callable[[Block], None],
        page: Callable[[Attributes, list[Shape]], None],
        body: Callable[[], None] = lambda: None,
        folder: str = "",
    ) -> None:
        """Prepare.

        Args:
            archive: the document.
            styles: what was read of them before.
            sink: takes the blocks of a text.
            page: takes a page's attributes and shapes.
            body: called when all styles have been read.
            folder: of an embedded object; empty for the document itself.
        """
        super().__init__()
        self._archive, self._styles = archive, styles
        self._sink, self._page, self._body, self._folder = sink, page, body, folder
        self.flow = TextFlow(self._take)
        self._shapes: list[Shape] | None = None  # of the page around
        self._in_notes = False
        self._paragraph: _Paragraph | None = None
        self._items: list[_ListItem] = []
        self._counters: dict[str, dict[int, int]] = {}
        self._outline: dict[int, int] = {}
        self._frames: list[_Frame] = []
        self._said: list[str] | None = (
            None  # of an author, a mark or a description, in place of the text
        )
        self._mark, self._author = "", ""
        self._spanned = 0  # columns that the last cell still spans
        self._in_header_rows = False
        self._declared: dict[str, str] = {}
        self._objects: dict[str, tuple[str, list[Block]]] = {}
        self.handlers = {
            **styles.handlers,
            "body": lambda _: self._body(),
            **self._text_handlers(),
            **self._list_handlers(),
            **self._aside_handlers(),
            **self._table_handlers(),
            **self._page_handlers(),
            **dict.fromkeys(_NOT_READ, skipped),
        }

    def text(self, text: str) -> None:
        """Characters; those between paragraphs mean nothing."""
        if self._said is not None:
            self._said.append(text)
        elif self._paragraph is not None:
            text = _SPACES.sub(" ", text)
            if self._paragraph.ends_with_space:
                text = text.removeprefix(" ")
            if text:
                self._paragraph.ends_with_space = text.endswith(" ")
                self.flow.put(text)

    def _take(self, block: Block) -> None:
        if self._shapes:
            self._shapes[-1].blocks.append(block)
        elif self._shapes is None:
            self._sink(block)

    def _saying(self, use: Callable[[str], None]) -> Closer:
        """Text until the returned function is called is no text of the document; it goes to `use`."""
        around, said = self._said, list[str]()
        self._said = said

        def end() -> None:
            self._said = around
            use(" ".join("".join(said).split()))

        return end

    # Paragraphs

    def _text_handlers(self) -> dict[str, Handler]:
        return {
            "p": self._begin_paragraph,
            "h": self._begin_heading,
            "span": self._begin_span,
            "section": self._begin_section,
            "s": self._put_spaces,
            "tab": lambda _: self._put("\t"),
            "line-break": lambda _: self._put("\n"),
            "hidden-text": self._begin_hidden_text,
            "placeholder": skipped,
            "hidden-paragraph": self._hide_paragraph,
            "ruby-text": self._begin_reading,
        }

    def _put(self, text: str) -> None:
        if self._paragraph is not None:
            self._paragraph.ends_with_space = text == "\n"
            self.flow.put(text)

    def _put_spaces(self, attributes: Attributes) -> None:
        self._put(" " * min(integer(attributes, "c", 1), _MAX_SPACES))

    def _begin_paragraph(self, attributes: Attributes) -> Closer:
        style = attributes.get("style-name", "")
        if self._styles.is_hidden("paragraph", style):
            return skip
        level = 1 if self._styles.is_title(style) else 0
        return self._begin_text(_Paragraph(level, self._take_label()))

    def _begin_heading(self, attributes: Attributes) -> Closer:
        if self._styles.is_hidden("paragraph", attributes.get("style-name", "")):
            return skip
        level = min(max(1, integer(attributes, "outline-level", 1)), MAX_LEVEL)
        label = self._take_label()
        outline = self._styles.outline
        if not label and level in outline and attributes.get("is-list-header") != "true":
            _count(self._outline, level, outline[level].start)
            label = item_label(outline, self._outline, level)
        return self._begin_text(_Paragraph(level, label))

    def _begin_text(self, paragraph: _Paragraph) -> Closer:
        around, self._paragraph = self._paragraph, paragraph

        def end() -> None:
            if paragraph.hidden:
                self.flow.take(0)
            tight = bool(self._shapes and self._shapes[-1].blocks)
            self.flow.end_paragraph(paragraph.level, paragraph.label, tight=tight)
            self._paragraph = around

        return end

    def _begin_span(self, attributes: Attributes) -> Closer | None:
        style = attributes.get("style-name", "")
        if self._styles.is_hidden("text", style):
            return skip
        if not self._styles.is_raised(style):
            return None
        mark = self.flow.mark()

        def end() -> None:
            self.flow.put(raised(self.flow.take(mark)))

        return end

    def _begin_section(self, attributes: Attributes) -> Closer | None:
        is_hidden = (
            attributes.get("display") == "none"
            or attributes.get("is-hidden") == "true"
            or self._styles.is_hidden("section", attributes.get("style-name", ""))
        )
        return skip if is_hidden else None

    def _begin_hidden_text(self, attributes: Attributes) -> Closer | None:
        return skip if attributes.get("is-hidden") == "true" else None

    def _hide_paragraph(self, attributes: Attributes) -> None:
        if self._paragraph is not None and attributes.get("is-hidden") == "true":
            self._paragraph.hidden = True

    def _begin_reading(self, _: Attributes) -> Closer:
        mark = self.flow.mark()

        def end() -> None:
            reading = self.flow.take(mark).strip()
            if reading:
                self.flow.put(f"({reading})")

        return end

    # Lists

    def _list_handlers(self) -> dict[str, Handler]:
        return {
            "list": self._begin_list,
            "list-item": self._begin_item,
            "list-header": self._begin_list_header,
        }

    def _begin_list(self, attributes: Attributes) -> Closer:
        level = self._items[-1].level + 1 if self._items else 1
        style = attributes.get("style-name", self._items[-1].style if self._items else "")
        self._items.append(_ListItem(style, min(level, MAX_LEVEL)))
        goes_on = attributes.get("continue-numbering") == "true" or "continue-list" in attributes
        if level == 1 and not goes_on:
            self._counters[style] = {}

        def end() -> None:
            self._items.pop()

        return end

    def _begin_item(self, attributes: Attributes) -> None:
        if not self._items:
            return
        item = self._items[-1]
        levels = self._styles.list_levels(item.style)
        counters = self._counters.setdefault(item.style, {})
        start = levels[item.level].start if item.level in levels else 1
        if attributes.get("start-value", "").isdecimal():
            counters.pop(item.level, None)
            start = integer(attributes, "start-value", 1)
        _count(counters, item.level, start)
        item.label = item_label(levels, counters, item.level)

    def _begin_list_header(self, _: Attributes) -> None:
        if self._items:
            self._items[-1].label = ""

    def _take_label(self) -> str:
        """What stands before the next paragraph: only the first one of an item has its number."""
        if not self._items:
            return ""
        label, self._items[-1].label = self._items[-1].label, ""
        return label

    # Notes, comments, frames

    def _aside_handlers(self) -> dict[str, Handler]:
        return {
            "note": self._begin_note,
            "note-citation": lambda _: self._saying(self._set_mark),
            "annotation": self._begin_comment,
            "creator": self._begin_author,
            **dict.fromkeys(("date", "date-string", "creator-initials"), self._begin_data),
            **dict.fromkeys(("title", "desc"), self._begin_description),
            **dict.fromkeys(_SHAPES, self._begin_shape),
            "image": self._set_picture,
            "object": self._put_object,
        }

    def _begin_aside(self) -> Callable[[], list[Block]]:
        """What follows is anchored here; the returned function ends it and returns its blocks."""
        around, items = self._paragraph, self._items
        self._paragraph, self._items = None, []
        self.flow.begin_aside()

        def end() -> list[Block]:
            self._paragraph, self._items = around, items
            return self.flow.take_aside()

        return end

    def _begin_note(self, _: Attributes) -> Closer:
        around, self._mark = self._mark, ""
        end_aside = self._begin_aside()

        def end() -> None:
            blocks, mark = end_aside(), f"[^{self._mark}]"
            self._put(mark)
            if blocks:
                first = blocks[0]._replace(text=f"{mark}: {blocks[0].text}")
                self.flow.add_aside([first, *blocks[1:]])
            self._mark = around

        return end

    def _set_mark(self, text: str) -> None:
        self._mark = text

    def _begin_comment(self, _: Attributes) -> Closer:
        around, self._author = self._author, ""
        end_aside = self._begin_aside()

        def end() -> None:
            comment = comment_block(self._author, end_aside())
            self._author = around
            if self._shapes is not None and self._paragraph is None:
                self._shapes.append(Shape("comment", [comment]))
            else:
                self.flow.add_aside([comment])

        return end

    def _begin_author(self, _: Attributes) -> Closer | None:
        # Inside of a paragraph these names are fields, which show their text.
        return self._saying(self._set_author) if self._paragraph is None else None

    def _set_author(self, text: str) -> None:
        self._author = text

    def _begin_data(self, _: Attributes) -> Closer | None:
        return skip if self._paragraph is None else None

    def _begin_description(self, _: Attributes) -> Closer | None:
        if self._paragraph is not None or not self._frames:
            return None
        return self._saying(self._frames[-1].description.append)

    def _begin_shape(self, attributes: Attributes) -> Closer:
        purpose = attributes.get("class", "")
        is_empty = attributes.get("placeholder") == "true" or attributes.get("display") == "none"
        if is_empty or (self._in_notes and purpose != "notes"):
            return skip
        frame = _Frame()
        self._frames.append(frame)
        is_own = self._shapes is not None and self._paragraph is None and len(self._frames) == 1
        if is_own and self._shapes is not None:
            self._shapes.append(Shape(purpose))
        end_aside = None if is_own else self._begin_aside()

        def end() -> None:
            self._frames.pop()
            if end_aside is not None:
                self.flow.add_aside(end_aside())
            if frame.is_picture:
                self.flow.put(picture_text(" ".join(frame.description)))
            if end_aside is None:
                self.flow.finish()

        return end

    def _set_picture(self, _: Attributes) -> None:
        if self._frames:
            self._frames[-1].is_picture = True

    def _put_object(self, attributes: Attributes) -> Closer:
        """An equation, or what is written in an embedded chart, table or text."""
        folder = normpath(attributes.get("href", ""))
        if self._folder:
            return skip  # an object of an object
        if folder not in self._objects:
            self._objects[folder] = self._read_object(folder)
        equation, blocks = self._objects[folder]
        self.flow.put(equation)
        self.flow.add_aside(blocks)
        return skip

    def _read_object(self, folder: str) -> tuple[str, list[Block]]:
        data = self._archive.read_if_there(f"{folder}/content.xml")
        equation = mathml_text(data)
        if equation or not data:
            return equation, []
        blocks: list[Block] = []
        styles = OpenDocumentStyles()
        reader = OpenDocumentReader(
            self._archive, styles, sink=blocks.append, page=lambda _, __: None, folder=folder
        )
        reader.read(data)
        reader.flow.finish()
        return "", blocks

    # Tables

    def _table_handlers(self) -> dict[str, Handler]:
        return {
            "table": self._begin_table,
            "table-row": self._begin_row,
            "table-header-rows": self._begin_header_rows,
            "table-cell": self._begin_cell,
            "covered-table-cell": self._cover,
        }

    def _begin_table(self, _: Attributes) -> Closer:
        around, self._paragraph = self._paragraph, None
        self.flow.begin_table()

        def end() -> None:
            self.flow.end_table()
            self._paragraph = around

        return end

    def _begin_header_rows(self, _: Attributes) -> Closer:
        self._in_header_rows = True

        def end() -> None:
            self._in_header_rows = False

        return end

    def _begin_row(self, attributes: Attributes) -> Closer:
        if attributes.get("visibility", "visible") != "visible":
            return skip
        self._spanned = 0
        names_columns = self._in_header_rows
        self.flow.begin_row()
        return lambda: self.flow.end_row(names_columns=names_columns)

    def _begin_cell(self, attributes: Attributes) -> Closer:
        repeated = integer(attributes, "number-columns-repeated", 1)
        spanned = integer(attributes, "number-columns-spanned", 1) - 1
        end_items, self._items = self._items, []
        self.flow.begin_cell()

        def end() -> None:
            self.flow.end_cell(repeated=min(repeated, MAX_COLUMNS))
            self._items, self._spanned = end_items, spanned

        return end

    def _cover(self, attributes: Attributes) -> Closer:
        columns = integer(attributes, "number-columns-repeated", 1)
        own = min(columns, self._spanned)
        self._spanned -= own
        self.flow.cover(own, spanned=True)
        self.flow.cover(columns - own)
        return skip

    # Pages

    def _page_handlers(self) -> dict[str, Handler]:
        return {
            "page": self._begin_page,
            "master-page": self._begin_page,
            "notes": self._begin_notes,
            **{
                f"{kind}{which}": self._page_text(kind)
                for kind in ("header", "footer")
                for which in ("", "-left", "-first")
            },
            **dict.fromkeys(("header-decl", "footer-decl"), self._begin_declaration),
        }

    def _begin_page(self, attributes: Attributes) -> Closer:
        shapes: list[Shape] = []
        self._shapes = shapes

        def end() -> None:
            self._shapes = None
            for name in ("use-header-name", "use-footer-name"):
                text = self._declared.get(attributes.get(name, ""), "")
                if text:
                    shapes.append(Shape("footer", [Block(text)]))
            self._page(attributes, shapes)

        return end

    def _begin_notes(self, _: Attributes) -> Closer:
        self._in_notes = True

        def end() -> None:
            self._in_notes = False

        return end

    def _page_text(self, kind: str) -> Handler:
        """The header or footer of a master page; inside of a paragraph, the field that shows it."""

        def start(attributes: Attributes) -> Closer | None:
            if self._shapes is None or self._paragraph is not None:
                return None
            if attributes.get("display", "true") == "false":
                return skip
            self._shapes.append(Shape(f"page {kind}"))
            return self.flow.finish

        return start

    def _begin_declaration(self, attributes: Attributes) -> Closer:
        name = attributes.get("name", "")
        return self._saying(lambda text: self._declared.update({name: text}))


def _count(counters: dict[int, int], level: int, start: int) -> None:
    """Count an item or heading; those of deeper levels begin anew after it."""
    counters[level] = counters[level] + 1 if level in counters else start
    for deeper in [at for at in counters if at > level]:
        del counters[deeper]
