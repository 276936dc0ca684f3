# ruff: noqa: E501
from collections.abc import Callable, Mapping

import pytest

from benchmarks.office_cases import (
    NUMBERING,
    Part,
    W,
    cell,
    docx,
    item,
    par,
    row,
    run,
    table,
)
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.archive import extract_archive
from engine.retrieval.parsing.extracted import Extracted

from . import samples


def read(body: str, styles: str = "", parts: Mapping[str, Part] | None = None) -> Extracted:
    return extract_archive(docx(body, styles, parts), 1 << 20)


def titles(found: Extracted) -> list[tuple[int, str]]:
    return [(one.level, one.title) for one in found.headings]


def style(identifier: str, name: str, inside: str = "", based_on: str = "") -> str:
    parent = f'<w:basedOn w:val="{based_on}"/>' if based_on else ""
    return f'<w:style w:type="paragraph" w:styleId="{identifier}"><w:name w:val="{name}"/>{parent}{inside}</w:style>'


class TestHeadings:
    @pytest.mark.parametrize(
        ("name", "level"),
        [
            ("heading 3", 3),
            ("Heading 2", 2),
            ("Überschrift 1", 1),
            ("Titre 2", 2),
            ("Título 4", 4),
            ("Заголовок 1", 1),
            ("見出し 2", 2),
            ("Title", 1),
            ("Heading notes", 0),
            ("Kopie 1", 0),
            ("Subtitle", 0),
        ],
    )
    def test_by_the_name_of_the_style(self, name: str, level: int) -> None:
        found = read(par("Scope", style="X"), style("X", name))
        assert titles(found) == ([(level, "Scope")] if level else [])

    def test_localised_ids_of_styles_with_their_english_names(self) -> None:
        found = read(par("Umfang", style="berschrift1"), style("berschrift1", "heading 1"))
        assert titles(found) == [(1, "Umfang")]

    def test_by_the_outline_level_of_a_style_or_of_what_it_is_based_on(self) -> None:
        outline = '<w:pPr><w:outlineLvl w:val="1"/></w:pPr>'
        styles = style("A", "Chapter", outline) + style("B", "Blue chapter", based_on="A")
        assert titles(read(par("One", style="A") + par("Two", style="B"), styles)) == [
            (2, "One"),
            (2, "Two"),
        ]

    def test_the_outline_level_of_the_paragraph_itself_counts_first(self) -> None:
        body = par("One", properties='<w:outlineLvl w:val="0"/>')
        body += par("Text", style="H1", properties='<w:outlineLvl w:val="9"/>')
        assert titles(read(body)) == [(1, "One")]

    def test_a_style_that_a_tracked_change_has_replaced_does_not_count(self) -> None:
        former = (
            '<w:pPrChange w:id="1" w:author="x"><w:pPr><w:pStyle w:val="H1"/></w:pPr></w:pPrChange>'
        )
        assert titles(read(par("Text", properties=former))) == []

    def test_styles_that_are_based_on_each_other(self) -> None:
        styles = style("A", "a", based_on="B") + style("B", "b", based_on="A")
        assert read(par("Text", style="A"), styles).text == "Text"

    def test_a_heading_within_a_line(self) -> None:
        mark = "<w:rPr><w:vanish/><w:specVanish/></w:rPr>"
        found = read(par("Scope.", style="H2", properties=mark) + par("Dogs may come."))
        assert found.text == "Scope. Dogs may come."
        assert titles(found) == [(2, "Scope.")]

    def test_numbers_are_a_part_of_the_title(self) -> None:
        found = read(item(0, "Scope", "H1") + item(1, "Dogs", "H2"), parts=NUMBERING)
        assert titles(found) == [(1, "3 Scope"), (2, "3.1 Dogs")]

    def test_their_place_is_their_own(self, parse: Callable[[str, bytes], ParsedDocument]) -> None:
        document = parse("a.docx", docx(par("x") + par("Größe", style="H1") + par("y")))
        assert [one.start for one in document.headings] == [3]


class TestNumbers:
    def numbering(self, *lists: str, definition: str = "") -> dict[str, Part]:
        levels = NUMBERING["word/numbering.xml"].content
        inside = definition + "".join(lists)
        return {
            "word/numbering.xml": Part(
                "numbering", levels.replace("</w:numbering>", inside + "</w:numbering>")
            )
        }

    def test_a_list_that_begins_anew(self) -> None:
        again = '<w:num w:numId="2"><w:abstractNumId w:val="7"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>'
        other = item(0, "c").replace('numId w:val="1"', 'numId w:val="2"')
        body = item(0, "a") + item(0, "b") + other + other
        assert read(body, parts=self.numbering(again)).text == "3 a\n\n4 b\n\n1 c\n\n2 c"

    def test_the_list_of_a_style(self) -> None:
        definition = '<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="upperRoman"/><w:lvlText w:val="Part %1:"/><w:pStyle w:val="H1"/></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/><w:isLgl/><w:pStyle w:val="S"/></w:lvl></w:abstractNum><w:num w:numId="5"><w:abstractNumId w:val="8"/></w:num>'
        numbered = '<w:pPr><w:numPr><w:numId w:val="5"/></w:numPr></w:pPr>'
        styles = style("S", "Section", numbered) + style("T", "Blue", based_on="S")
        body = par("A", style="H1", properties='<w:numPr><w:numId w:val="5"/></w:numPr>')
        body += par("B", style="S") + par("C", style="T")
        body += par("D", style="S", properties='<w:numPr><w:numId w:val="0"/></w:numPr>')
        text = read(body, styles, self.numbering(definition=definition)).text
        assert text == "Part I: A\n\n1.1 B\n\n1.2 C\n\nD"

    def test_bullets(self) -> None:
        assert read(item(3, "socks"), parts=NUMBERING).text == "- socks"

    def test_an_unknown_list_has_no_numbers(self) -> None:
        assert read(item(0, "a")).text == "a"


class TestTables:
    def test_a_table_of_single_cells_is_no_table(self) -> None:
        inner = table(row("a", "b"), columns=2)
        body = table(row(cell(par("Scope", style="H1"), par("One."), inner)), columns=1)
        found = read(body)
        assert found.text == "Scope\n\nOne.\n\na | b"
        assert titles(found) == [(1, "Scope")]

    def test_a_row_that_is_one_cell_over_all_columns_is_a_paragraph(self) -> None:
        wide = row(cell("Section 5", properties='<w:gridSpan w:val="3"/>'))
        assert read(table(row("a", "b", "c"), wide, row("d", "", ""))).text == (
            "a | b | c\n\nSection 5\nd |  | "
        )

    def test_white_space_alone_is_nothing(self) -> None:
        assert read(table(row("\u2002\xa0", " \xa0a")) + par("\xa0")).text == " | a"

    def test_rows_are_breaks_and_tables_apart(self) -> None:
        found = read(table(row("a", "b"), row("c", "d")) + table(row("e", "f")) + par("End"))
        assert found.text == "a | b\nc | d\n\ne | f\n\nEnd"
        assert found.breaks == (0, 6, 13)

    def test_removed_and_hidden(self) -> None:
        gone = cell("gone", properties='<w:cellDel w:id="1" w:author="x"/>')
        body = table(row("a", gone, "b"), row("secret", "x", properties="<w:hidden/>"))
        assert read(body).text == "a | b"

    def test_line_breaks_and_bars_of_a_cell_stay_on_its_line(self) -> None:
        first = cell(par("a", "<w:r><w:br/></w:r>", "b | c"))
        assert read(table(row(first, "d"))).text == r"a b \| c | d"

    def test_horizontal_merging_of_old_documents(self) -> None:
        one = cell("a", properties='<w:hMerge w:val="restart"/>')
        two = cell(properties='<w:hMerge w:val="continue"/>')
        assert read(table(row(one, two, "c"))).text == "a |  | c"

    def test_text_that_a_merged_cell_covers_is_not_seen(self) -> None:
        one = row(cell("a", properties='<w:vMerge w:val="restart"/>'), "b")
        two = row(cell("covered", properties="<w:vMerge/>"), "c")
        assert read(table(one, two)).text == "a | b\n | c"

    def test_a_row_of_empty_cells_is_left_out(self) -> None:
        assert read(table(row("", ""), row("a", ""))).text == "a | "


class TestPageTexts:
    def pages(self, settings: str = "", **texts: str) -> dict[str, Part]:
        parts = {
            f"word/{name}.xml": Part(name.rstrip("123"), f"<w:hdr {W}>{par(text)}</w:hdr>")
            for name, text in texts.items()
        }
        return parts | {
            "word/settings.xml": Part("settings", f"<w:settings {W}>{settings}</w:settings>")
        }

    def section(self, *references: str, first: bool = False) -> str:
        listed = "".join(
            f'<w:{name.rstrip("123")}Reference w:type="{kind}" r:id="{name}"/>'
            for kind, _, name in (one.partition(":") for one in references)
        )
        return f"<w:sectPr>{listed}{'<w:titlePg/>' if first else ''}</w:sectPr>"

    def test_first_and_even_pages_only_where_they_have_their_own(self) -> None:
        names = {"header1": "Every", "header2": "First", "header3": "Even"}
        refer = ("default:header1", "first:header2", "even:header3")
        assert read(par("x") + self.section(*refer), parts=self.pages(**names)).text == "Every\n\nx"
        both = self.pages("<w:evenAndOddHeaders/>", **names)
        assert (
            read(par("x") + self.section(*refer, first=True), parts=both).text
            == "First\n\nEvery\n\nEven\n\nx"
        )

    def test_the_same_text_of_two_sections_stands_once(self) -> None:
        parts = self.pages(header1="Oban Ferries", header2="Oban Ferries", footer1="Page 7")
        body = par("x", properties=self.section("default:header1", "default:footer1"))
        body += par("y") + self.section("default:header2")
        assert read(body, parts=parts).text == "Oban Ferries\n\nPage 7\n\nx\n\ny"

    def test_mere_page_numbers_are_left_out(self) -> None:
        parts = self.pages(footer1="- 7 / 12 -")
        assert read(par("x") + self.section("default:footer1"), parts=parts).text == "x"

    def test_a_header_that_no_section_has_is_not_seen(self) -> None:
        assert read(par("x"), parts=self.pages(header1="Every")).text == "x"

    def test_a_watermark(self) -> None:
        mark = '<w:r><w:pict><v:shape><v:textpath string="DRAFT"/></v:shape></w:pict></w:r>'
        parts = {"word/header1.xml": Part("header", f"<w:hdr {W}>{par(mark)}</w:hdr>")}
        assert read(par("x") + self.section("default:header1"), parts=parts).text == "DRAFT\n\nx"


class TestNotes:
    def notes(self, *texts: str) -> dict[str, Part]:
        inside = "".join(
            f'<w:footnote w:id="{n}">{par(text)}</w:footnote>' for n, text in enumerate(texts, 1)
        )
        return {"word/footnotes.xml": Part("footnotes", f"<w:footnotes {W}>{inside}</w:footnotes>")}

    def reference(self, number: int) -> str:
        return f'<w:r><w:footnoteReference w:id="{number}"/></w:r>'

    def test_they_are_counted_in_the_order_of_their_references(self) -> None:
        body = par("Dogs", self.reference(2), " and cats", self.reference(1), ".") + par("End")
        assert (
            read(body, parts=self.notes("C", "D")).text
            == "Dogs[^1] and cats[^2].\n\n[^1]: D\n\n[^2]: C\n\nEnd"
        )

    def test_in_a_table_they_follow_it(self) -> None:
        body = table(row(cell(par("a", self.reference(1))), "b"), row("c", "d")) + par("End")
        assert read(body, parts=self.notes("note")).text == "a[^1] | b\nc | d\n\n[^1]: note\n\nEnd"

    def test_in_a_deleted_row_they_are_deleted(self) -> None:
        gone = row(
            cell(par("a", self.reference(1))), "b", properties='<w:del w:id="1" w:author="x"/>'
        )
        assert read(table(gone) + par("End"), parts=self.notes("note")).text == "End"

    def test_a_note_without_a_reference_is_not_seen(self) -> None:
        assert read(par("x"), parts=self.notes("note")).text == "x"


class TestPackages:
    def test_parts_with_other_names(self) -> None:
        data = docx(par("Scope", style="H1"))
        renamed = samples.renamed(data, "word/document.xml", "word/document2.xml")
        found = extract_archive(renamed, 1 << 20)
        assert titles(found) == [(1, "Scope")]
        assert (found.media_type or "").endswith("wordprocessingml.document")

    def test_the_strict_form(self) -> None:
        data = samples.replaced(
            docx(par("Scope", style="H1")),
            b"http://schemas.openxmlformats.org/officeDocument/2006/relationships",
            b"http://purl.oclc.org/ooxml/officeDocument/relationships",
        )
        assert titles(extract_archive(data, 1 << 20)) == [(1, "Scope")]

    def test_building_blocks_are_not_read(self) -> None:
        parts = {
            "word/glossary/document.xml": Part(
                "glossaryDocument", f"<w:glossaryDocument {W}>{par('block')}</w:glossaryDocument>"
            )
        }
        assert read(par("x"), parts=parts).text == "x"

    def test_embedded_pages_are_read_and_other_documents_named(self) -> None:
        chunk = '<w:altChunk r:id="{}"/>'
        parts = {
            "word/page.html": Part("aFChunk", "<html><p>Inside</p></html>"),
            "word/other.rtf": Part("aFChunk", "{\\rtf1 x}"),
        }
        found = read(par("x") + chunk.format("page") + chunk.format("other"), parts=parts)
        assert found.text.strip() == "x\n\nInside"
        assert found.notes == ("The embedded document 'other.rtf' was not read.",)

    def test_a_missing_part_is_no_part(self) -> None:
        data = samples.zipped(
            {"word/document.xml": f"<w:document {W}>{par('x', style='berschrift2')}</w:document>"}
        )
        assert titles(extract_archive(data, 1 << 20)) == [(2, "x")]

    def test_a_field_that_does_not_end_hides_nothing_else(self) -> None:
        begin = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        assert read(par("a", begin, "code") + par("b")).text == "a\n\nb"

    def test_a_list_of_a_form_shows_its_chosen_entry(self) -> None:
        entries = "".join(f'<w:listEntry w:val="{one}"/>' for one in ("Oban", "Mull"))
        field = f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:ddList><w:result w:val="1"/>{entries}</w:ddList></w:ffData></w:fldChar></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
        assert read(par("To ", field)).text == "To Mull"

    def test_a_picture_of_an_old_document_has_its_description(self) -> None:
        shape = '<w:pict><v:shape alt="the islands"><v:imagedata/></v:shape></w:pict>'
        assert read(par(f"<w:r>{shape}</w:r>")).text == "[Picture: the islands]"
        assert read(par(run("x"), f"<w:r><w:rPr><w:vanish/></w:rPr>{shape}</w:r>")).text == "x"

    def test_a_shape_that_is_hidden_is_not_seen(self) -> None:
        box = f"<v:textbox><w:txbxContent>{par('secret')}</w:txbxContent></v:textbox>"
        shape = f'<w:pict><v:shape style="position:absolute; visibility: hidden">{box}</v:shape></w:pict>'
        assert read(par(run("x"), f"<w:r>{shape}</w:r>")).text == "x"

    def test_two_styles_that_hide_show(self) -> None:
        hiding = "<w:rPr><w:vanish/></w:rPr>"
        styles = style("P", "P", hiding)
        styles += f'<w:style w:type="character" w:styleId="C"><w:name w:val="C"/>{hiding}</w:style>'
        body = par(run("hidden"), run("seen", '<w:rStyle w:val="C"/>'), style="P")
        assert read(body, styles).text == "seen"


def test_a_content_control_that_nobody_has_filled_is_left_out() -> None:
    control = "<w:sdt><w:sdtPr><w:rPr><w:vanish/></w:rPr>{}</w:sdtPr><w:sdtContent>{}</w:sdtContent></w:sdt>"
    empty = control.format("<w:showingPlcHdr/>", run("Click here to enter text."))
    filled = control.format('<w:showingPlcHdr w:val="0"/>', run("Ada"))
    assert read(par("Name: ", filled, ", phone: ", empty, "end")).text == "Name: Ada, phone: end"
    in_cell = control.format("<w:showingPlcHdr/>", cell("Choose an item."))
    assert read(table(row("a", in_cell, "c"))).text == "a |  | c"
