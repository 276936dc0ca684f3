"""`WordReader`: a part of a DOCX (its body, a page header, its notes or comments) as blocks.

It reads what a person sees in the finished document: insertions and moved text where they are now, results
of fields and not their codes, no deletions, no hidden text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.retrieval.parsing.attribute_values import integer
from engine.retrieval.parsing.drawing_reader import DrawingReader
from engine.retrieval.parsing.element_reader import Closer, Handler, skip, skipped
from engine.retrieval.parsing.list_numbers import list_number
from engine.retrieval.parsing.office_package import OfficePackage
from engine.retrieval.parsing.safe_xml import Attributes
from engine.retrieval.parsing.superscript import raised
from engine.retrieval.parsing.symbol_fonts import symbol, symbol_text
from engine.retrieval.parsing.text_flow import Block, comment_block, picture_text
from engine.retrieval.parsing.word_numbering import WordNumbering
from engine.retrieval.parsing.word_styles import WordStyles, is_on, outline_level

_NOT_READ = (
    *("rPrChange", "pPrChange", "tblPrChange", "tblGridChange", "trPrChange", "tcPrChange"),
    *("numberingChange", "sectPr", "tblPr", "tblPrEx", "tblGrid", "tabs", "sdtEndPr"),
    *("instrText", "delText", "delInstrText", "rubyPr", "smartTagPr", "customXmlPr"),
)
"""Properties whose names are also those of content, former properties, and deleted text."""


class Note(NamedTuple):
    """A footnote, endnote or comment.

    Attributes:
        author: of a comment.
        blocks: its text.
    """

    author: str
    blocks: list[Block]


@dataclass(frozen=True, slots=True)
class WordContext:
    """What the parts of a document share.

    Attributes:
        footnotes: by id; so are the others.
    """

    package: OfficePackage
    styles: WordStyles
    numbering: WordNumbering
    footnotes: Mapping[str, Note] = field(default_factory=dict)
    endnotes: Mapping[str, Note] = field(default_factory=dict)
    comments: Mapping[str, Note] = field(default_factory=dict)


@dataclass(slots=True)
class _Paragraph:
    """Properties of the paragraph that is being read.

    Attributes:
        level: of the heading that its own outline level makes it; None if it names none.
        list_id: of its own list; None if it names none.
        goes_on: its end is not seen: deleted, hidden, or that of a large first letter.
        is_run_in: it is a heading within the line of the next one.
    """

    style: str
    level: int | None = None
    list_id: str | None = None
    list_level: int | None = None
    goes_on: bool = False
    is_run_in: bool = False


@dataclass(slots=True)
class _Run:
    """Properties of the run that is being read."""

    style: str = ""
    hidden: bool | None = None
    font: str = ""
    raised: bool = False


@dataclass(slots=True)
class _Cell:
    """Properties of the cell that is being read."""

    columns: int = 1
    covered: bool = False
    removed: bool = False


@dataclass(slots=True)
class _Row:
    """Properties of the row that is being read."""

    after: int = 0
    removed: bool = False
    names_columns: bool = False


@dataclass(slots=True)
class _Form:
    """A field of a form that is being read: a box, or a list with its chosen entry."""

    checked: bool | None = None
    default: str = "0"
    chosen: str = ""
    entries: list[str] = field(default_factory=list)


class WordReader(DrawingReader):
    """Reads one part.

    Attributes:
        notes: footnotes, endnotes or comments of the part, by id.
        chunks: parts of other formats that are embedded as text (`w:altChunk`).
    """

    def __init__(self, context: WordContext, part: str, sink: Callable[[Block], None]) -> None:
        """Prepare.

        Args:
            context: what the parts share.
            part: that is read.
            sink: takes the blocks, but not those of notes.
        """
        super().__init__(context.package, part, self._sink)
        self._context, self._styles = context, context.styles
        self._body_sink = self._current_sink = sink
        self.notes: dict[str, Note] = {}
        self.chunks: list[str] = []
        self._paragraph = _Paragraph(self._styles.default)
        self._run = _Run()
        self._row, self._cell = _Row(), _Cell()
        self._form: _Form | None = None
        self._controls: list[
            bool
        ] = []  # of each content control around, whether nobody has filled it
        self._fields: list[bool] = []  # of each field around, whether its code is being read
        self._in_text = self._in_mark = self._in_row_properties = False
        self._numbers = {"footnote": 0, "endnote": 0}
        self._reading = ""
        self._description, self._drawing_hidden = "", False
        self.handlers |= self._paragraph_handlers()
        self.handlers |= self._run_handlers()
        self.handlers |= self._table_handlers()
        self.handlers |= self._drawing_handlers()
        self.handlers |= dict.fromkeys(_NOT_READ, skipped)

    def text(self, text: str) -> None:
        """Characters of a run."""
        if self._in_text and self._is_seen():
            self.flow.put(symbol_text(text.replace("\n", " "), self._run.font))

    def _sink(self, block: Block) -> None:
        self._current_sink(block)

    def _is_seen(self) -> bool:
        if True in self._fields or True in self._controls:
            return False
        if self._run.hidden is not None:
            return not self._run.hidden
        # Hidden text is a property that a style toggles: two styles that hide show.
        hidden = self._styles.hidden(self._paragraph.style)
        return hidden == (bool(self._run.style) and self._styles.hidden(self._run.style))

    def _put(self, text: str) -> None:
        if self._is_seen():
            self.flow.put(text)

    def _putting(self, text: str) -> Handler:
        return lambda _: self._put(text)

    # Paragraphs

    def _paragraph_handlers(self) -> dict[str, Handler]:
        return {
            "p": self._begin_paragraph,
            "pPr": self._begin_paragraph_properties,
            "pStyle": self._set_style,
            "outlineLvl": self._set_outline_level,
            "numId": self._set_list,
            "ilvl": self._set_list_level,
            "framePr": self._set_frame,
            "specVanish": self._set_run_in,
            "del": self._deletion,
            "moveFrom": self._deletion,
            "footnote": self._begin_note,
            "endnote": self._begin_note,
            "comment": self._begin_note,
            "altChunk": self._add_chunk,
        }

    def _begin_paragraph(self, _: Attributes) -> Closer:
        around, run = self._paragraph, self._run
        self._paragraph, self._run = _Paragraph(self._styles.default), _Run()
        before = len(self._fields)

        def end() -> None:
            self._end_paragraph()
            # A field whose code does not end here has none that can be told from text.
            self._fields[before:] = [one for one in self._fields[before:] if not one]
            self._paragraph, self._run = around, run

        return end

    def _end_paragraph(self) -> None:
        one = self._paragraph
        level = self._styles.level(one.style) if one.level is None else one.level
        if one.goes_on:
            if one.is_run_in and level:
                self.flow.end_heading_within(level)
            return
        list_id, list_level = self._styles.numbering(one.style)
        if one.list_id is not None:
            list_id, list_level = one.list_id, one.list_level or 0
        elif one.list_level is not None:
            list_level = one.list_level
        number = self._context.numbering.next(list_id, list_level, one.style) if list_id else ""
        self.flow.end_paragraph(level, number)

    def _begin_paragraph_properties(self, _: Attributes) -> Closer:
        self._in_mark = True

        def end() -> None:
            self._in_mark = False

        return end

    def _set_style(self, attributes: Attributes) -> None:
        self._paragraph.style = attributes.get("val", "")

    def _set_outline_level(self, attributes: Attributes) -> None:
        self._paragraph.level = outline_level(attributes)

    def _set_list(self, attributes: Attributes) -> None:
        self._paragraph.list_id = attributes.get("val", "")

    def _set_list_level(self, attributes: Attributes) -> None:
        value = attributes.get("val", "")
        self._paragraph.list_level = int(value) if value in set("012345678") else 0

    def _set_frame(self, attributes: Attributes) -> None:
        if attributes.get("dropCap", "none") != "none":
            self._paragraph.goes_on = True

    def _set_run_in(self, attributes: Attributes) -> None:
        self._paragraph.is_run_in = self._in_mark and is_on(attributes)

    def _deletion(self, _: Attributes) -> Closer | None:
        if self._in_row_properties:
            self._row.removed = True
        elif self._in_mark:
            self._paragraph.goes_on = True
        else:
            return skip
        return None

    def _begin_note(self, attributes: Attributes) -> Closer | None:
        if attributes.get("type", "normal") != "normal":
            return skip  # the line above the notes
        blocks: list[Block] = []
        self.notes[attributes.get("id", "")] = Note(attributes.get("author", ""), blocks)
        self._current_sink = blocks.append

        def end() -> None:
            self.flow.finish()
            self._current_sink = self._body_sink

        return end

    def _add_chunk(self, attributes: Attributes) -> None:
        part = self.package.target(self.part, attributes.get("id", ""))
        self.chunks.append(part)

    # Runs

    def _run_handlers(self) -> dict[str, Handler]:
        return {
            "r": self._begin_run,
            "rStyle": self._set_run_style,
            "rFonts": self._set_font,
            "vanish": self._set_hidden,
            "vertAlign": self._set_raised,
            "sdt": self._begin_control,
            "sdtPr": self._begin_control_properties,
            "showingPlcHdr": self._set_placeholder,
            "t": self._begin_text,
            "tab": self._putting("\t"),
            "ptab": self._putting("\t"),
            "br": self._putting("\n"),
            "cr": self._putting("\n"),
            "noBreakHyphen": self._putting("\N{NON-BREAKING HYPHEN}"),
            "sym": self._put_symbol,
            "ruby": self._begin_ruby,
            "rt": self._begin_reading,
            "fldChar": self._field_character,
            "ffData": self._begin_form,
            "checked": self._set_checked,
            "default": self._set_default,
            "result": self._set_chosen,
            "listEntry": self._add_entry,
            "checkBox": self._put_box,
            "ddList": self._put_entry,
            "footnoteReference": lambda attributes: self._refer("footnote", attributes),
            "endnoteReference": lambda attributes: self._refer("endnote", attributes),
            "commentReference": self._refer_to_comment,
        }

    def _begin_run(self, _: Attributes) -> Closer:
        around, self._run = self._run, _Run()
        mark = self.flow.mark()

        def end() -> None:
            if self._run.raised:
                self.flow.put(raised(self.flow.take(mark)))
            self._run = around

        return end

    def _set_raised(self, attributes: Attributes) -> None:
        if not self._in_mark:
            self._run.raised = attributes.get("val") == "superscript"

    def _begin_control(self, _: Attributes) -> Closer:
        self._controls.append(False)

        def end() -> None:
            self._controls.pop()

        return end

    def _begin_control_properties(self, _: Attributes) -> Closer:
        around, self._run = self._run, _Run()

        def end() -> None:
            self._run = around

        return end

    def _set_placeholder(self, attributes: Attributes) -> None:
        if self._controls:
            self._controls[-1] = is_on(attributes)

    def _set_run_style(self, attributes: Attributes) -> None:
        if not self._in_mark:
            self._run.style = attributes.get("val", "")

    def _set_font(self, attributes: Attributes) -> None:
        if not self._in_mark:
            self._run.font = attributes.get("ascii", attributes.get("hAnsi", ""))

    def _set_hidden(self, attributes: Attributes) -> None:
        if not self._in_mark:
            self._run.hidden = is_on(attributes)
        elif is_on(attributes):
            self._paragraph.goes_on = True

    def _begin_text(self, _: Attributes) -> Closer:
        self._in_text = True

        def end() -> None:
            self._in_text = False

        return end

    def _put_symbol(self, attributes: Attributes) -> None:
        try:
            code = int(attributes.get("char", ""), 16)
        except ValueError:
            return
        self._put(symbol(code, attributes.get("font", "")))

    def _begin_ruby(self, _: Attributes) -> Closer:
        before, self._reading = self._reading, ""

        def end() -> None:
            if self._reading:
                self.flow.put(f"({self._reading})")
            self._reading = before

        return end

    def _begin_reading(self, _: Attributes) -> Closer:
        mark = self.flow.mark()

        def end() -> None:
            self._reading = self.flow.take(mark).strip()

        return end

    def _field_character(self, attributes: Attributes) -> None:
        match attributes.get("fldCharType", ""):
            case "begin":
                self._fields.append(True)
            case "separate" if self._fields:
                self._fields[-1] = False
            case "end" if self._fields:
                self._fields.pop()

    def _begin_form(self, _: Attributes) -> Closer:
        self._form = _Form()

        def end() -> None:
            self._form = None

        return end

    def _set_checked(self, attributes: Attributes) -> None:
        if self._form is not None:
            self._form.checked = is_on(attributes)

    def _set_default(self, attributes: Attributes) -> None:
        if self._form is not None:
            self._form.default = attributes.get("val", "")

    def _set_chosen(self, attributes: Attributes) -> None:
        if self._form is not None:
            self._form.chosen = attributes.get("val", "")

    def _add_entry(self, attributes: Attributes) -> None:
        if self._form is not None:
            self._form.entries.append(attributes.get("val", ""))

    def _put_box(self, _: Attributes) -> Closer | None:
        form = self._form
        if form is None:
            return None

        def end() -> None:
            checked = is_on({"val": form.default}) if form.checked is None else form.checked
            self.flow.put("☒" if checked else "☐")

        return end

    def _put_entry(self, _: Attributes) -> Closer | None:
        form = self._form
        if form is None:
            return None

        def end() -> None:
            chosen = form.chosen or form.default
            index = int(chosen) if chosen.isdecimal() and len(chosen) < 6 else 0
            self.flow.put("".join(form.entries[index : index + 1]))

        return end

    def _refer(self, kind: str, attributes: Attributes) -> None:
        notes = self._context.footnotes if kind == "footnote" else self._context.endnotes
        note = notes.get(attributes.get("id", ""))
        if note is None or not self._is_seen():
            return
        self._numbers[kind] += 1
        form = "decimal" if kind == "footnote" else "lowerRoman"
        label = f"[^{list_number(self._numbers[kind], form)}]"
        self.flow.put(label)
        first, rest = note.blocks[:1], note.blocks[1:]
        self.flow.add_aside([*(one._replace(text=f"{label}: {one.text}") for one in first), *rest])

    def _refer_to_comment(self, attributes: Attributes) -> None:
        note = self._context.comments.get(attributes.get("id", ""))
        if note is not None:
            self.flow.add_aside([comment_block(note.author, note.blocks)])

    # Tables

    def _table_handlers(self) -> dict[str, Handler]:
        return {
            "tbl": self._begin_table,
            "tr": self._begin_row,
            "trPr": self._begin_row_properties,
            "hidden": self._set_row_hidden,
            "tblHeader": self._set_names_columns,
            "gridBefore": lambda attributes: self.flow.cover(integer(attributes, "val", 0)),
            "gridAfter": self._set_after,
            "tc": self._begin_cell,
            "gridSpan": self._set_columns,
            "vMerge": self._set_merged,
            "hMerge": self._set_merged,
            "cellDel": self._set_cell_removed,
        }

    def _begin_table(self, _: Attributes) -> Closer:
        self.flow.begin_table()
        return self.flow.end_table

    def _begin_row(self, _: Attributes) -> Closer:
        around, self._row = self._row, _Row()
        self.flow.begin_row()

        def end() -> None:
            self.flow.cover(self._row.after)
            one = self._row
            self.flow.end_row(keep=not one.removed, names_columns=one.names_columns)
            self._row = around

        return end

    def _begin_row_properties(self, _: Attributes) -> Closer:
        self._in_row_properties = True

        def end() -> None:
            self._in_row_properties = False

        return end

    def _set_row_hidden(self, attributes: Attributes) -> None:
        if self._in_row_properties:
            self._row.removed = self._row.removed or is_on(attributes)

    def _set_names_columns(self, attributes: Attributes) -> None:
        self._row.names_columns = is_on(attributes)

    def _set_after(self, attributes: Attributes) -> None:
        self._row.after = integer(attributes, "val", 0)

    def _begin_cell(self, _: Attributes) -> Closer:
        around, self._cell = self._cell, _Cell()
        self.flow.begin_cell()

        def end() -> None:
            one = self._cell
            if one.covered:
                # Its text, if it has any, is covered by the cell that reaches into it.
                self.flow.end_cell(keep=False)
                self.flow.cover(one.columns)
            else:
                self.flow.end_cell(keep=not one.removed)
                self.flow.cover(0 if one.removed else one.columns - 1, spanned=True)
            self._cell = around

        return end

    def _set_columns(self, attributes: Attributes) -> None:
        self._cell.columns = max(1, integer(attributes, "val", 0))

    def _set_merged(self, attributes: Attributes) -> None:
        self._cell.covered = attributes.get("val", "continue") == "continue"

    def _set_cell_removed(self, _: Attributes) -> None:
        self._cell.removed = True

    # Drawings

    def _drawing_handlers(self) -> dict[str, Handler]:
        return {
            "txbxContent": self._begin_box,
            "txBody": self._begin_box,
            "drawing": self._begin_drawing,
            "docPr": self._set_drawing,
            "graphic": lambda _: skip if self._drawing_hidden else None,
            "pic": self._put_picture,
            "imagedata": self._put_picture,
            "shape": self._begin_shape,
            "textpath": self._put_word_art,
        }

    def _begin_box(self, _: Attributes) -> Closer:
        if not self._is_seen():
            return skip
        around = self._in_text
        self._in_text = False
        self.flow.begin_aside()

        def end() -> None:
            self.flow.end_aside()
            self._in_text = around

        return end

    def _begin_drawing(self, _: Attributes) -> Closer:
        before = self._description, self._drawing_hidden
        self._description, self._drawing_hidden = "", not self._is_seen()

        def end() -> None:
            self._description, self._drawing_hidden = before

        return end

    def _set_drawing(self, attributes: Attributes) -> None:
        self._description = attributes.get("descr", "")
        self._drawing_hidden = self._drawing_hidden or is_on({"val": attributes.get("hidden", "0")})

    def _put_picture(self, _: Attributes) -> None:
        description, self._description = self._description, ""
        self._put(picture_text(description))

    def _begin_shape(self, attributes: Attributes) -> Closer:
        if "visibility:hidden" in attributes.get("style", "").replace(" ", ""):
            return skip
        before, self._description = self._description, attributes.get("alt", "")

        def end() -> None:
            self._description = before

        return end

    def _put_word_art(self, attributes: Attributes) -> None:
        if self._is_seen():
            self.flow.begin_aside()
            self.flow.put(attributes.get("string", ""))
            self.flow.end_aside()
