"""Numbers in superscript stay apart from what is before them, in every format."""

from collections.abc import Callable

import pytest

from benchmarks.office_cases import docx, odf, par, pptx, run, shape, slide
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.superscript import raised

from .workbooks import rows, xlsx

_UP = '<w:vertAlign w:val="superscript"/>'
_DOWN = '<w:vertAlign w:val="subscript"/>'
_SHEET = '<sheetData><row r="1"><c r="A1" t="s"><v>0</v></c></row></sheetData>'
_INLINE = rows(("x",)).replace(
    "<is><t>x</t></is>",
    '<is><r><t>10</t></r><r><rPr><vertAlign val="superscript"/></rPr><t>6</t></r><r><t> m, H2O</t></r></is>',
)
_FILES = {
    "docx": docx(par("10", run("6", _UP), " m, H", run("2", _DOWN), "O")),
    "pptx": pptx(
        slide(
            shape(
                "<a:p><a:r><a:t>10</a:t></a:r>"
                '<a:r><a:rPr baseline="30000"/><a:t>6</a:t></a:r><a:r><a:t> m, H</a:t></a:r>'
                '<a:r><a:rPr baseline="-25000"/><a:t>2</a:t></a:r><a:r><a:t>O</a:t></a:r></a:p>'
            )
        )
    ),
    "odt": odf(
        "<text:p>10<text:span text:style-name='U'>6</text:span> m, H"
        "<text:span text:style-name='D'>2</text:span>O</text:p>",
        '<style:style style:name="U" style:family="text">'
        '<style:text-properties style:text-position="super 58%"/></style:style>'
        '<style:style style:name="D" style:family="text">'
        '<style:text-properties style:text-position="-33% 58%"/></style:style>',
    ),
    "html": b"<p>10<sup>6</sup> m, H<sub>2</sub>O",
    "shared.xlsx": xlsx(
        _SHEET,
        shared='<si><r><t>10</t></r><r><rPr><vertAlign val="superscript"/></rPr><t>6</t></r>'
        '<r><t> m, H</t></r><r><rPr><vertAlign val="subscript"/></rPr><t>2</t></r><r><t>O</t></r></si>',
    ),
    "inline.xlsx": xlsx(_INLINE),
}


@pytest.mark.parametrize("kind", _FILES)
def test_ten_to_the_sixth_power_is_not_a_hundred_and_six(
    parse: Callable[[str, bytes], ParsedDocument], kind: str
) -> None:
    assert parse(f"a.{kind}", _FILES[kind]).text.strip().endswith("10⁶ m, H2O")


@pytest.mark.parametrize("text", ["", "TM", "st", "[1]", "1" * 13])
def test_other_texts_are_as_they_are(text: str) -> None:
    assert raised(text) == text
