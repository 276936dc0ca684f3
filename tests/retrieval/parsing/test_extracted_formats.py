import contextlib
import gzip
from collections.abc import Callable

import pytest

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument

from . import samples

Parse = Callable[[str, bytes], ParsedDocument]


def _titles(document: ParsedDocument) -> list[tuple[int, str]]:
    return [(one.level, one.title) for one in document.headings]


class TestHtml:
    def test_visible_text_with_headings(self, parse: Parse) -> None:
        document = parse("a.html", samples.HTML)
        assert document.text.strip() == (
            "Top\n\nOne & two, three.\n\nSub\n\n- first\n- second\n\na\n  b\n\nx | y"
        )
        assert _titles(document) == [(1, "Top"), (2, "Sub")]
        assert document.title == "A page"
        assert document.spans_of == "text"

    def test_only_the_main_part_if_it_is_marked(self, parse: Parse) -> None:
        page = (
            b"<body><div>menu</div><div role=main><h1>X</h1><div>text</div></div><p>foot</p></body>"
        )
        document = parse("a.htm", page)
        assert document.text.strip() == "X\n\ntext"
        assert document.headings[0].start == 0

    def test_the_named_character_set_counts(self, parse: Parse) -> None:
        page = "<html><meta charset='koi8-r'><p>Река</p></html>".encode("koi8-r")
        assert parse("page", page).text.strip() == "Река"

    @pytest.mark.parametrize(
        "page",
        [b"<p>a<", b"<div" * 5000, b"<p>" * 50_000 + b"x", b"<!--" * 9999 + b"<html>", b"<a b='"],
        ids=["open tag", "open tags", "nested", "open comments", "open attribute"],
    )
    def test_bad_markup_is_tolerated(self, parse: Parse, page: bytes) -> None:
        with contextlib.suppress(Unreadable):  # some have no text
            parse("a.html", page)


class TestOffice:
    def test_docx(self, parse: Parse) -> None:
        cells = "".join(f"<w:tc>{samples.paragraph(one)}</w:tc>" for one in "ab")
        body = (
            samples.paragraph("Chapter", "U1")
            + samples.paragraph("One &lt;two&gt;.")
            + samples.paragraph("Part", "U2")
            + f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
            + samples.paragraph("End")
        )
        document = parse("a.docx", samples.docx(body))
        assert document.text.strip() == "Chapter\n\nOne <two>.\n\nPart\n\na | b\n\nEnd"
        assert _titles(document) == [(1, "Chapter"), (2, "Part")]
        assert document.media_type.endswith("wordprocessingml.document")

    def test_xlsx(self, parse: Parse) -> None:
        document = parse("a.xlsx", samples.xlsx())
        assert document.text == "Prices\nFruit | Price\nApple | 2.5\n"
        assert _titles(document) == [(1, "Prices")]
        assert document.breaks == (7, 21)

    def test_pptx_in_the_order_of_the_presentation(self, parse: Parse) -> None:
        document = parse("a.pptx", samples.pptx())
        assert document.text.strip() == "First\n\nthe beginning\n\nSecond\n\nthe end"
        assert document.pages == (0, document.text.index("Second"))
        assert _titles(document) == [(1, "First"), (1, "Second")]

    def test_odt(self, parse: Parse) -> None:
        document = parse("a.odt", samples.odt())
        assert document.text.strip() == "Kapitel\n\nEin Satz.\n\na | b"
        assert _titles(document) == [(1, "Kapitel")]

    def test_epub_in_the_order_of_its_spine(self, parse: Parse) -> None:
        document = parse("a.epub", samples.epub())
        assert document.text.strip() == "Early\n\nIt was a night.\n\nLate\n\nThe end."
        assert document.title == "A Book"
        assert len(document.pages) == 2
        assert _titles(document) == [(1, "Early"), (1, "Late")]

    def test_chapters_of_an_epub_are_xml(self, parse: Parse) -> None:
        chapter = (
            '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/>'
            '<script src="a.js"/></head><body><h1 id="a">Early<a id="b"/></h1><div class="rule"/>'
            "<table><tr><td/><td><p>x</p></td></tr><tr><td><p>Aarhus</p></td><td><p>4410</p></td></tr></table>"
            "<p>A<![CDATA[ & ]]>B</p></body></html>"
        )
        document = parse("a.epub", samples.epub({"OEBPS/a.xhtml": chapter}))
        assert document.text.startswith("Early\n\n | x\nAarhus | 4410\n\nA & B\n\nLate")
        assert _titles(document) == [(1, "Early"), (1, "Late")]

    def test_its_name_does_not_matter(self, parse: Parse) -> None:
        assert parse("strange.txt", samples.odt()).media_type.endswith("opendocument.text")


class TestPdf:
    def test_pages_and_bookmarks(self, parse: Parse) -> None:
        data = samples.pdf(["Intro\nfirst page", "Body here"], bookmarks={"Intro": 0, "Other": 1})
        document = parse("a.pdf", data)
        assert document.text == "Intro\nfirst page\n\nBody here"
        assert document.pages == (0, document.text.index("Body"))
        assert _titles(document) == [(1, "Intro"), (1, "Other")]
        assert document.title == "A Paper"

    def test_pages_without_text_are_named(self, parse: Parse) -> None:
        document = parse("a.pdf", samples.pdf(["One", "", "Three"]))
        assert document.notes == ("No text was found on 1 of 3 pages: 2.",)

    def test_a_pdf_of_images_says_what_is_missing(self, parse: Parse) -> None:
        with pytest.raises(Unreadable, match="has no text"):
            parse("a.pdf", samples.pdf(["", ""]))

    def test_a_password_is_asked_for(self, parse: Parse) -> None:
        with pytest.raises(Unreadable, match="password"):
            parse("a.pdf", samples.pdf(["secret"], password="x"))

    def test_a_damaged_pdf_is_named_one(self, parse: Parse) -> None:
        with pytest.raises(Unreadable, match=r"no valid PDF|no text"):
            parse("a.pdf", b"%PDF-1.7\n" + b"x" * 500)


class TestNotebook:
    def test_cells_and_text_outputs(self, parse: Parse) -> None:
        document = parse("a.ipynb", samples.NOTEBOOK)
        assert document.text == "# Study\nof numbers\n\nprint(6 * 7)\n\n42\n\n<Figure>"
        assert _titles(document) == [(1, "Study")]
        assert len(document.breaks) == 2

    @pytest.mark.parametrize(
        "data",
        [b"{", b'{"cells": 1}', b'{"a": ' + b"[" * 100_000, b'{"cells": [1, {"source": 5}]}'],
        ids=["cut", "no cells", "nested", "odd cells"],
    )
    def test_bad_ones_are_refused(self, parse: Parse, data: bytes) -> None:
        with pytest.raises(Unreadable):
            parse("a.ipynb", data)


class TestGzip:
    def test_text_of_all_its_parts(self, parse: Parse) -> None:
        document = parse("a.gz", gzip.compress(b"# Title\none\n") + gzip.compress(b"two\n"))
        assert document.text == "# Title\none\ntwo\n"
        assert _titles(document) == [(1, "Title")]

    def test_a_damaged_one_is_refused(self, parse: Parse) -> None:
        with pytest.raises(Unreadable, match="damaged"):
            parse("a.gz", gzip.compress(b"text")[:12] + b"\xff" * 9)


class TestImages:
    def test_without_ocr_the_extra_is_named(self, parse: Parse) -> None:
        from engine.retrieval.parsing.ocr import ocr_installed

        if ocr_installed():
            pytest.skip("OCR is installed")
        with pytest.raises(Unreadable, match="extra `ocr`"):
            parse("a.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 50)

    def test_with_ocr_words_are_found(self, parse: Parse) -> None:
        pytest.importorskip("rapidocr")
        from io import BytesIO

        from PIL import Image, ImageDraw, ImageFont

        image = Image.new("RGB", (600, 120), "white")
        font = ImageFont.load_default(48)
        ImageDraw.Draw(image).text((20, 30), "Invoice number 4711", fill="black", font=font)
        file = BytesIO()
        image.save(file, "PNG")
        assert "4711" in parse("a.png", file.getvalue()).text
        scan = BytesIO()
        image.save(scan, "PDF")
        assert "4711" in parse("scan.pdf", scan.getvalue()).text


class TestOtherTypes:
    @pytest.mark.parametrize(
        ("data", "what"),
        [
            (b"\x7fELF\x02\x01\x01" + b"\0" * 60, "program"),
            (b"SQLite format 3\0" + b"\0" * 60, "database"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 60, "save it as DOCX"),
            (b"{\\rtf1 hello}", "save it as DOCX"),
            (b"RIFF\0\0\0\0WAVEfmt ", "sound"),
            (samples.zipped({"a.txt": "x"}), "unpack it"),
            (b"PK\x03\x04" + b"\0" * 90, "damaged"),
        ],
        # Not from the bytes: a ZIP file has the time at which it was made.
        ids=["elf", "sqlite", "ole", "rtf", "wav", "zip", "damaged zip"],
    )
    def test_what_cannot_be_read_is_named(self, parse: Parse, data: bytes, what: str) -> None:
        with pytest.raises(Unreadable, match=what):
            parse("a.dat", data)
