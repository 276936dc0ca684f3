"""`SlideReader`: a slide, its layout, its notes or its comments as blocks."""

import re
from dataclasses import dataclass, field

from engine.retrieval.parsing.attribute_values import integer, is_true
from engine.retrieval.parsing.drawing_reader import DrawingReader
from engine.retrieval.parsing.element_reader import Closer, skip, skipped
from engine.retrieval.parsing.list_numbers import list_number
from engine.retrieval.parsing.office_package import OfficePackage
from engine.retrieval.parsing.safe_xml import Attributes
from engine.retrieval.parsing.superscript import raised
from engine.retrieval.parsing.symbol_fonts import symbol, symbol_text
from engine.retrieval.parsing.text_flow import Block, picture_text

_NUMBER_FORM = re.compile(r"(arabic|alphaLc|alphaUc|romanLc|romanUc)(\w*)")
_FORMS = {
    "arabic": "decimal",
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
}
_PATTERNS = {"Period": "{}.", "ParenR": "{})", "ParenBoth": "({})", "Minus": "{}-"}


@dataclass(slots=True)
class Shape:
    """A shape with text.

    Attributes:
        placeholder: what it holds the place of: `title`, `body`, `ftr` and others; empty if it does not.
        blocks: its text.
    """

    placeholder: str = ""
    blocks: list[Block] = field(default_factory=list)
    hidden: bool = False
    description: str = ""


class SlideReader(DrawingReader):
    """Reads one part.

    Attributes:
        shapes: those that are seen and have text, in the order in which they are drawn, which is also the
            order in which they are read aloud.
        hidden: the slide is left out of the show.
        shows_master: the shapes of its layout and master are drawn, too.
    """

    def __init__(self, package: OfficePackage, part: str) -> None:
        super().__init__(package, part, self._sink)
        self.shapes: list[Shape] = []
        self.hidden, self.shows_master = False, True
        self._shape = Shape()
        self._in_run = self._in_text = self._raised = False
        self._font = ""
        self._names_columns = False  # the next row does
        self._level, self._list = 0, ("", 1)
        self._counts: dict[int, tuple[str, int]] = {}
        self.handlers |= {
            "sld": self._begin_slide,
            "sldLayout": self._begin_slide,
            **dict.fromkeys(("sp", "graphicFrame", "cxnSp"), self._begin_shape),
            "pic": self._begin_picture,
            "grpSp": self._begin_group,
            "cNvPr": self._set_shape,
            "ph": self._set_placeholder,
            "p": self._begin_paragraph,
            "pPr": self._set_level,
            "buAutoNum": self._set_number,
            "r": self._begin_run,
            "fld": self._begin_field,
            "t": self._begin_text,
            "br": lambda _: self.flow.put("\n"),
            "rPr": self._set_run,
            "latin": self._set_font,
            "sym": self._set_font,
            "tbl": self._begin_table,
            "tr": self._begin_row,
            "tc": self._begin_cell,
            "tblPr": self._set_names_columns,
            **dict.fromkeys(("tcPr", "lstStyle", "endParaRPr", "extLst"), skipped),
        }

    def text(self, text: str) -> None:
        """Characters of a run."""
        if self._in_text:
            text = text.replace("\n", " ").replace("\v", "\n")
            one = text.strip()
            if self._font and len(one) == 1 and "\x80" <= one <= "\xff":
                # PowerPoint stores the arrow that it makes of `-->` as `à` in a font of signs.
                text = text.replace(one, symbol(ord(one), self._font))
            self.flow.put(symbol_text(text, self._font))

    def _sink(self, block: Block) -> None:
        self._shape.blocks.append(block)

    def _begin_slide(self, attributes: Attributes) -> None:
        self.hidden = not is_true(attributes, "show", default=True)
        self.shows_master = is_true(attributes, "showMasterSp", default=True)

    # Shapes

    def _begin_shape(self, _: Attributes) -> Closer:
        around, self._shape = self._shape, Shape()
        self._counts = {}

        def end() -> None:
            self.flow.finish()
            if self._shape.blocks and not self._shape.hidden:
                self.shapes.append(self._shape)
            self._shape = around

        return end

    def _begin_picture(self, attributes: Attributes) -> Closer:
        end_shape = self._begin_shape(attributes)

        def end() -> None:
            self.flow.put(picture_text(self._shape.description))
            end_shape()

        return end

    def _begin_group(self, _: Attributes) -> Closer:
        around, self._shape = self._shape, Shape()
        before = len(self.shapes)

        def end() -> None:
            if self._shape.hidden:
                del self.shapes[before:]
            self._shape = around

        return end

    def _set_shape(self, attributes: Attributes) -> None:
        self._shape.hidden = is_true(attributes, "hidden")
        self._shape.description = attributes.get("descr", "")

    def _set_placeholder(self, attributes: Attributes) -> None:
        self._shape.placeholder = attributes.get("type", "body")

    # Text

    def _begin_paragraph(self, _: Attributes) -> Closer:
        self._level, self._list = 0, ("", 1)

        def end() -> None:
            self.flow.end_paragraph(number=self._next_number(), tight=bool(self._shape.blocks))

        return end

    def _next_number(self) -> str:
        """What stands before the paragraph; a list ends with a paragraph that is not numbered."""
        form, start = self._list
        self._counts = {at: one for at, one in self._counts.items() if at <= self._level}
        if not form:
            self._counts.pop(self._level, None)
            return ""
        before, count = self._counts.get(self._level, ("", 0))
        count = count + 1 if before == form else start
        self._counts[self._level] = form, count
        match = _NUMBER_FORM.match(form)
        if match is None:
            return f"{count}."
        return _PATTERNS.get(match[2], "{}").format(list_number(count, _FORMS[match[1]]))

    def _set_level(self, attributes: Attributes) -> None:
        value = attributes.get("lvl", "0")
        self._level = int(value) if value in set("012345678") else 0

    def _set_number(self, attributes: Attributes) -> None:
        self._list = (
            attributes.get("type", "arabicPeriod"),
            integer(attributes, "startAt", 1),
        )

    def _begin_run(self, _: Attributes) -> Closer:
        self._in_run, self._font, self._raised = True, "", False
        mark = self.flow.mark()

        def end() -> None:
            if self._raised:
                self.flow.put(raised(self.flow.take(mark)))
            self._in_run, self._font, self._raised = False, "", False

        return end

    def _set_run(self, attributes: Attributes) -> None:
        self._raised = self._in_run and attributes.get("baseline", "0").strip("0%.").isdecimal()

    def _begin_field(self, attributes: Attributes) -> Closer:
        return skip if attributes.get("type") == "slidenum" else self._begin_run(attributes)

    def _begin_text(self, _: Attributes) -> Closer | None:
        self._in_text = True

        def end() -> None:
            self._in_text = False

        return end

    def _set_font(self, attributes: Attributes) -> None:
        font = attributes.get("typeface", "")
        if self._in_run and font.lower().startswith(("wingdings", "webdings", "symbol")):
            self._font = font

    # Tables

    def _begin_table(self, _: Attributes) -> Closer:
        self.flow.begin_table()
        return self.flow.end_table

    def _set_names_columns(self, attributes: Attributes) -> None:
        self._names_columns = is_true(attributes, "firstRow")

    def _begin_row(self, _: Attributes) -> Closer:
        names_columns, self._names_columns = self._names_columns, False
        self.flow.begin_row()
        return lambda: self.flow.end_row(names_columns=names_columns)

    def _begin_cell(self, attributes: Attributes) -> Closer:
        # Every column has an element; one that a merged cell covers is not seen.
        spanned = is_true(attributes, "hMerge")
        covered = spanned or is_true(attributes, "vMerge")
        self.flow.begin_cell()

        def end() -> None:
            self.flow.end_cell(keep=not covered)
            self.flow.cover(1 if covered else 0, spanned=spanned)

        return end
