"""`read_docx`: the text of a Word document (DOCX, DOCM, DOTX, DOTM)."""

from posixpath import join

from engine.retrieval.parsing.block_writer import BlockWriter
from engine.retrieval.parsing.element_reader import Closer, ElementReader, skipped
from engine.retrieval.parsing.html_text import extract_html
from engine.retrieval.parsing.office_package import OfficePackage
from engine.retrieval.parsing.page_texts import unseen_blocks
from engine.retrieval.parsing.safe_xml import Attributes
from engine.retrieval.parsing.safe_zip import SafeZip
from engine.retrieval.parsing.text_builder import TextBuilder
from engine.retrieval.parsing.text_encoding import decode_html
from engine.retrieval.parsing.text_flow import Block
from engine.retrieval.parsing.word_numbering import WordNumbering
from engine.retrieval.parsing.word_reader import Note, WordContext, WordReader
from engine.retrieval.parsing.word_styles import WordStyles, is_on

MAIN_PART = "word/document.xml"
"""Where programs put the document, unless they say otherwise."""


def read_docx(archive: SafeZip, builder: TextBuilder) -> None:
    """What a person sees in the finished document.

    Page headers and footers come first, each text once: they hold for all of it. Notes, comments and text
    boxes follow the paragraph or table in which they are anchored.
    """
    package = OfficePackage(archive)
    part = package.main_part(MAIN_PART)
    styles = WordStyles(package.read(_beside(package, part, "styles")))
    numbering = WordNumbering(package.read(_beside(package, part, "numbering")), styles)

    def notes(kind: str, comments: dict[str, Note]) -> dict[str, Note]:
        name = _beside(package, part, kind)
        numbering.restart()
        context = WordContext(package, styles, numbering, comments=comments)
        reader = WordReader(context, name, lambda block: None)
        reader.read(package.read(name))
        return reader.notes

    comments = notes("comments", {})
    numbering.restart()
    shared = WordContext(package, styles, numbering)
    writer = BlockWriter(builder)
    writer.write(_page_texts(package, part, shared))
    footnotes, endnotes = notes("footnotes", comments), notes("endnotes", comments)
    numbering.restart()
    context = WordContext(package, styles, numbering, footnotes, endnotes, comments)
    reader = WordReader(context, part, lambda block: writer.write([block]))
    reader.read(package.read(part))
    reader.flow.finish()
    writer.finish()
    for chunk in reader.chunks:
        _add_chunk(package, chunk, builder)
    builder.title = package.title()


def _beside(package: OfficePackage, part: str, kind: str) -> str:
    """The part of a kind that belongs to the document."""
    return package.related(part, kind, join(part.rpartition("/")[0], f"{kind}.xml"))


def _page_texts(package: OfficePackage, part: str, context: WordContext) -> list[Block]:
    """The blocks of the page headers and footers that some page has, each once, without mere page numbers."""
    if not any(package.all_related(part, kind) for kind in ("header", "footer")):
        return []
    settings = _SettingsReader()
    settings.read(package.read(_beside(package, part, "settings")))
    sections = _SectionReader(even_pages=settings.even_pages)
    sections.read(package.read(part))
    texts: list[list[Block]] = []
    for identifier in (*sections.headers, *sections.footers):
        name = package.target(part, identifier)
        texts.append([])
        reader = WordReader(context, name, texts[-1].append)
        reader.read(package.read(name))
        reader.flow.finish()
    return unseen_blocks(texts, set())


def _add_chunk(package: OfficePackage, part: str, builder: TextBuilder) -> None:
    """Text in another format that Word takes over when it opens the document."""
    if part.lower().endswith((".htm", ".html", ".xhtml")):
        builder.paragraph()
        builder.append(extract_html(decode_html(package.read(part)), builder.room))
    else:
        builder.notes.append(f"The embedded document {part.rpartition('/')[2]!r} was not read.")


class _SettingsReader(ElementReader):
    """Reads whether pages with even numbers have headers of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.even_pages = False
        self.handlers = {"evenAndOddHeaders": self._set_even_pages}

    def _set_even_pages(self, attributes: Attributes) -> None:
        self.even_pages = is_on(attributes)


class _SectionReader(ElementReader):
    """Reads which headers and footers the pages of a document have.

    Attributes:
        headers: relations of the headers that are used, in order, as keys; so are the footers.
    """

    def __init__(self, *, even_pages: bool) -> None:
        super().__init__()
        self.headers: dict[str, None] = {}
        self.footers: dict[str, None] = {}
        self._even_pages = even_pages
        self._first_page = False
        self._current: dict[tuple[str, str], str] = {}  # a section without one has that before it
        self.handlers = {
            "sectPr": self._begin_section,
            "titlePg": self._set_first_page,
            "headerReference": lambda attributes: self._refer("header", attributes),
            "footerReference": lambda attributes: self._refer("footer", attributes),
            "sectPrChange": skipped,
        }

    def _begin_section(self, _: Attributes) -> Closer:
        self._first_page = False
        return self._end_section

    def _set_first_page(self, attributes: Attributes) -> None:
        self._first_page = is_on(attributes)

    def _refer(self, kind: str, attributes: Attributes) -> None:
        self._current[kind, attributes.get("type", "default")] = attributes.get("id", "")

    def _end_section(self) -> None:
        used = {"first": self._first_page, "default": True, "even": self._even_pages}
        for kind, found in (("header", self.headers), ("footer", self.footers)):
            for which, is_used in used.items():
                identifier = self._current.get((kind, which), "")
                if is_used and identifier:
                    found[identifier] = None
