"""Small spreadsheets, written here so that the tests need no program that writes them."""

# ruff: noqa: E501
from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from .samples import R, zipped

Part = dict[str, str | bytes]


def relations(**targets: str) -> str:
    """`id="kind target"` as relations of a part."""
    one = '<Relationship Id="{}" Type="http://x/{}" Target="{}"/>'
    found = "".join(one.format(key, *value.split(" ")) for key, value in targets.items())
    return f"<Relationships>{found}</Relationships>"


def xlsx(
    *sheets: str,
    formats: Sequence[str] = (),
    shared: str = "",
    states: Sequence[str] = (),
    workbook: str = "",
    **more: str | bytes,
) -> bytes:
    """A workbook.

    Args:
        sheets: the XML inside of each sheet's `worksheet`.
        formats: format codes; cells name them by `s`, from 1.
        shared: the XML inside of `sst`.
        states: of the sheets.
        workbook: XML before the list of sheets.
        more: other parts, by their path.
    """
    codes = "".join(
        f'<numFmt numFmtId="{200 + at}" formatCode={quoteattr(code)}/>'
        for at, code in enumerate(formats)
    )
    styles = "".join(f'<xf numFmtId="{200 + at}"/>' for at in range(len(formats)))
    names = "".join(
        f'<sheet name="Sheet{at}" sheetId="{at}" state="{states[at - 1] if states else "visible"}" r:id="r{at}"/>'
        for at in range(1, len(sheets) + 1)
    )
    targets = {f"r{at}": f"worksheet worksheets/sheet{at}.xml" for at in range(1, len(sheets) + 1)}
    parts: Part = {
        "xl/workbook.xml": f"<workbook {R}>{workbook}<sheets>{names}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(**targets),
        "xl/styles.xml": f'<styleSheet><numFmts>{codes}</numFmts><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs>'
        f'<cellXfs><xf numFmtId="0"/>{styles}</cellXfs><dxfs><dxf><numFmt numFmtId="200" formatCode="0"/></dxf></dxfs>'
        "</styleSheet>",
        "xl/sharedStrings.xml": f"<sst>{shared}</sst>",
    }
    for at, sheet in enumerate(sheets, 1):
        parts[f"xl/worksheets/sheet{at}.xml"] = f"<worksheet {R}>{sheet}</worksheet>"
    return zipped(parts | more)


def rows(*lines: Sequence[str]) -> str:
    """`sheetData` of rows of texts and numbers, in columns from A on; an empty text is no cell."""
    return f"<sheetData>{''.join(_row(at, line) for at, line in enumerate(lines, 1))}</sheetData>"


def _row(number: int, line: Sequence[str]) -> str:
    cells = "".join(
        _cell(f"{chr(65 + at)}{number}", value) for at, value in enumerate(line) if value
    )
    return f'<row r="{number}">{cells}</row>' if cells else ""


def _cell(place: str, value: str) -> str:
    if value.replace(".", "", 1).isdecimal():
        return f'<c r="{place}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


def ods(*tables: str, styles: str = "") -> bytes:
    """A spreadsheet of tables (the XML of each `table:table`)."""
    names = 'xmlns:office="o" xmlns:table="b" xmlns:text="t" xmlns:style="s" xmlns:dc="d" xmlns:draw="w" xmlns:calcext="c"'
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "content.xml": f"<office:document-content {names}><office:automatic-styles>{styles}</office:automatic-styles>"
            f"<office:body><office:spreadsheet>{''.join(tables)}</office:spreadsheet></office:body>"
            "</office:document-content>",
        }
    )


def ods_cell(text: str = "", kind: str = "string", more: str = "", **values: str) -> str:
    """A cell that shows a text."""
    given = "".join(f' office:{key}-value="{value}"' for key, value in values.items())
    shown = f"<text:p>{text}</text:p>" if text else ""
    return f'<table:table-cell office:value-type="{kind}"{given}{more}>{shown}</table:table-cell>'
