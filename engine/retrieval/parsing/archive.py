"""`extract_archive`: office documents and books, which are ZIP archives."""

from collections.abc import Callable
from posixpath import dirname

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.epub import read_epub
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.ods import MEDIA_TYPE as ODS_TYPE
from engine.retrieval.parsing.ods import is_ods, read_ods
from engine.retrieval.parsing.office import read_docx, read_odt, read_pptx
from engine.retrieval.parsing.office_parts import main_part
from engine.retrieval.parsing.safe_zip import SafeZip
from engine.retrieval.parsing.text_builder import TextBuilder
from engine.retrieval.parsing.xlsx import MAIN_PART as WORKBOOK
from engine.retrieval.parsing.xlsx import read_xlsx

_OFFICE = "application/vnd.openxmlformats-officedocument."
_MARKUP_SHARE = 8
"""Bytes of XML that may be unpacked for each permitted character of text."""
_Reader = Callable[[SafeZip, TextBuilder], None]
_READERS: tuple[tuple[str, str, _Reader], ...] = (
    ("word/document.xml", _OFFICE + "wordprocessingml.document", read_docx),
    (WORKBOOK, _OFFICE + "spreadsheetml.sheet", read_xlsx),
    ("ppt/presentation.xml", _OFFICE + "presentationml.presentation", read_pptx),
    ("META-INF/container.xml", "application/epub+zip", read_epub),
    ("content.xml", "application/vnd.oasis.opendocument.text", read_odt),
)


def extract_archive(data: bytes, most: int) -> Extracted:
    """The text of a document that is a ZIP archive; its type is that of the first part that is found.

    Raises:
        Unreadable: it is another archive, or a workbook in a binary format.
    """
    archive = SafeZip(data, _MARKUP_SHARE * most)
    builder = TextBuilder(most)
    if "content.xml" in archive.names and is_ods(archive):
        read_ods(archive, builder)
        return builder.extracted()._replace(media_type=ODS_TYPE)
    if "xl/workbook.bin" in archive.names:
        raise Unreadable("It is a binary workbook (XLSB); save it as XLSX.")
    main = main_part(archive, "")
    for part, media_type, read in _READERS:
        # Some programs number the main part: `xl/workbook2.xml`.
        if part in archive.names or (main and dirname(main) == dirname(part)):
            read(archive, builder)
            return builder.extracted()._replace(media_type=media_type)
    raise Unreadable("It is a ZIP archive; unpack it to add what is in it.")
