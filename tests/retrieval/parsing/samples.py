"""Small files of each format, written here so that the tests need no program that writes them."""

# ruff: noqa: E501
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def zipped(parts: dict[str, str | bytes]) -> bytes:
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as one:
        for name, part in parts.items():
            one.writestr(name, part)
    return file.getvalue()


def docx(body: str, **more: str) -> bytes:
    styles = f"""<w:styles {W}><w:style w:type="paragraph" w:styleId="U1"><w:name w:val="heading 1"/></w:style>
        <w:style w:type="paragraph" w:styleId="U2"><w:name w:val="heading 2"/></w:style></w:styles>"""
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": styles,
            **more,
        }
    )


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def xlsx() -> bytes:
    return zipped(
        {
            "xl/workbook.xml": f'<workbook {R}><sheets><sheet name="Prices" sheetId="1" r:id="rId7"/></sheets>'
            "</workbook>",
            "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="rId7" Type="x/worksheet" '
            'Target="worksheets/sheet1.xml"/></Relationships>',
            "xl/sharedStrings.xml": "<sst><si><t>Fruit</t></si><si><r><t>Ap</t></r><r><t>ple</t></r></si></sst>",
            "xl/worksheets/sheet1.xml": '<worksheet><sheetData><row><c t="s"><v>0</v></c>'
            '<c t="inlineStr"><is><t>Price</t></is></c></row>'
            '<row><c t="s"><v>1</v></c><c><f>1+1.5</f><v>2.5</v></c></row></sheetData></worksheet>',
        }
    )


def pptx() -> bytes:
    def slide(title: str, text: str) -> str:
        return (
            f'<p:sld xmlns:p="p" xmlns:a="a"><p:sp><p:nvPr><p:ph type="title"/></p:nvPr><a:p><a:r><a:t>{title}'
            f"</a:t></a:r></a:p></p:sp><p:sp><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sp></p:sld>"
        )

    relation = '<Relationship Id="{}" Type="x/slide" Target="slides/{}.xml"/>'
    return zipped(
        {
            "ppt/presentation.xml": f'<p:presentation xmlns:p="p" {R}><p:sldIdLst><p:sldId id="256" r:id="a"/>'
            '<p:sldId id="257" r:id="b"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": "<Relationships>"
            + relation.format("a", "slide2")
            + relation.format("b", "slide1")
            + "</Relationships>",
            "ppt/slides/slide1.xml": slide("Second", "the end"),
            "ppt/slides/slide2.xml": slide("First", "the beginning"),
        }
    )


def odt() -> bytes:
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": '<d xmlns:text="t" xmlns:table="b"><text:h text:outline-level="1">Kapitel</text:h>'
            "<text:p>Ein<text:s/>Satz.</text:p><table:table><table:table-row><table:table-cell><text:p>a</text:p>"
            "</table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row>"
            "</table:table></d>",
        }
    )


def epub(chapters: dict[str, str] | None = None) -> bytes:
    chapter = "<!DOCTYPE html><html><body><h1>{}</h1><p>{}</p></body></html>"
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<c><rootfiles><rootfile full-path="OEBPS/a.opf"/></rootfiles></c>',
            "OEBPS/a.opf": '<package xmlns:dc="d"><metadata><dc:title>A Book</dc:title></metadata><manifest>'
            '<item id="two" href="b%20c.xhtml" media-type="application/xhtml+xml"/>'
            '<item id="one" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="one"/><itemref idref="two"/></spine></package>',
            "OEBPS/b c.xhtml": chapter.format("Late", "The end."),
            "OEBPS/a.xhtml": chapter.format("Early", "It was a night."),
            **(chapters or {}),
        }
    )


def pdf(pages: list[str], *, bookmarks: dict[str, int] | None = None, password: str = "") -> bytes:
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(300, 300)
        stream = DecodedStreamObject()
        lines = " ".join(f"({line}) Tj T*" for line in text.split("\n"))
        stream.set_data(f"BT /F1 12 Tf 14 TL 20 250 Td {lines} ET".encode() if text else b"")
        page[NameObject("/Contents")] = writer._add_object(stream)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
    for title, index in (bookmarks or {}).items():
        writer.add_outline_item(title=title, page_number=index)
    writer.add_metadata({"/Title": "A Paper"})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    file = BytesIO()
    writer.write(file)
    return file.getvalue()


MAIL = (
    b"From: Ada <ada@example.org>\r\nTo: Bob <bob@example.org>\r\nSubject: =?utf-8?q?Caf=C3=A9?= at noon\r\n"
    b"Date: Mon, 1 Jan 2024 10:00:00 +0000\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\n'
    b'Content-Type: multipart/alternative; boundary="c"\r\n\r\n--c\r\n'
    b"Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
    b"See you at the caf=E9.\r\n--c\r\nContent-Type: text/html\r\n\r\n<p>See you at the <b>bar</b>.</p>\r\n--c--\r\n"
    b"--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=map.pdf\r\n\r\nxx\r\n--b--\r\n"
)
NOTEBOOK = (
    b'{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["# Study\\n", "of numbers"]},'
    b'{"cell_type": "code", "source": "print(6 * 7)", "outputs": [{"output_type": "stream", "text": ["42\\n"]},'
    b'{"output_type": "display_data", "data": {"image/png": "iVBORw0K", "text/plain": "<Figure>"}}]}]}'
)
HTML = (
    b"<!doctype html><html><head><title> A  page </title><style>p {color: red}</style></head><body>"
    b"<nav>Home</nav><h1>Top<a class='headerlink' href='#top'>\xc2\xb6</a></h1><p>One &amp; <b>two</b>,\n three.</p>"
    b"<script>alert(1)</script><h2>Sub</h2><ul><li><p>first</p><li>second</ul><pre>a\n  b</pre>"
    b"<table><tr><td>x<td>y</tr></table><div hidden>secret</div></body></html>"
)


def unzipped(data: bytes) -> dict[str, bytes]:
    with ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def renamed(data: bytes, name: str, other: str) -> bytes:
    """An Office Open XML document whose main part has another name."""
    folder, _, file = name.rpartition("/")
    parts = unzipped(data)
    parts[other] = parts.pop(name)
    relations = parts.pop(f"{folder}/_rels/{file}.rels", b"")
    parts[f"{folder}/_rels/{other.rpartition('/')[2]}.rels"] = relations
    return zipped({key: one.replace(name.encode(), other.encode()) for key, one in parts.items()})


def replaced(data: bytes, old: bytes, new: bytes) -> bytes:
    """An archive with another word in all its parts."""
    return zipped({name: part.replace(old, new) for name, part in unzipped(data).items()})
