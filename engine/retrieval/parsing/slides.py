"""`read_pptx`: the text of a presentation (PPTX, PPTM, PPSX, PPSM, POTX)."""

from engine.retrieval.parsing.element_reader import Closer, ElementReader
from engine.retrieval.parsing.office_package import OfficePackage
from engine.retrieval.parsing.page_texts import unseen_blocks
from engine.retrieval.parsing.safe_xml import Attributes
from engine.retrieval.parsing.safe_zip import SafeZip
from engine.retrieval.parsing.slide_reader import Shape, SlideReader
from engine.retrieval.parsing.slide_text import begin_slide, skip_slide, write_slide
from engine.retrieval.parsing.text_builder import TextBuilder
from engine.retrieval.parsing.text_flow import Block, comment_block

MAIN_PART = "ppt/presentation.xml"
"""Where programs put the presentation, unless they say otherwise."""
_TITLES = frozenset(("title", "ctrTitle"))
_REPEATED = frozenset(("ftr", "dt", "hdr"))


def read_pptx(archive: SafeZip, builder: TextBuilder) -> None:
    """Slides in their order, each a page with its title as a heading; then its notes and comments.

    Hidden slides are left out, but keep their numbers. What layouts and masters show on many slides, footers
    among it, is read once, with the first slide that shows it.
    """
    package = OfficePackage(archive)
    presentation = package.main_part(MAIN_PART)
    listed = _SlideList()
    listed.read(package.read(presentation))
    authors = _Authors()
    for kind in ("commentAuthors", "authors"):
        for part in package.all_related(presentation, kind):
            authors.read(package.read(part))
    repeated: set[str] = set()
    drawn: dict[str, SlideReader] = {}
    hidden: list[int] = []
    number = 0
    for identifier in listed.identifiers:
        part = package.target(presentation, identifier)
        if not part:
            continue
        number += 1
        slide = SlideReader(package, part)
        slide.read(package.read(part))
        if slide.hidden:
            hidden.append(number)
            begin_slide(builder)
            skip_slide(builder)
            continue
        shapes = [one for one in slide.shapes if one.placeholder != "sldNum"]
        own = [one for one in shapes if one.placeholder not in _REPEATED]
        title = [block for one in own if one.placeholder in _TITLES for block in one.blocks]
        rest = [block for one in own if one.placeholder not in _TITLES for block in one.blocks]
        shared = [one for one in shapes if one.placeholder in _REPEATED]
        shared += _background(package, slide, drawn)
        rest += unseen_blocks((one.blocks for one in shared), repeated)
        rest += _comments(package, part, authors.names)
        write_slide(builder, number, title, rest, _notes(package, part))
    if hidden:
        numbers = ", ".join(map(str, hidden))
        builder.notes.append(f"Hidden slides were left out: {numbers}.")
    builder.title = package.title()


def _background(
    package: OfficePackage, slide: SlideReader, drawn: dict[str, SlideReader]
) -> list[Shape]:
    """The shapes of a slide's layout and master that are drawn on it; `drawn` has those that were read."""
    found: list[Shape] = []
    part, is_shown = slide.part, slide.shows_master
    for kind in ("slideLayout", "slideMaster"):
        part = package.related(part, kind)
        if not part or not is_shown:
            break
        if part not in drawn:
            drawn[part] = SlideReader(package, part)
            drawn[part].read(package.read(part))
        reader = drawn[part]
        found += [one for one in reader.shapes if not one.placeholder]
        is_shown = reader.shows_master
    return found


def _notes(package: OfficePackage, slide: str) -> list[Block]:
    """What the speaker has written; the page of the notes also shows the slide and its number."""
    part = package.related(slide, "notesSlide")
    if not part:
        return []
    reader = SlideReader(package, part)
    reader.read(package.read(part))
    return [block for one in reader.shapes if one.placeholder == "body" for block in one.blocks]


def _comments(package: OfficePackage, slide: str, names: dict[str, str]) -> list[Block]:
    reader = _Comments()
    for part in package.all_related(slide, "comments"):
        reader.read(package.read(part))
    return [
        comment_block(names.get(author, ""), [Block(" ".join("".join(text).split()))])
        for author, text in reader.found
    ]


class _SlideList(ElementReader):
    """Reads the relations of the slides, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.identifiers: list[str] = []
        self.handlers = {"sldId": self._add}

    def _add(self, attributes: Attributes) -> None:
        self.identifiers.append(attributes.get("id", ""))


class _Authors(ElementReader):
    """Reads the names of those who comment, by their ids."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, str] = {}
        self.handlers = {"cmAuthor": self._add, "author": self._add}

    def _add(self, attributes: Attributes) -> None:
        self.names[attributes.get("id", "")] = attributes.get("name", "")


class _Comments(ElementReader):
    """Reads comments and the replies to them: each one's author and text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []
        self._around: list[list[str]] = []
        self._in_text = False
        self.handlers = {
            "cm": self._begin,
            "reply": self._begin,
            "text": self._begin_text,
            "t": self._begin_text,
            "p": lambda _: self._end_paragraph,
        }

    def text(self, text: str) -> None:
        if self._in_text and self._around:
            self._around[-1].append(text)

    def _begin(self, attributes: Attributes) -> Closer:
        said: list[str] = []
        self.found.append((attributes.get("authorId", ""), said))
        self._around.append(said)

        def end() -> None:
            self._around.pop()

        return end

    def _begin_text(self, _: Attributes) -> Closer:
        self._in_text = True

        def end() -> None:
            self._in_text = False

        return end

    def _end_paragraph(self) -> None:
        if self._around:
            self._around[-1].append(" ")
