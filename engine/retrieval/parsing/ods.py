"""`read_ods`: the sheets of an OpenDocument spreadsheet.

A cell holds its value and the text that was shown when it was saved. The text is read, as it has the number
format and the language of whoever saved it; dates and times are read by their value, in ISO 8601.
"""

import re
from typing import NamedTuple

from engine.retrieval.parsing.document_title import document_title
from engine.retrieval.parsing.number_format import general, number_of
from engine.retrieval.parsing.safe_xml import Attributes, read_xml
from engine.retrieval.parsing.safe_zip import SafeZip
from engine.retrieval.parsing.sheet import Merge, Sheet, add_notes, write_sheet
from engine.retrieval.parsing.sheet_comments import comment_line
from engine.retrieval.parsing.text_builder import TextBuilder

MEDIA_TYPE = "application/vnd.oasis.opendocument.spreadsheet"
_MAX_COLUMN = 16_383
_MAX_ROW = 1_048_575
_MAX_SPACES = 64
_TIME = re.compile(r"-?PT?(?:(\d+)D)?T?(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d+))?S)?")
_CELL_REFERENCE = re.compile(r"\[\.?([^\]]*)\]")


def is_ods(archive: SafeZip) -> bool:
    """Whether an OpenDocument file is a spreadsheet, or a template of one."""
    return archive.read_if_there("mimetype").decode("ascii", "replace").startswith(MEDIA_TYPE)


def read_ods(archive: SafeZip, builder: TextBuilder) -> None:
    """Sheets with their names as headings, rows as lines; comments and text boxes behind the rows."""
    reader = _ContentReader(builder)
    read_xml(archive.read("content.xml"), start=reader.start, end=reader.end, text=reader.text)
    add_notes(builder, reader.sheets, reader.hidden)
    builder.title = document_title(archive.read_if_there("meta.xml"))


class _Cell(NamedTuple):
    """A cell that is being read; see the attributes of the same names."""

    kind: str
    value: str
    formula: str
    currency: str
    repeated: int
    rows_spanned: int
    columns_spanned: int


class _ContentReader:
    """Events of the content to sheets."""

    def __init__(self, builder: TextBuilder) -> None:
        self.sheets: list[Sheet] = []
        self.hidden: list[str] = []
        self._builder = builder
        self._hidden_styles: set[str] = set()
        self._style = ""
        self._sheet: Sheet | None = None
        self._is_hidden = False
        self._row, self._column = 0, 0
        self._row_times = 1
        self._groups = 0
        self._nested = 0  # tables inside of cells
        self._cell: _Cell | None = None
        self._paragraphs: list[str] = []  # of the cell
        self._parts: list[str] | None = None  # of the paragraph
        self._skipped = 0  # depth inside of what is not read
        self._drawings = 0
        self._annotations = 0
        self._comment: list[str] = []
        self._author = ""

    def start(self, name: str, attributes: Attributes) -> None:
        """A start tag."""
        if self._skipped or name in ("tracked-changes", "ruby-text", "forms", "dde-links"):
            self._skipped += 1
            return
        match name:
            case "style":
                self._style = attributes.get("name", "")
            case "table-properties" if attributes.get("display") == "false":
                self._hidden_styles.add(self._style)
            case "table" if self._sheet is None:
                self._begin_sheet(attributes)
            case "table":
                self._nested += 1
            case "table-column":
                self._begin_column(attributes)
            case "table-row-group" | "table-column-group":
                self._groups += 1
            case "table-row" if self._is_outside:
                self._begin_row(attributes)
            case "table-cell" | "covered-table-cell" if self._is_outside:
                self._begin_cell(attributes)
            case "annotation":
                self._annotations += 1
                self._comment, self._author = [], ""
            case "shapes" | "frame" | "custom-shape" | "rect" | "ellipse" | "g" | "object" | "line":
                self._drawings += 1
            case "p" | "h" | "creator":
                self._parts = []
            case "s":
                spaces = attributes.get("c", "1")
                self.text(" " * min(int(spaces) if spaces.isdecimal() else 1, _MAX_SPACES))
            case "tab" | "line-break":
                self.text(" ")

    def end(self, name: str) -> None:
        """An end tag."""
        if self._skipped:
            self._skipped -= 1
            return
        match name:
            case "p" | "h" | "creator":
                self._end_text(name)
            case "annotation":
                self._annotations -= 1
                self._end_annotation()
            case "shapes" | "frame" | "custom-shape" | "rect" | "ellipse" | "g" | "object" | "line":
                self._drawings -= 1
            case "table-cell" | "covered-table-cell" if self._is_outside:
                self._end_cell()
            case "table-row" if self._is_outside:
                self._end_row()
            case "table-row-group" | "table-column-group":
                self._groups -= 1
            case "table" if self._nested:
                self._nested -= 1
            case "table":
                self._end_sheet()

    def text(self, text: str) -> None:
        """Characters."""
        if self._parts is not None and not self._skipped:
            self._parts.append(text)

    @property
    def _is_outside(self) -> bool:
        """Whether rows and cells are those of the sheet, and not of a table in a drawing or a cell."""
        return not (self._drawings or self._nested)

    def _begin_sheet(self, attributes: Attributes) -> None:
        self._sheet = Sheet(attributes.get("name", ""), self._builder.room)
        self._is_hidden = attributes.get("style-name", "") in self._hidden_styles
        self._row = self._column = self._groups = 0

    def _begin_column(self, attributes: Attributes) -> None:
        times = _times(attributes, "number-columns-repeated", _MAX_COLUMN + 1 - self._column)
        if self._sheet is not None and self._collapses(attributes):
            self._sheet.hidden_columns.append((self._column, self._column + times - 1))
        self._column = min(self._column + times, _MAX_COLUMN)

    def _begin_row(self, attributes: Attributes) -> None:
        self._column = 0
        self._row_times = _times(attributes, "number-rows-repeated", _MAX_ROW + 1 - self._row)
        if self._sheet is not None and self._collapses(attributes):
            self._sheet.hidden_rows.update(range(self._row, self._row + self._row_times))

    def _collapses(self, attributes: Attributes) -> bool:
        """Whether a row or column is hidden by hand; those of a collapsed group or a filter are read."""
        return attributes.get("visibility") == "collapse" and not self._groups

    def _begin_cell(self, attributes: Attributes) -> None:
        kind = attributes.get("value-type", "")
        value = (
            attributes.get(f"{kind}-value", "")
            if kind in ("date", "time", "boolean", "string")
            else ""
        )
        self._cell = _Cell(
            kind,
            value or attributes.get("value", ""),
            attributes.get("formula", ""),
            attributes.get("currency", ""),
            _times(attributes, "number-columns-repeated", _MAX_COLUMN + 1 - self._column),
            _times(attributes, "number-rows-spanned", _MAX_ROW + 1 - self._row),
            _times(attributes, "number-columns-spanned", _MAX_COLUMN + 1 - self._column),
        )
        self._paragraphs = []

    def _end_text(self, name: str) -> None:
        text = "".join(self._parts or [])
        self._parts = None
        if name == "creator":
            self._author = text
        elif self._annotations:
            self._comment.append(text)
        elif self._drawings:
            line = " ".join(text.split())
            if line and self._sheet is not None:
                self._sheet.remarks.append(line)
        elif self._cell is not None:
            self._paragraphs.append(text)

    def _end_annotation(self) -> None:
        text = " ".join(self._comment)
        if self._sheet is not None and text.strip():
            cell = f"{_letters(self._column)}{self._row + 1}"
            self._sheet.remarks.append(comment_line(cell, self._author, text))

    def _end_cell(self) -> None:
        cell, sheet, self._cell = self._cell, self._sheet, None
        if cell is None or sheet is None:
            return
        shown = _shown(cell, "\n".join(self._paragraphs))
        for column in range(self._column, self._column + cell.repeated):
            if shown:
                sheet.put(self._row, column, shown)
            elif cell.formula:
                sheet.put_formula(self._row, column, _plain_formula(cell.formula))
            else:
                break
        if cell.rows_spanned > 1 or cell.columns_spanned > 1:
            last = (self._row + cell.rows_spanned - 1, self._column + cell.columns_spanned - 1)
            sheet.merges.append(Merge(self._row, self._column, *last))
        self._column = min(self._column + cell.repeated, _MAX_COLUMN + 1)

    def _end_row(self) -> None:
        if self._sheet is not None:
            self._sheet.repeat_row(self._row, self._row_times - 1)
        self._row = min(self._row + self._row_times, _MAX_ROW)

    def _end_sheet(self) -> None:
        sheet, self._sheet = self._sheet, None
        if sheet is None:
            return
        if self._is_hidden:
            self.hidden.append(sheet.name)
        else:
            write_sheet(self._builder, sheet)
            self.sheets.append(sheet)


def _shown(cell: _Cell, text: str) -> str:
    """What a cell shows."""
    match cell.kind:
        case "date":
            return _shown_date(cell.value, text)
        case "time":
            return _shown_time(cell.value, text) or text
    if text.strip():
        return text
    if cell.kind == "boolean":
        return cell.value.upper()
    number = number_of(cell.value) if cell.kind in ("float", "percentage", "currency") else None
    if number is None:
        return cell.value
    if cell.kind == "percentage":
        return f"{general(number * 100)}%"
    return f"{general(number)} {cell.currency}".rstrip()


def _shown_date(value: str, text: str) -> str:
    """The date; with the time if one was shown. What was shown of it alone, a year or a weekday, stays."""
    if text.strip() and (not any(map(str.isdigit, text)) or re.fullmatch(r"\s*\d{4}\s*", text)):
        return text
    day, _, time = value.partition("T")
    if not time or not (":" in text or not text.strip()):
        return day
    return f"{day} {time[:5] if text.count(':') < 2 else time.partition('.')[0]}"


def _shown_time(value: str, text: str) -> str:
    match = _TIME.fullmatch(value)
    if match is None:
        return ""
    days, hours, minutes, seconds = (int(one or 0) for one in match.groups()[:4])
    shown = f"{24 * days + hours:02d}:{minutes:02d}"
    if text.count(":") > 1 or (seconds and not text.strip()):
        shown += f":{seconds:02d}"
    return f"-{shown}" if value.startswith("-") else shown


def _plain_formula(formula: str) -> str:
    """`of:=SUM([.B2:.B9])` as it is written in a cell, without the sign of equality."""
    prefix, equals, rest = formula.partition("=")
    if equals and (not prefix or prefix.rstrip(":").isalnum()):
        formula = rest
    return _CELL_REFERENCE.sub(lambda match: match[1].replace(":.", ":"), formula)


def _letters(column: int) -> str:
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def _times(attributes: Attributes, name: str, most: int) -> int:
    value = attributes.get(name, "1")
    return min(max(int(value), 1), max(most, 1)) if value.isdecimal() and len(value) < 10 else 1
