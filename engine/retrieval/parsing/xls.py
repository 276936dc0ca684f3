"""`extract_xls`: the sheets of a workbook of Excel 97 to 2003 (BIFF), by xlrd."""

import io
from typing import Any

import xlrd

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.number_format import number_format, number_of
from engine.retrieval.parsing.sheet import Merge, Sheet, add_notes, write_sheet
from engine.retrieval.parsing.sheet_comments import comment_line
from engine.retrieval.parsing.text_builder import TextBuilder

MEDIA_TYPE = "application/vnd.ms-excel"


def extract_xls(data: bytes, most: int) -> Extracted:
    """Sheets with their names as headings, rows as lines; comments behind the rows.

    Raises:
        Unreadable: it is protected by a password.
    """
    builder = TextBuilder(most)
    try:
        book = xlrd.open_workbook(file_contents=data, formatting_info=True, logfile=io.StringIO())
    except xlrd.XLRDError as error:
        if "encrypted" in str(error):
            raise Unreadable("It is protected by a password.") from error
        raise
    sheets: list[Sheet] = []
    hidden: list[str] = []
    for source in book.sheets():
        if source.visibility:
            hidden.append(" ".join(source.name.split()))
            continue
        sheet = Sheet(source.name, builder.room)
        _read(sheet, book, source)
        write_sheet(builder, sheet)
        sheets.append(sheet)
    add_notes(builder, sheets, hidden)
    return builder.extracted()._replace(media_type=MEDIA_TYPE)


def _read(sheet: Sheet, book: Any, source: Any) -> None:
    """The cells of a sheet, what is hidden of it, and its comments."""
    for row in range(source.nrows):
        for column, cell in enumerate(source.row(row)):
            if cell.ctype not in (xlrd.XL_CELL_EMPTY, xlrd.XL_CELL_BLANK):
                sheet.put(row, column, _shown(book, cell))
    for first_row, end_row, first_column, end_column in source.merged_cells:
        sheet.merges.append(Merge(first_row, first_column, end_row - 1, end_column - 1))
    for row, info in source.rowinfo_map.items():
        if info.hidden and not info.outline_level:
            sheet.hidden_rows.add(row)
    for column, info in source.colinfo_map.items():
        if info.hidden and not info.outline_level:
            sheet.hidden_columns.append((column, column))
    for (row, column), note in sorted(source.cell_note_map.items()):
        if note.text.strip():
            text = note.text.strip().removeprefix(f"{note.author}:")
            cell = xlrd.formula.cellname(row, column)
            sheet.remarks.append(comment_line(cell, note.author or "", text))


def _shown(book: Any, cell: Any) -> str:
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return "TRUE" if cell.value else "FALSE"
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, "#ERROR"))
    style = book.xf_list[cell.xf_index]
    shown = number_format(book.format_map[style.format_key].format_str)
    if cell.ctype == xlrd.XL_CELL_TEXT:
        return shown.text(str(cell.value))
    number = number_of(repr(cell.value))
    return "" if number is None else shown.number(number, from_1904=bool(book.datemode))
