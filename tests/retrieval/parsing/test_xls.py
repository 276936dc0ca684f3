from collections.abc import Callable

import pytest

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument

from .xls_sample import XLS

Parse = Callable[[str, bytes], ParsedDocument]
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 60


def test_values_empty_cells_merged_cells_and_what_is_hidden(parse: Parse) -> None:
    document = parse("a.xls", XLS)
    assert document.text == (
        "Prices\n"
        "Customer | Since | Share | Total\n"
        "Tesla Bakery | 2026-06-03 |  | 46,387.50\n"
        " | 07:45 | 15% | TRUE\n"
        "\n"
        "North | Oslo\n"
        "North | Bergen\n"
    )
    assert document.media_type == "application/vnd.ms-excel"
    assert document.notes == (
        "The hidden sheet was not read: Secret.",
        "1 hidden row was not read in the sheet Prices.",
        "1 hidden column was not read in the sheet Prices.",
    )


def test_its_name_does_not_matter(parse: Parse) -> None:
    assert "Tesla Bakery" in parse("export.dat", XLS).text


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("WordDocument", "save it as DOCX"),
        ("PowerPoint Document", "save it as DOCX or PPTX"),
        ("EncryptedPackage", "protected by a password"),
    ],
)
def test_other_compound_files_are_named(parse: Parse, part: str, reason: str) -> None:
    names = f"Workbook\0{part}\0".encode("utf-16-le")  # a document may hold a workbook
    with pytest.raises(Unreadable, match=reason):
        parse("a.xls", OLE + names)


def test_a_damaged_one_is_named(parse: Parse) -> None:
    with pytest.raises(Unreadable, match=r"no valid Excel workbook|no text"):
        parse("a.xls", XLS[:1500] + b"\xff" * 500 + XLS[2000:])
