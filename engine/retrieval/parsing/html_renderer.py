"""`HtmlRenderer`: the text of an HTML tree as its reader sees it, in lines and paragraphs.

It walks the tree once, without recursion, whatever its depth. What needs its whole content first, a cell of a
table or a heading, is collected in a `Flow` of its own, up to `_MAX_COLLECTED` of them inside each other;
deeper ones are plain blocks, so that the work stays linear in the page.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.html_fields import field_text
from engine.retrieval.parsing.html_flow import Flow
from engine.retrieval.parsing.html_hidden import HiddenParts
from engine.retrieval.parsing.html_list import ListMarkers
from engine.retrieval.parsing.html_math import math_text
from engine.retrieval.parsing.html_ruby import ruby_text
from engine.retrieval.parsing.html_style import inline_style, is_tiny
from engine.retrieval.parsing.html_table import Cell, TableGrid
from engine.retrieval.parsing.html_tabs import Tabs
from engine.retrieval.parsing.html_tree import Element, elements, parse_html, text_of
from engine.retrieval.parsing.outline import MAX_TITLE
from engine.retrieval.parsing.superscript import raised
from engine.retrieval.parsing.text_builder import TextBuilder

_SKIPPED = frozenset(
    """applet area audio base canvas col colgroup datalist del embed frame frameset head link meta noembed
    noframes noscript object param rp script source style template title track video""".split()  # noqa: SIM905
)
"""Elements that show no text in a browser with scripts and media, and text that was deleted."""
_FALLBACKS = frozenset(["canvas", "frameset", "head", "noframes", "noscript", "object"])
"""What is read of a page that has no other text."""
_BLOCKS = frozenset(
    """address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure
    footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu ol optgroup option p
    plaintext pre section summary table tbody td tfoot th thead tr ul xmp""".split()  # noqa: SIM905
)
_LINES = frozenset("caption figcaption legend summary".split())  # noqa: SIM905
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_ROLES = {
    "table": "table",
    "grid": "table",
    "treegrid": "table",
    "row": "tr",
    "cell": "td",
    "gridcell": "td",
} | {
    "columnheader": "th",
    "rowheader": "th",
}
_DISPLAYS = {"table": "table", "table-row": "tr", "table-cell": "td"}
_PLAIN_ROLES = frozenset(["presentation", "none"])
_SVG_UNSEEN = frozenset(
    """clippath defs desc filter lineargradient marker mask metadata pattern radialgradient script style
    symbol title""".split()  # noqa: SIM905
)
_MAX_COLLECTED = 40
_MAX_PAGES = 3
_END_OF_TERM = tuple(".:;?!,…")

_Close = Callable[[], None]


class _Style(NamedTuple):
    """What an element passes on to its content.

    Attributes:
        preformatted: whether spaces and lines are kept.
        tiny: whether letters have no size.
        separate: whether each child stands apart, as in a row of boxes.
        drawing: whether text is drawn only where the element `text` of SVG says so.
        in_item: whether it is in an item of a list.
        depth: number of lists around it.
        markers: of the list around it.
        grid: the table around it, if it is not in one of its cells.
        section: of that table.
    """

    preformatted: bool = False
    tiny: bool = False
    separate: bool = False
    drawing: bool = False
    in_item: bool = False
    depth: int = 0
    markers: ListMarkers | None = None
    grid: TableGrid | None = None
    section: str = "tbody"


class _Frame:
    """An element of which the children before `at` have been rendered."""

    __slots__ = ("at", "children", "close", "style")

    def __init__(
        self, children: Sequence[Element | str], style: _Style, close: _Close | None = None
    ) -> None:
        self.children, self.style, self.close = children, style, close
        self.at = 0


class HtmlRenderer:
    """Renders trees into a builder."""

    def __init__(
        self,
        builder: TextBuilder,
        hidden: HiddenParts,
        tabs: Tabs,
        *,
        fallbacks: bool = False,
        link: Callable[[str], str] | None = None,
        pages: int = 1,
    ) -> None:
        """Prepare.

        Args:
            builder: what the text is added to.
            hidden: what of the page is hidden.
            tabs: of the page.
            fallbacks: whether to read what is meant for browsers without scripts or frames.
            link: what to write behind a link, by its address; nothing without it.
            pages: number of pages inside each other (`<iframe srcdoc>`), with this one.
        """
        self._flow = Flow(builder)
        self._hidden, self._tabs = hidden, tabs
        self._link, self._pages = link, pages
        self._skipped = _SKIPPED - _FALLBACKS if fallbacks else _SKIPPED
        self._outer: list[Flow] = []
        self._grids: list[TableGrid] = []
        self._lines = [False]  # whether what is being collected contains preformatted lines
        self._term = ""  # what separates the term of a definition from it, while only the term is on the line

    def render(self, roots: Sequence[Element | str]) -> None:
        """Add the text of elements.

        Raises:
            TextTooLong: the builder is full.
        """
        stack = [_Frame(roots, _Style())]
        while stack:
            frame = stack[-1]
            if frame.at == len(frame.children):
                stack.pop()
                if frame.close is not None:
                    frame.close()
                continue
            child = frame.children[frame.at]
            frame.at += 1
            if frame.style.separate:
                self._flow.space()
            if isinstance(child, str):
                self._text(child, frame.style)
            else:
                opened = self._open(child, frame)
                if opened is not None:
                    stack.append(opened)
        self._flow.paragraph()

    def _text(self, data: str, style: _Style) -> None:
        if style.tiny or style.drawing:
            return
        if self._term and data.strip():
            self._line()
        self._flow.text(data, preformatted=style.preformatted)
        if style.preformatted and "\n" in data.strip("\n"):
            self._lines[-1] = True

    def _line(self) -> None:
        self._flow.line()
        self._term = ""

    def _paragraph(self) -> None:
        self._flow.paragraph()
        self._term = ""

    def _open(self, element: Element, frame: _Frame) -> _Frame | None:
        """Begin an element; None if its whole text has been added."""
        name, attributes, style = element.name, element.attributes, frame.style
        if name in self._skipped:
            return None
        if style.separate:
            style = style._replace(separate=False)
        if self._hidden.hides(element, frame.children, frame.at - 1):
            return None
        declared = self._hidden.style_of(element)
        display = declared.get("display", "")
        if declared:
            style = _restyled(style, declared)
            if name in ("span", "font") and "line-through" in declared.get("text-decoration", ""):
                name = "s"
        role = attributes.get("role", "")
        if role == "tab" and self._tabs.is_moved(element):
            return None
        if role == "tabpanel" and (label := self._tabs.label_of(element)):
            self._paragraph()
            self._text(label, style)
            self._line()
        if role == "heading" and name not in _HEADINGS:
            level = attributes.get("aria-level", "")
            name = f"h{level}" if f"h{level}" in _HEADINGS else "h2"
        elif name not in ("table", "tr", "td", "th"):
            name = _ROLES.get(role) or _DISPLAYS.get(display) or name
        return self._open_as(name, element, style, display)

    def _open_as(self, name: str, element: Element, style: _Style, display: str) -> _Frame | None:
        if style.drawing:
            return self._open_drawing(name, element, style)
        if name in _HEADINGS:
            return self._open_heading(_HEADINGS[name], element, style)
        match name:
            case "table":
                return self._open_table(element, style)
            case "thead" | "tbody" | "tfoot" if style.grid is not None:
                return _Frame(element.children, style._replace(section=name))
            case "tr" | "caption" if style.grid is not None:
                return self._open_table_part(name, element, style, style.grid)
            case "td" | "th":
                return self._open_cell(name, element, style)
            case "ul" | "ol" | "menu" | "dir":
                return self._open_list(element, style)
            case "li":
                return self._open_item(element, style)
            case "dt" | "dd":
                return self._open_definition(name, element, style)
            case "svg" | "img" | "input" | "select" | "math" | "iframe" | "noframes" | "noscript":
                return self._open_replaced(name, element, style)
            case "textarea" | "listing" | "plaintext" | "pre" | "xmp":
                return self._open_block(name, element, style._replace(preformatted=True))
        if display in ("inline", "contents") or (
            name not in _BLOCKS
            and name not in _LINES
            and display in ("", "inline-block", "inline-flex")
        ):
            return self._open_inline(name, element, style, display)
        return self._open_block(name, element, style)

    def _open_block(self, name: str, element: Element, style: _Style) -> _Frame:
        tight = name in _LINES or (name == "div" and not _has_blocks(element))
        if tight or (style.in_item and name not in ("p", "pre", "blockquote")):
            self._line()
            return _Frame(element.children, style, self._line)
        self._paragraph()
        return _Frame(element.children, style, self._line if style.in_item else self._paragraph)

    def _open_inline(
        self, name: str, element: Element, style: _Style, display: str
    ) -> _Frame | None:
        flow = self._flow
        close: _Close | None = None
        match name:
            case "br":
                flow.break_line()
                return None
            case "button":
                if style.preformatted or not _says_something(element):
                    return None  # it copies the code around it, or is a sign
                flow.space()
                close = self._space
            case "a" if self._link is not None:
                target = self._link(element.attributes.get("href", ""))
                close = partial(self._add, f" <{target}>") if target else None
            case "q":
                self._text("“", style)
                close = partial(self._add, "”")
            case "s" | "strike" if text_of(element, 100).strip():
                self._text("~~", style)
                close = partial(self._add, "~~")
            case "sup":
                text = text_of(element, MAX_TITLE).strip()
                if text != (shown := raised(text)):
                    self._text(shown, style)
                    return None
            case "ruby":
                word = ruby_text(element)
                if word is not None:
                    self._text(word, style)
                    return None
            case "rt" | "rtc":
                self._text("(", style)
                close = partial(self._add, ")")
            case _ if display.startswith("inline-"):
                flow.space()
                close = self._space
        return _Frame(element.children, style, close)

    def _add(self, text: str) -> None:
        self._flow.text(text)

    def _space(self) -> None:
        self._flow.space()

    def _open_replaced(self, name: str, element: Element, style: _Style) -> _Frame | None:
        """Begin an element in whose place something else is shown than its content."""
        attributes = element.attributes
        match name:
            case "svg":
                inside = [one for _, one in zip(range(500), elements(element), strict=False)]
                if attributes.get("role") == "img" and not any(
                    one.name == "text" for one in inside
                ):
                    titles = (text_of(one, MAX_TITLE) for one in inside if one.name == "title")
                    self._text(f" {attributes.get('aria-label') or next(titles, '')} ", style)
                    return None
                return _Frame(element.children, style._replace(drawing=True))
            case "img":
                if not _is_pixel(attributes):
                    self._apart(attributes.get("alt", ""), style)
            case "math":
                self._apart(math_text(element), style)
            case "input" | "select":
                self._apart(field_text(element), style)
            case "iframe" | "noframes" | "noscript" if self._pages < _MAX_PAGES:
                markup = (
                    attributes.get("srcdoc", "") if name == "iframe" else text_of(element, 1 << 20)
                )
                if markup:
                    self._paragraph()
                    tree = parse_html(markup)
                    HtmlRenderer(
                        self._flow.builder,
                        HiddenParts(tree),
                        Tabs(tree),
                        link=self._link,
                        pages=self._pages + 1,
                    ).render([tree])
        return None

    def _apart(self, text: str, style: _Style) -> None:
        """Add a text that stands apart from its neighbours, unless it is one character, such as an emoji."""
        text = " ".join(text.split())
        if text and not style.tiny:
            self._text(text if len(text) == 1 else f" {text} ", style._replace(preformatted=False))

    def _open_drawing(self, name: str, element: Element, style: _Style) -> _Frame | None:
        if name in _SVG_UNSEEN:
            return None
        if name not in ("text", "foreignobject"):
            return _Frame(element.children, style)
        self._flow.space()
        return _Frame(element.children, style._replace(drawing=False), self._space)

    def _collect(self) -> None:
        """Begin to collect a text."""
        self._outer.append(self._flow)
        self._flow = Flow(TextBuilder(self._flow.builder.room))
        self._lines.append(False)
        self._term = ""

    def _collected(self) -> tuple[Extracted, bool]:
        """End it: the text, and whether it has preformatted lines."""
        found = self._flow.builder.extracted()
        self._flow = self._outer.pop()
        lines = self._lines.pop()
        self._lines[-1] |= lines
        self._term = ""
        return found, lines

    @property
    def _may_collect(self) -> bool:
        return len(self._outer) < _MAX_COLLECTED

    def _open_heading(self, level: int, element: Element, style: _Style) -> _Frame:
        if not self._may_collect:
            return self._open_block("p", element, style)
        self._collect()
        return _Frame(element.children, style, partial(self._close_heading, level))

    def _close_heading(self, level: int) -> None:
        found, _ = self._collected()
        title = " ".join(found.text.split())
        if len(title) <= MAX_TITLE and "\n\n" not in found.text.strip():
            if title:
                self._flow.heading(level, title)
            return
        # The end tag is missing, and the rest of the page is inside.
        first = found.text.strip().partition("\n")[0]
        self._flow.heading(level, first[:MAX_TITLE])
        rest = found.text.lstrip()[len(first[:MAX_TITLE]) :]
        self._flow.append(Extracted(rest))

    def _open_table(self, element: Element, style: _Style) -> _Frame:
        if not self._may_collect:
            return self._open_block("div", element, style._replace(grid=None))
        grid = TableGrid(presentation=element.attributes.get("role") in _PLAIN_ROLES)
        if self._grids:
            self._grids[-1].nested = True
        self._grids.append(grid)
        self._paragraph()
        return _Frame(element.children, style._replace(grid=grid), self._close_table)

    def _close_table(self) -> None:
        self._grids.pop().write(self._flow)
        self._term = ""

    def _open_table_part(
        self, name: str, element: Element, style: _Style, grid: TableGrid
    ) -> _Frame:
        if name == "tr":
            grid.begin_row(style.section)
            return _Frame(element.children, style)
        self._collect()
        return _Frame(
            element.children, style._replace(grid=None), partial(self._close_caption, grid)
        )

    def _close_caption(self, grid: TableGrid) -> None:
        grid.caption = self._collected()[0]

    def _open_cell(self, name: str, element: Element, style: _Style) -> _Frame:
        grid = style.grid
        if grid is None:
            self._flow.space()
            return _Frame(element.children, style, self._space)
        self._collect()
        inside = _Style(tiny=style.tiny)
        return _Frame(element.children, inside, partial(self._close_cell, name, element, grid))

    def _close_cell(self, name: str, element: Element, grid: TableGrid) -> None:
        content, lines = self._collected()
        columns = max(1, _number(element.attributes.get("colspan", ""), 1))
        rows = _number(element.attributes.get("rowspan", ""), 1)
        grid.add(Cell(content, name == "th", columns, rows, lines))

    def _open_list(self, element: Element, style: _Style) -> _Frame:
        begin = self._line if style.in_item else self._paragraph
        begin()
        markers = ListMarkers(element, style.depth)
        return _Frame(
            element.children, style._replace(markers=markers, depth=style.depth + 1), begin
        )

    def _open_item(self, element: Element, style: _Style) -> _Frame:
        marker = style.markers.next(element) if style.markers is not None else "- "
        self._line()
        self._flow.begin_item(marker)
        return _Frame(element.children, style._replace(in_item=True), self._close_item)

    def _close_item(self) -> None:
        self._flow.end_item()
        self._term = ""

    def _open_definition(self, name: str, element: Element, style: _Style) -> _Frame:
        if name == "dt":
            self._line()
            if "id" in element.attributes:
                self._flow.builder.mark_break()
            return _Frame(element.children, style, partial(self._close_term, element))
        if self._term and not _has_blocks(element):
            separator, self._term = self._term, ""
            self._flow.text(separator)
        else:
            self._line()
        return _Frame(element.children, style, self._line)

    def _close_term(self, element: Element) -> None:
        text = text_of(element, MAX_TITLE).rstrip()
        if text and len(text) < MAX_TITLE and not _has_blocks(element):
            self._term = " " if text.endswith(_END_OF_TERM) else ": "
        else:
            self._line()


def _restyled(style: _Style, declared: Mapping[str, str]) -> _Style:
    changes: dict[str, bool] = {}
    if declared.get("display", "") in ("flex", "grid", "inline-flex", "inline-grid"):
        changes["separate"] = True
    space = declared.get("white-space", "")
    if space in ("pre", "pre-wrap", "pre-line", "break-spaces", "normal", "nowrap"):
        changes["preformatted"] = space not in ("normal", "nowrap")
    if "font-size" in declared:
        changes["tiny"] = is_tiny(declared["font-size"], 1)
    return style._replace(**changes) if changes else style  # type: ignore[arg-type]


def _has_blocks(element: Element) -> bool:
    return any(isinstance(one, Element) and one.name in _BLOCKS for one in element.children)


def _says_something(button: Element) -> bool:
    if any(character.isalnum() for character in text_of(button, 200)):
        return True
    first = (one for _, one in zip(range(20), elements(button), strict=False))
    return any(one.name in ("img", "svg", "math") for one in first)


def _is_pixel(attributes: Mapping[str, str]) -> bool:
    """Whether an image is too small to be seen: it reports that the page was opened."""
    return any(
        is_tiny(
            attributes.get(side, "") or inline_style(attributes.get("style", "")).get(side, ""), 1
        )
        for side in ("width", "height")
    )


def _number(value: str, default: int) -> int:
    value = value.strip()
    return min(int(value[:9]), 65_534) if value[:9].isdecimal() and value.isascii() else default
