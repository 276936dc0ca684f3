"""`read_open_document`: the text of an OpenDocument text or presentation (ODT, OTT, ODP, OTP, ODG)."""

from engine.retrieval.parsing.block_writer import BlockWriter
from engine.retrieval.parsing.document_title import document_title
from engine.retrieval.parsing.open_document_reader import OpenDocumentReader, Shape
from engine.retrieval.parsing.open_document_styles import OpenDocumentStyles
from engine.retrieval.parsing.page_texts import unseen_blocks
from engine.retrieval.parsing.safe_xml import Attributes
from engine.retrieval.parsing.safe_zip import SafeZip
from engine.retrieval.parsing.slide_text import begin_slide, skip_slide, write_slide
from engine.retrieval.parsing.text_builder import TextBuilder
from engine.retrieval.parsing.text_flow import Block

_BACKGROUND = ("", "footer", "header")
"""Shapes of a master page that are seen on its slides; the others say what is to be written there."""
_STANDARD = "Standard"
"""The master page of a text whose paragraphs name none."""


def read_open_document(archive: SafeZip, builder: TextBuilder) -> None:
    """What a person sees: of a text like `read_docx`, of slides like `read_pptx`."""
    writer = BlockWriter(builder)
    styles = OpenDocumentStyles()
    masters: dict[str, tuple[Attributes, list[Shape]]] = {}
    seen: set[str] = set()
    hidden: list[int] = []
    number = 0

    def keep_master(attributes: Attributes, shapes: list[Shape]) -> None:
        masters[attributes.get("name", "")] = attributes, shapes

    def write_page_texts() -> None:
        used = _used_masters(masters, styles)
        for purpose in ("header", "footer"):
            shapes = (
                one for name in used for one in masters[name][1] if one.purpose == f"page {purpose}"
            )
            writer.write(unseen_blocks((one.blocks for one in shapes), seen))

    def write_page(attributes: Attributes, shapes: list[Shape]) -> None:
        nonlocal number
        number += 1
        if styles.is_hidden("drawing-page", attributes.get("style-name", "")):
            hidden.append(number)
            begin_slide(builder)
            skip_slide(builder)
            return
        title = [block for one in shapes if one.purpose == "title" for block in one.blocks]
        notes = [block for one in shapes if one.purpose == "notes" for block in one.blocks]
        repeated = [one for one in shapes if one.purpose == "footer"]
        apart = ("title", "notes", "footer")
        rest = [block for one in shapes if one.purpose not in apart for block in one.blocks]
        _, background = masters.get(attributes.get("master-page-name", ""), ({}, []))
        repeated += (one for one in background if one.purpose in _BACKGROUND)
        rest += unseen_blocks((one.blocks for one in repeated), seen)
        write_slide(builder, number, title, rest, notes)

    def write(block: Block) -> None:
        writer.write([block])

    reader = OpenDocumentReader(archive, styles, sink=lambda block: None, page=keep_master)
    reader.read(archive.read_if_there("styles.xml"))
    reader = OpenDocumentReader(archive, styles, sink=write, page=write_page, body=write_page_texts)
    reader.read(archive.read("content.xml"))
    reader.flow.finish()
    writer.finish()
    if hidden:
        builder.notes.append(f"Hidden slides were left out: {', '.join(map(str, hidden))}.")
    builder.title = document_title(archive.read_if_there("meta.xml"))


def _used_masters(
    masters: dict[str, tuple[Attributes, list[Shape]]], styles: OpenDocumentStyles
) -> list[str]:
    """The master pages that a text may have: the standard one, named ones, and what follows them."""
    waiting = [_STANDARD, *sorted(styles.master_pages())]
    used: list[str] = []
    while waiting:
        name = waiting.pop(0)
        if name in masters and name not in used:
            used.append(name)
            waiting.append(masters[name][0].get("next-style-name", ""))
    return used
