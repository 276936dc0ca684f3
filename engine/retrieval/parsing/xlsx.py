"""`read_xlsx`: the sheets of an Office Open XML workbook, each value as the sheet shows it.

A formula is shown by its stored value. One that was never calculated has none: programs that write workbooks
leave it out, or write 0 and ask for a calculation when the file is opened.
"""

import re
from decimal import Decimal
from itertools import count
from typing import NamedTuple

from engine.retrieval.parsing.attribute_values import is_true
from engine.retrieval.parsing.excel_dates import serial_of
from engine.retrieval.parsing.number_format import NumberFormat, number_format, number_of
from engine.retrieval.parsing.office_package import OfficePackage
from engine.retrieval.parsing.safe_xml import Attributes, read_xml
from engine.retrieval.parsing.safe_zip import SafeZip
from engine.retrieval.parsing.sheet import Merge, Sheet, add_notes, write_sheet
from engine.retrieval.parsing.sheet_comments import read_comments
from engine.retrieval.parsing.sheet_drawing import read_text_boxes
from engine.retrieval.parsing.standard_formats import STANDARD_FORMATS
from engine.retrieval.parsing.superscript import raised
from engine.retrieval.parsing.text_builder import TextBuilder

MAIN_PART = "xl/workbook.xml"
_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_MAX_COLUMN = 16_383
_MAX_ROW = 1_048_575
_MAX_RANGES = 100_000
"""Merged cells and runs of hidden columns of a sheet that are looked at."""


class Workbook(NamedTuple):
    """What applies to all sheets of a workbook.

    Attributes:
        sheets: name, relation and state of each.
        from_1904: whether dates count from 1904.
        calculates: whether formulas are calculated when it is opened, so that stored values may be none.
    """

    sheets: list[tuple[str, str, str]]
    from_1904: bool
    calculates: bool


def read_xlsx(archive: SafeZip, builder: TextBuilder) -> None:
    """Sheets with their names as headings, rows as lines; comments and text boxes behind the rows."""
    package = OfficePackage(archive)
    part = package.main_part(MAIN_PART)
    workbook = _workbook(archive.read(part))
    formats = _formats(package.read(package.related(part, "styles", "xl/styles.xml")))
    strings = package.related(part, "sharedStrings", "xl/sharedStrings.xml")
    shared = _shared_strings(package.read(strings))
    sheets: list[Sheet] = []
    hidden: list[str] = []
    for name, relation, state in workbook.sheets:
        target = package.target(part, relation)
        if not target:
            continue
        if state != "visible":
            hidden.append(" ".join(name.split()))
            continue
        sheet = Sheet(name, builder.room)
        reader = _SheetReader(sheet, workbook, formats, shared)
        read_xml(archive.read(target), start=reader.start, end=reader.end, text=reader.text)
        reader.finish(filtered=_has_filtered_table(package, target))
        sheet.remarks += read_comments(package, target, part)
        sheet.remarks += read_text_boxes(package, target)
        write_sheet(builder, sheet)
        sheets.append(sheet)
    add_notes(builder, sheets, hidden)
    builder.title = package.title()


class _SheetReader:
    """Events of a sheet's part to cells."""

    def __init__(
        self, sheet: Sheet, workbook: Workbook, formats: list[NumberFormat], shared: list[str]
    ) -> None:
        self._sheet, self._workbook = sheet, workbook
        self._formats, self._shared = formats, shared
        self._row, self._column = -1, -1
        self._kind, self._format = "n", formats[0]
        self._parts: list[str] | None = None  # of the element whose text is being read
        self._value: str | None = None
        self._formula: str | None = None
        self._phonetic = self._above = False
        self._hides_zeros = False
        self._hidden_rows: set[int] = set()
        self._filtered = False

    def start(self, name: str, attributes: Attributes) -> None:
        """A start tag."""
        match name:
            case "c":
                self._begin_cell(attributes)
            case "v" | "f":
                self._parts = []
            case "t":
                self._parts = None if self._phonetic else []
            case "rPh":
                self._phonetic = True
            case "r":
                self._above = False
            case "vertAlign":
                self._above = attributes.get("val") == "superscript"
            case "sheetView":
                self._hides_zeros = not is_true(attributes, "showZeros", default=True)
            case "row":
                self._begin_row(attributes)
            case "col":
                self._hide_columns(attributes)
            case "mergeCell":
                merge = _range(attributes.get("ref", ""))
                if merge is not None and len(self._sheet.merges) < _MAX_RANGES:
                    self._sheet.merges.append(merge)
            case "filterColumn":
                self._filtered = True

    def end(self, name: str) -> None:
        """An end tag."""
        match name:
            case "v":
                self._value = self._taken()
            case "t" if self._parts is not None:  # of one run of an inline text
                text = self._taken()
                self._value = (self._value or "") + (raised(text) if self._above else text)
            case "f":
                self._formula = self._taken()
            case "rPh":
                self._phonetic = False
            case "c":
                self._end_cell()

    def text(self, text: str) -> None:
        """Characters."""
        if self._parts is not None:
            self._parts.append(text)

    def finish(self, *, filtered: bool) -> None:
        """Decide about hidden rows: those that a filter hides are read.

        Args:
            filtered: whether a table of the sheet has a filter.
        """
        if not (filtered or self._filtered):
            self._sheet.hidden_rows |= self._hidden_rows

    def _taken(self) -> str:
        parts, self._parts = self._parts or [], None
        return "".join(parts)

    def _begin_row(self, attributes: Attributes) -> None:
        number = attributes.get("r", "")
        self._row = (
            min(int(number) - 1, _MAX_ROW)
            if number.isdecimal() and number != "0"
            else self._row + 1
        )
        self._column = -1
        no_height = (
            is_true(attributes, "customHeight") and number_of(attributes.get("ht", "1")) == 0
        )
        if (is_true(attributes, "hidden") or no_height) and not _is_grouped(attributes):
            self._hidden_rows.add(self._row)

    def _hide_columns(self, attributes: Attributes) -> None:
        first, last = attributes.get("min", ""), attributes.get("max", "")
        no_width = number_of(attributes.get("width", "1")) == 0
        if not (is_true(attributes, "hidden") or no_width) or _is_grouped(attributes):
            return
        if first.isdecimal() and last.isdecimal() and len(self._sheet.hidden_columns) < _MAX_RANGES:
            self._sheet.hidden_columns.append((int(first) - 1, int(last) - 1))

    def _begin_cell(self, attributes: Attributes) -> None:
        place = _REFERENCE.fullmatch(attributes.get("r", ""))
        self._column = _column(place[1]) if place else self._column + 1
        if place:
            self._row = min(max(int(place[2]) - 1, 0), _MAX_ROW)
        self._kind = attributes.get("t", "n")
        style = attributes.get("s", "0")
        index = int(style) if style.isdecimal() and len(style) < 7 else 0
        self._format = self._formats[index if index < len(self._formats) else 0]
        self._value = self._formula = None

    def _end_cell(self) -> None:
        if self._column > _MAX_COLUMN:
            return
        value, formula = self._value, self._formula
        uncalculated = formula is not None and (
            (not value and self._kind != "str")
            or (value == "0" and self._kind == "n" and self._workbook.calculates)
        )
        if uncalculated:
            plain = _unescaped(formula or "").replace("_xlfn.", "").replace("_xlws.", "")
            self._sheet.put_formula(self._row, self._column, plain)
        elif value:
            self._sheet.put(self._row, self._column, self._shown(value))

    def _shown(self, value: str) -> str:
        match self._kind:
            case "s":
                index = int(value) if value.strip().isdecimal() and len(value) < 10 else -1
                text = self._shared[index] if 0 <= index < len(self._shared) else ""
                return self._format.text(text)
            case "str" | "inlineStr":
                return self._format.text(_unescaped(value))
            case "b":
                return "TRUE" if value.strip() in ("1", "true") else "FALSE"
            case "e":
                return value
            case "d":
                return self._shown_iso(value)
        number = number_of(value)
        return value if number is None else self._shown_number(number)

    def _shown_number(self, number: Decimal) -> str:
        if self._hides_zeros and not number:
            return ""
        return self._format.number(number, from_1904=self._workbook.from_1904)

    def _shown_iso(self, value: str) -> str:
        serial = serial_of(value)
        if serial is None or not self._format.is_date:
            return value.strip().removesuffix("Z").removesuffix("T00:00:00").replace("T", " ")
        return self._format.number(serial)


def _is_grouped(attributes: Attributes) -> bool:
    """Whether a row or column belongs to a group, which its reader opens by a click."""
    return attributes.get("outlineLevel", "0") not in ("", "0")


def _column(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - 64
    return number - 1


def _range(reference: str) -> Merge | None:
    first, _, last = reference.partition(":")
    one, other = _REFERENCE.fullmatch(first), _REFERENCE.fullmatch(last)
    if one is None or other is None:
        return None
    return Merge(int(one[2]) - 1, _column(one[1]), int(other[2]) - 1, _column(other[1]))


def _unescaped(text: str) -> str:
    """A text without the spelling of characters that XML cannot hold."""
    return _ESCAPED.sub(_character, text) if "_x" in text else text


def _character(match: re.Match[str]) -> str:
    found = chr(int(match[1], 16))
    return found if found.isprintable() else " "


def _workbook(data: bytes) -> Workbook:
    sheets: list[tuple[str, str, str]] = []
    found: dict[str, bool] = {}

    def start(name: str, attributes: Attributes) -> None:
        match name:
            case "sheet":
                state = attributes.get("state", "visible")
                sheets.append((attributes.get("name", ""), attributes.get("id", ""), state))
            case "workbookPr":
                found["from_1904"] = is_true(attributes, "date1904")
            case "calcPr":
                found["calculates"] = is_true(attributes, "fullCalcOnLoad")

    read_xml(data, start=start)
    return Workbook(sheets, found.get("from_1904", False), found.get("calculates", False))


def _formats(data: bytes) -> list[NumberFormat]:
    """The number format of each style of cells; at least one."""
    codes: dict[str, str] = {}
    styles: list[str] = []
    inside = ""

    def start(name: str, attributes: Attributes) -> None:
        nonlocal inside
        if name in ("numFmts", "cellXfs"):
            inside = name
        elif name == "numFmt" and inside == "numFmts":
            codes[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
        elif name == "xf" and inside == "cellXfs":
            styles.append(attributes.get("numFmtId", "0"))

    def end(name: str) -> None:
        nonlocal inside
        if name == inside:
            inside = ""

    if data:
        read_xml(data, start=start, end=end)
    return [
        number_format(codes[one] if one in codes else STANDARD_FORMATS.get(one, "General"))
        for one in styles or ["0"]
    ]


def _shared_strings(data: bytes) -> list[str]:
    """Texts of cells, each of one run or several; how it is pronounced is no part of it."""
    strings: list[str] = []
    parts: list[str] = []
    in_text = phonetic = above = False
    begin = 0

    def start(name: str, attributes: Attributes) -> None:
        nonlocal parts, in_text, phonetic, above, begin
        if name == "si":
            parts, above = [], False
        elif name == "r":
            above = False
        elif name == "vertAlign":
            above = attributes.get("val") == "superscript"
        elif name == "rPh":
            phonetic = True
        in_text, begin = name == "t" and not phonetic, len(parts)

    def end(name: str) -> None:
        nonlocal in_text, phonetic
        if in_text and above:
            parts[begin:] = [raised("".join(parts[begin:]))]
        in_text = False
        if name == "rPh":
            phonetic = False
        elif name == "si":
            strings.append(_unescaped("".join(parts)))

    def text(text: str) -> None:
        if in_text:
            parts.append(text)

    if data:
        read_xml(data, start=start, end=end, text=text)
    return strings


def _has_filtered_table(package: OfficePackage, part: str) -> bool:
    """Whether a table of a sheet has a filter that hides rows."""
    found = count()

    def start(name: str, attributes: Attributes) -> None:
        if name == "filterColumn":
            next(found)

    for table in package.all_related(part, "table"):
        read_xml(package.read(table), start=start)
    return next(found) > 0
