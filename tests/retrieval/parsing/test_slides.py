# ruff: noqa: E501
from collections.abc import Callable, Mapping

from benchmarks.office_cases import Part, W, pptx, shape, slide, slide_table
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.archive import extract_archive
from engine.retrieval.parsing.extracted import Extracted

from . import samples

_FIRST = "ppt/slides/slide1.xml"


def read(*slides: str, parts: Mapping[str, Part] | None = None) -> Extracted:
    return extract_archive(pptx(*slides, parts=parts), 1 << 20)


def titled(text: str, *shapes: str) -> str:
    return slide(shape(text, placeholder="ctrTitle"), *shapes)


def test_titles_are_headings_and_slides_without_one_are_numbered() -> None:
    found = read(titled("Fares"), slide(shape("From May")))
    assert [(one.level, one.title) for one in found.headings] == [(1, "Fares"), (1, "Slide 2")]


def test_slides_without_text_and_hidden_ones_keep_their_page_numbers(
    parse: Callable[[str, bytes], ParsedDocument],
) -> None:
    hidden = slide(shape("secret"), attributes='show="0"')
    document = parse("a.pptx", pptx(titled("One"), slide(), hidden, titled("Four")))
    assert document.text.split() == ["One", "Four"]
    assert len(document.pages) == 4
    assert document.pages[3] == document.text.index("Four")
    assert document.notes == ("Hidden slides were left out: 3.",)


def test_paragraphs_of_a_shape_are_lines_and_shapes_are_paragraphs() -> None:
    assert read(slide(shape("a", "b"), shape("c"))).text.strip() == "a\nb\n\nc"


def test_rows_of_a_table_are_lines() -> None:
    found = read(titled("Fares", slide_table(("a", "b"), ("c", "d")), shape("End")))
    assert found.text == "Fares\n\na | b\nc | d\n\nEnd"
    assert found.breaks == (7, 13)


def test_comments_with_their_answers() -> None:
    comment = (
        f'<p188:cmLst {W}><p188:cm authorId="{{A}}"><p188:replyLst><p188:reply authorId="{{B}}"><p188:txBody><a:p>'
        "<a:r><a:t>Yes.</a:t></a:r></a:p></p188:txBody></p188:reply></p188:replyLst><p188:txBody><a:p><a:r><a:t>Is it"
        "</a:t></a:r></a:p><a:p><a:r><a:t>so?</a:t></a:r></a:p></p188:txBody></p188:cm></p188:cmLst>"
    )
    authors = f'<p188:authorLst {W}><p188:author id="{{A}}" name="Ada"/><p188:author id="{{B}}" name="Bo"/></p188:authorLst>'
    parts = {
        "ppt/comments/modernComment_1.xml": Part("comments", comment, _FIRST),
        "ppt/authors.xml": Part("authors", authors),
    }
    assert (
        read(titled("Fares"), parts=parts).text
        == "Fares\n\n[Comment by Ada: Is it so?]\n\n[Comment by Bo: Yes.]"
    )


def test_notes_follow_their_slide() -> None:
    notes = slide(shape("Say hello.", "Wait.", placeholder="body"), root="notes")
    parts = {"ppt/notesSlides/notesSlide1.xml": Part("notesSlide", notes, _FIRST)}
    found = read(titled("Fares", shape("From May")), titled("Times"), parts=parts)
    assert found.text == "Fares\n\nFrom May\n\nNotes: Say hello.\nWait.\n\nTimes"


def test_what_the_master_shows_is_read_once_and_not_where_it_is_off() -> None:
    layout = "ppt/slideLayouts/slideLayout{}.xml"
    parts = {
        layout.format(n): Part(
            "slideLayout",
            slide(shape("Oban Ferries"), root="sldLayout"),
            f"ppt/slides/slide{n}.xml",
        )
        for n in (1, 2, 3)
    }
    off = slide(shape("One"), attributes='showMasterSp="0"')
    found = read(off, slide(shape("Two")), slide(shape("Three")), parts=parts)
    assert found.text == "One\n\nTwo\n\nOban Ferries\n\nThree"


def test_parts_with_other_names() -> None:
    data = samples.renamed(pptx(titled("Fares")), "ppt/presentation.xml", "ppt/show.xml")
    found = extract_archive(data, 1 << 20)
    assert found.text == "Fares"
    assert (found.media_type or "").endswith("presentationml.presentation")


def test_a_slide_that_is_missing_is_left_out() -> None:
    parts = samples.unzipped(pptx(titled("One"), titled("Two")))
    del parts[_FIRST]
    assert extract_archive(samples.zipped(dict(parts)), 1 << 20).text == "Two"
