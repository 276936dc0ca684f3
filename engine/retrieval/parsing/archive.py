"""`extract_archive`: office documents and books, which are ZIP archives."""

from collections.abc import Callable
from posixpath import dirname

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.epub import read_epub
from engine.retrieval.parsing.extracted import Extracted
from engine.retrieval.parsing.ods import MEDIA_TYPE as ODS_TYPE
from engine.retrieval.parsing.ods import is_ods, read_ods
from engine.retrieval.parsing.office_package import OfficePackage
from engine.retrieval.parsing.open_document import read_open_document
from engine.retrieval.parsing.safe_zip import SafeZip
from engine.retrieval.parsing.slides import MAIN_PART as PRESENTATION
from engine.retrieval.parsing.slides import read_pptx
from engine.retrieval.parsing.text_builder import TextBuilder
from engine.retrieval.parsing.word_document import MAIN_PART as DOCUMENT
from engine.retrieval.parsing.word_document import read_docx
from engine.retrieval.parsing.xlsx import MAIN_PART as WORKBOOK
from engine.retrieval.parsing.xlsx import read_xlsx

_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
_OFFICE = "application/vnd.openxmlformats-officedocument."
_MARKUP_SHARE = 8
"""Bytes of XML that may be unpacked for each permitted character of text."""
_Reader = Callable[[SafeZip, TextBuilder], None]
_READERS: tuple[tuple[str, str, _Reader], ...] = (
    (DOCUMENT, _OFFICE + "wordprocessingml.document", read_docx),
    (WORKBOOK, _OFFICE + "spreadsheetml.sheet", read_xlsx),
    (PRESENTATION, _OFFICE + "presentationml.presentation", read_pptx),
    ("META-INF/container.xml", "application/epub+zip", read_epub),
    ("content.xml", _OPEN_DOCUMENT + "text", read_open_document),
)


def extract_archive(data: bytes, most: int) -> Extracted:
    """The text of a document that is a ZIP archive; its type is that of the first part that is found.

    Raises:
        Unreadable: it is another archive, protected by a password, or a workbook in a binary format.
    """
    archive = SafeZip(data, _MARKUP_SHARE * most)
    builder = TextBuilder(most)
    if "content.xml" in archive.names and is_ods(archive):
        _open_document_type(archive)  # raises for one with a password
        read_ods(archive, builder)
        return builder.extracted()._replace(media_type=ODS_TYPE)
    if "xl/workbook.bin" in archive.names:
        raise Unreadable("It is a binary workbook (XLSB); save it as XLSX.")
    main_part = OfficePackage(archive).main_part("")
    for part, media_type, read in _READERS:
        # Some programs number the main part: `word/document2.xml`.
        if part in archive.names or (main_part and dirname(main_part) == dirname(part)):
            if part == "content.xml":
                media_type = _open_document_type(archive) or media_type
            read(archive, builder)
            return builder.extracted()._replace(media_type=media_type)
    raise Unreadable("It is a ZIP archive; unpack it to add what is in it.")


def _open_document_type(archive: SafeZip) -> str:
    """The type that an OpenDocument file names.

    Raises:
        Unreadable: it is protected by a password.
    """
    if b"encryption-data" in archive.read_if_there("META-INF/manifest.xml"):
        raise Unreadable("It is protected by a password.")
    named = archive.read_if_there("mimetype").decode("ascii", "replace").strip()
    return named if named.startswith(_OPEN_DOCUMENT) and len(named) < 100 else ""
