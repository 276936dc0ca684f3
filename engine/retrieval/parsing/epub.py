"""`read_epub`: the chapters of an EPUB in the order of its spine."""

from posixpath import dirname, join, normpath
from urllib.parse import unquote

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.html_text import extract_html
from engine.retrieval.parsing.safe_xml import Attributes, read_xml
from engine.retrieval.parsing.safe_zip import SafeZip
from engine.retrieval.parsing.text_builder import TextBuilder
from engine.retrieval.parsing.text_encoding import decode_text


def read_epub(archive: SafeZip, builder: TextBuilder) -> None:
    """Chapters, each a page; headings are those of the chapters.

    Raises:
        Unreadable: it has no list of chapters.
    """
    package = _package(archive)
    items: dict[str, str] = {}
    spine: list[str] = []
    title: list[str] = []
    in_title = False

    def start(name: str, attributes: Attributes) -> None:
        nonlocal in_title
        in_title = name == "title" and not title
        if name == "item" and "html" in attributes.get("media-type", ""):
            items[attributes.get("id", "")] = unquote(attributes.get("href", ""))
        elif name == "itemref":
            spine.append(attributes.get("idref", ""))

    def text(text: str) -> None:
        if in_title:
            title.append(text)

    def end(name: str) -> None:
        nonlocal in_title
        in_title = False

    read_xml(archive.read(package), start=start, end=end, text=text)
    builder.title = "".join(title).strip() or None
    for item in spine:
        part = normpath(join(dirname(package), items.get(item, "")))
        if item in items and part in archive.names:
            builder.paragraph()
            builder.mark_page()
            chapter = decode_text(archive.read(part)).text
            builder.append(extract_html(chapter, builder.room))


def _package(archive: SafeZip) -> str:
    found: list[str] = []

    def start(name: str, attributes: Attributes) -> None:
        if name == "rootfile":
            found.append(attributes.get("full-path", ""))

    read_xml(archive.read("META-INF/container.xml"), start=start)
    if not found or found[0] not in archive.names:
        raise Unreadable("It is an EPUB without a list of its chapters.")
    return found[0]
