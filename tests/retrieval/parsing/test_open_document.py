# ruff: noqa: E501
from collections.abc import Callable

import pytest

from benchmarks.office_cases import odf, odf_table
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.archive import extract_archive
from engine.retrieval.parsing.extracted import Extracted

from . import samples

_LEVELS = '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="i" style:num-suffix="."/><text:list-level-style-bullet text:level="2"/></text:list-style>'


def read(body: str, styles: str = "", pages: str = "", kind: str = "text") -> Extracted:
    return extract_archive(odf(body, styles, pages, kind), 1 << 20)


def titles(found: Extracted) -> list[tuple[int, str]]:
    return [(one.level, one.title) for one in found.headings]


def p(text: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def items(*texts: str, attributes: str = "") -> str:
    inside = "".join(f"<text:list-item>{text}</text:list-item>" for text in texts)
    return f'<text:list text:style-name="L" {attributes}>{inside}</text:list>'


class TestHeadings:
    def test_levels_and_the_title_of_the_document(self) -> None:
        named = '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'
        body = p("Handbook", "P1") + '<text:h text:outline-level="2">Dogs</text:h>' + p("Text")
        assert titles(read(body, named)) == [(1, "Handbook"), (2, "Dogs")]

    def test_slides_are_pages_with_their_titles(
        self, parse: Callable[[str, bytes], ParsedDocument]
    ) -> None:
        page = '<draw:page draw:style-name="d">{}</draw:page>'
        frame = '<draw:frame presentation:class="{}"><draw:text-box>{}</draw:text-box></draw:frame>'
        body = page.format(
            frame.format("outline", p("a") + p("b")) + frame.format("title", p("Fares"))
        )
        body += page.format("") + page.format(frame.format("title", p("Times")))
        document = parse("a.odp", odf(body, kind="presentation"))
        assert document.text == "Fares\n\na\nb\n\n\nTimes"
        assert [one.title for one in document.headings] == ["Fares", "Slide 2", "Times"]
        assert document.pages == (0, 12, 13)
        assert document.media_type == "application/vnd.oasis.opendocument.presentation"

    def test_comments_and_footers_of_slides(self) -> None:
        comment = f"<office:annotation><dc:creator>Ada</dc:creator><dc:date>2026</dc:date>{p('Still so?')}</office:annotation>"
        frame = f'<draw:frame presentation:class="title"><draw:text-box>{p("Fares")}</draw:text-box></draw:frame>'
        page = '<draw:page presentation:use-footer-name="f">{}</draw:page>'
        declared = '<presentation:footer-decl presentation:name="f">Oban Ferries</presentation:footer-decl>'
        body = (
            declared + page.format(comment + frame) + page.format(frame.replace("Fares", "Times"))
        )
        assert read(body, kind="presentation").text == (
            "Fares\n\n[Comment by Ada: Still so?]\n\nOban Ferries\n\nTimes"
        )

    def test_what_a_master_page_shows_is_read_once(self) -> None:
        shapes = f"<draw:frame><draw:text-box>{p('Oban Ferries')}</draw:text-box></draw:frame>"
        shapes += f'<draw:frame presentation:class="title"><draw:text-box>{p("Click here")}</draw:text-box></draw:frame>'
        pages = f'<style:master-page style:name="M">{shapes}</style:master-page>'
        page = f'<draw:page draw:master-page-name="M"><draw:custom-shape>{p("x")}</draw:custom-shape></draw:page>'
        found = read(page + page, pages=pages, kind="presentation")
        assert found.text == "x\n\nOban Ferries\n\nx"


class TestLists:
    def test_a_list_that_goes_on(self) -> None:
        body = (
            items(p("a"), p("b"))
            + p("x")
            + items(p("c"), attributes='text:continue-numbering="true"')
        )
        body += items(p("d"))
        assert read(body, _LEVELS).text == "i. a\n\nii. b\n\nx\n\niii. c\n\ni. d"

    def test_a_number_of_its_own_and_more_paragraphs_in_an_item(self) -> None:
        body = f'<text:list text:style-name="L"><text:list-item text:start-value="4">{p("a") + p("b")}</text:list-item><text:list-item>{p("c")}</text:list-item></text:list>'
        assert read(body, _LEVELS).text == "iv. a\n\nb\n\nv. c"

    def test_bullets(self) -> None:
        inner = f"<text:list><text:list-item>{p('b')}</text:list-item></text:list>"
        assert read(items(p("a") + inner), _LEVELS).text == "i. a\n\n- b"


class TestTables:
    def test_a_hidden_row_is_not_seen(self) -> None:
        table = odf_table(("a", "b"), ("secret", "x")).replace(
            "<table:table-row><table:table-cell><text:p>secret",
            '<table:table-row table:visibility="collapse"><table:table-cell><text:p>secret',
        )
        assert read(table).text == "a | b"

    def test_a_row_that_is_one_cell_over_all_columns_is_a_paragraph(self) -> None:
        wide = '<table:table-cell table:number-columns-spanned="3"><text:p>All</text:p></table:table-cell><table:covered-table-cell table:number-columns-repeated="2"/>'
        covered = "<table:covered-table-cell/>"
        text = read(odf_table(("a", "b", "c"), (wide,), ("d", covered, covered))).text
        assert text == "a | b | c\n\nAll\nd |  | "

    def test_a_number_of_columns_that_no_table_has_is_bounded(self) -> None:
        huge = '<table:table-cell table:number-columns-repeated="9999999"/>'
        assert len(read(odf_table(("a", huge))).text) < 4000

    def test_notes_of_a_table_follow_it(self) -> None:
        note = "<text:note><text:note-citation>*</text:note-citation><text:note-body><text:p>n</text:p></text:note-body></text:note>"
        assert read(odf_table((f"a{note}", "b")) + p("End")).text == "a[^*] | b\n\n[^*]: n\n\nEnd"


class TestFrames:
    def test_descriptions_are_no_text_of_the_paragraph(self) -> None:
        frame = "<draw:frame><draw:text-box/><svg:title>t</svg:title><svg:desc>d</svg:desc></draw:frame>"
        assert read(p(f"a{frame}b")).text == "ab"

    def test_the_title_of_the_document_is_a_field(self) -> None:
        assert read(p("About <text:title>Dogs</text:title>")).text == "About Dogs"

    def test_an_embedded_chart_is_a_table(self) -> None:
        chart = f'<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="b" xmlns:chart="c"><office:body><chart:chart><chart:title>{p("Passengers")}</chart:title>{odf_table(("", "2025"), ("May", "810"))}</chart:chart></office:body></office:document-content>'
        body = p('x<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>')
        data = odf(body, parts={"Object 1/content.xml": chart})
        assert extract_archive(data, 1 << 20).text == "x\n\nPassengers\n\n | 2025\nMay | 810"

    def test_an_object_that_embeds_itself_ends(self) -> None:
        body = p('x<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>')
        inner = f'<o:d xmlns:o="o" xmlns:text="t" xmlns:draw="d" xmlns:xlink="x">{body.replace("./Object 1", ".")}</o:d>'
        data = odf(body, parts={"Object 1/content.xml": inner})
        assert extract_archive(data, 1 << 20).text == "x\n\nx"


class TestPageTexts:
    def test_pages_that_a_paragraph_switches_to_and_that_follow_them(self) -> None:
        pages = "".join(
            f'<style:master-page style:name="{name}" style:next-style-name="{after}"><style:header>{p(name)}</style:header></style:master-page>'
            for name, after in (("Standard", ""), ("First", "Other"), ("Other", ""), ("Unused", ""))
        )
        styles = (
            '<style:style style:name="P1" style:family="paragraph" style:master-page-name="First"/>'
        )
        assert read(p("x", "P1"), styles, pages).text == "Standard\n\nFirst\n\nOther\n\nx"


class TestTypes:
    @pytest.mark.parametrize("kind", ["text", "text-template", "graphics", "presentation"])
    def test_the_type_is_the_one_that_it_names(self, kind: str) -> None:
        data = samples.replaced(odf(p("x")), b"opendocument.text", f"opendocument.{kind}".encode())
        assert (
            extract_archive(data, 1 << 20).media_type
            == f"application/vnd.oasis.opendocument.{kind}"
        )

    def test_a_password(self) -> None:
        data = samples.replaced(odf(p("x")), b"</m:manifest>", b"<m:encryption-data/></m:manifest>")
        with pytest.raises(Unreadable, match="protected by a password"):
            extract_archive(data, 1 << 20)


def test_a_placeholder_that_nobody_has_filled_is_left_out() -> None:
    field = '<text:placeholder text:placeholder-type="text">&lt;Name&gt;</text:placeholder>'
    assert read(p(f"Dear {field}, hello")).text.strip() == "Dear , hello"
