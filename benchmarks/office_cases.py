# ruff: noqa: E501
"""Small DOCX, PPTX and ODT files, each with one thing that a parser may get wrong, and what a person sees in it.

They are valid documents, so that every parser opens them: `office_parsers.py` compares parsers on them, and the
tests hold ours to all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_OFFICE_TYPE = "application/vnd.openxmlformats-officedocument."
W = " ".join(
    f'xmlns:{prefix}="{uri}"'
    for prefix, uri in {
        "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "r": _RELATION,
        "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
        "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
        "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "p": "http://schemas.openxmlformats.org/presentationml/2006/main",
        "pic": "http://schemas.openxmlformats.org/drawingml/2006/picture",
        "dgm": "http://schemas.openxmlformats.org/drawingml/2006/diagram",
        "c": "http://schemas.openxmlformats.org/drawingml/2006/chart",
        "v": "urn:schemas-microsoft-com:vml",
        "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
        "a14": "http://schemas.microsoft.com/office/drawing/2010/main",
    }.items()
)
O = " ".join(  # noqa: E741
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in {
        "office": "office",
        "style": "style",
        "text": "text",
        "table": "table",
        "draw": "drawing",
        "presentation": "presentation",
        "svg": "svg-compatible",
    }.items()
) + (
    ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
    ' office:version="1.3"'
)


@dataclass(frozen=True, slots=True)
class Case:
    """A file and what is expected of its text.

    Attributes:
        name: what is tried.
        kind: the file's suffix.
        data: the file.
        once: what its text has exactly once, in this order.
        never: what it has not.
        rows: rows of tables, each on one line, cell by cell.
    """

    name: str
    kind: str
    data: bytes
    once: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an Office Open XML document: the last word of its relation, its XML or bytes, and who refers to it."""

    relation: str
    content: str | bytes
    of: str = ""


def _zipped(parts: Mapping[str, str | bytes]) -> bytes:
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content, ZIP_STORED if name == "mimetype" else None)
    return file.getvalue()


def _package(
    main: str,
    main_type: str,
    content: str,
    parts: Mapping[str, Part],
    types: Mapping[str, str],
    links: Sequence[tuple[str, str, str]] = (),
) -> bytes:
    """A package; the relation of a part has the part's file name as its id.

    Args:
        main: the name of its main part.
        main_type: the content type of that.
        content: the main part.
        parts: the others.
        types: content types by relation.
        links: more relations between parts: from, its last word, to.
    """
    relations: dict[str, list[str]] = {
        "": [_relation("main", "officeDocument", f"/{main}")],
        main: [],
    }
    overrides = {main: main_type}
    for name, part in parts.items():
        file = name.rpartition("/")[2].partition(".")[0]
        relations.setdefault(part.of or main, []).append(_relation(file, part.relation, f"/{name}"))
        if isinstance(part.content, str):
            overrides[name] = types.get(part.relation, "application/xml")
    for source, kind, target in links:
        relations.setdefault(source, []).append(_relation("link", kind, f"/{target}"))
    listed = "".join(
        f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, kind in overrides.items()
    )
    files: dict[str, str | bytes] = {
        "[Content_Types].xml": f'{XML}<Types xmlns="{_PACKAGE}content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="png" ContentType="image/png"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{listed}</Types>',
        main: XML + content,
    }
    for name, part in parts.items():
        files[name] = XML + part.content if isinstance(part.content, str) else part.content
    for source, found in relations.items():
        folder, _, file = source.rpartition("/")
        name = f"{folder}/_rels/{file}.rels" if folder else f"_rels/{file}.rels"
        files[name] = (
            f'{XML}<Relationships xmlns="{_PACKAGE}relationships">{"".join(found)}</Relationships>'
        )
    return _zipped(files)


def _relation(identifier: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{identifier}" Type="{_RELATION}/{kind}" Target="{target}"/>'


# Word


def docx(body: str, styles: str = "", parts: Mapping[str, Part] | None = None) -> bytes:
    """A document with this body; headings are styles `H1` and `H2`."""
    headings = "".join(
        f'<w:style w:type="paragraph" w:styleId="H{level}"><w:name w:val="heading {level}"/></w:style>'
        for level in (1, 2)
    )
    all_parts = {
        "word/styles.xml": Part(
            "styles",
            f'<w:styles {W}><w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/>'
            f"</w:style>{headings}{styles}</w:styles>",
        ),
        **(parts or {}),
    }
    word = _OFFICE_TYPE + "wordprocessingml."
    kinds = (
        "styles",
        "numbering",
        "settings",
        "header",
        "footer",
        "footnotes",
        "endnotes",
        "comments",
    )
    return _package(
        "word/document.xml",
        word + "document.main+xml",
        f"<w:document {W}><w:body>{body}</w:body></w:document>",
        all_parts,
        _CHART_TYPE | {kind: f"{word}{kind}+xml" for kind in kinds},
    )


def run(text: str, properties: str = "") -> str:
    """A run of a DOCX."""
    properties = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def par(*runs: str, style: str = "", properties: str = "") -> str:
    """A paragraph of a DOCX, of runs or plain texts."""
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    inside = "".join(one if one.startswith("<") else run(one) for one in runs)
    return f"<w:p><w:pPr>{style}{properties}</w:pPr>{inside}</w:p>"


def cell(*blocks: str, properties: str = "") -> str:
    """A cell of a DOCX, of paragraphs, tables or plain texts."""
    inside = "".join(one if one.startswith("<") else par(one) for one in blocks) or "<w:p/>"
    end = "<w:p/>" if inside.endswith("</w:tbl>") else ""
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inside}{end}</w:tc>"


def row(*cells: str, properties: str = "") -> str:
    """A row of a DOCX, of cells or plain texts."""
    inside = "".join(one if one.startswith("<") else cell(*filter(None, [one])) for one in cells)
    return f"<w:tr><w:trPr>{properties}</w:trPr>{inside}</w:tr>"


def table(*rows: str, columns: int = 3) -> str:
    """A table of a DOCX."""
    return (
        f"<w:tbl><w:tblPr/><w:tblGrid>{'<w:gridCol/>' * columns}</w:tblGrid>{''.join(rows)}</w:tbl>"
    )


def field(code: str, result: str) -> str:
    """A field of a DOCX."""
    return (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        f'<w:r><w:instrText xml:space="preserve"> {code} </w:instrText></w:r>'
        f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{run(result)}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


def _sect(inside: str) -> str:
    return f"<w:sectPr>{inside}</w:sectPr>"


def _text_box(text: str) -> str:
    content = f"<w:txbxContent>{par(text)}</w:txbxContent>"
    return (
        '<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:inline><wp:extent cx="9" cy="9"/>'
        '<wp:docPr id="1" name="Box"/><a:graphic><a:graphicData uri="http://schemas.microsoft.com/office/word/2010/'
        f'wordprocessingShape"><wps:wsp><wps:txbx>{content}</wps:txbx></wps:wsp></a:graphicData></a:graphic>'
        "</wp:inline></w:drawing></mc:Choice><mc:Fallback><w:pict><v:shape><v:textbox>"
        f"{content}</v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )


_MARK_DELETED = '<w:rPr><w:del w:id="9" w:author="x"/></w:rPr>'
_HIDING = (
    '<w:style w:type="character" w:styleId="Secret"><w:name w:val="Secret"/><w:rPr><w:vanish/></w:rPr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Inner"><w:name w:val="Inner"/><w:basedOn w:val="Hidden"/></w:style>'
    '<w:style w:type="paragraph" w:styleId="Hidden"><w:name w:val="Hidden"/><w:rPr><w:vanish/></w:rPr></w:style>'
)
_LEVELS = "".join(
    f'<w:lvl w:ilvl="{level}"><w:start w:val="{start}"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'
    for level, start, form, text in (
        (0, 3, "decimal", "%1"),
        (1, 1, "decimal", "%1.%2"),
        (2, 1, "lowerLetter", "%3)"),
        (3, 1, "bullet", "•"),
    )
)
NUMBERING = {
    "word/numbering.xml": Part(
        "numbering",
        f'<w:numbering {W}><w:abstractNum w:abstractNumId="7">{_LEVELS}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num></w:numbering>',
    )
}


def item(level: int, text: str, style: str = "") -> str:
    """A paragraph of the list of `NUMBERING`."""
    numbered = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>'
    return par(text, style=style, properties=numbered)


def _notes(kind: str, mark: str, text: str) -> dict[str, Part]:
    line = f'<w:{kind} w:id="-1" w:type="separator">{par("line above the notes")}</w:{kind}>'
    note = f'<w:{kind} w:id="4">{par(f"<w:r><w:{mark}/></w:r>", text)}</w:{kind}>'
    return {f"word/{kind}s.xml": Part(f"{kind}s", f"<w:{kind}s {W}>{line}{note}</w:{kind}s>")}


def _comments(text: str) -> dict[str, Part]:
    comment = f'<w:comment w:id="2" w:author="Ada" w:initials="A">{par(text)}</w:comment>'
    return {"word/comments.xml": Part("comments", f"<w:comments {W}>{comment}</w:comments>")}


def _header(kind: str, number: int, text: str) -> dict[str, Part]:
    letter = "hdr" if kind == "header" else "ftr"
    return {f"word/{kind}{number}.xml": Part(kind, f"<w:{letter} {W}>{par(text)}</w:{letter}>")}


_DIAGRAM = {
    "word/diagrams/data1.xml": Part(
        "diagramData",
        f'<dgm:dataModel {W}><dgm:ptLst><dgm:pt modelId="0" type="doc"/>'
        + "".join(
            f'<dgm:pt modelId="{n}"><dgm:t><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>'
            for n, text in enumerate(("Plan the trip", "Book the ferry"), 1)
        )
        + "</dgm:ptLst></dgm:dataModel>",
    )
}
_CHART = (
    f"<c:chartSpace {W}><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Passengers</a:t></a:r></a:p></c:rich></c:tx>"
    "</c:title><c:plotArea><c:barChart><c:ser><c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>2025</c:v></c:pt>"
    "</c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache><c:pt idx='0'><c:v>May</c:v></c:pt><c:pt idx='1'>"
    "<c:v>June</c:v></c:pt></c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache><c:pt idx='0'><c:v>810</c:v>"
    "</c:pt><c:pt idx='1'><c:v>1930</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:barChart></c:plotArea>"
    "</c:chart></c:chartSpace>"
)


_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8ffff3f0005fe02fe"
    "0def46b80000000049454e44ae426082"
)
_PICTURE = (
    '<pic:pic><pic:nvPicPr><pic:cNvPr id="1" name="map" descr="the islands"/><pic:cNvPicPr/></pic:nvPicPr>'
    '<pic:blipFill><a:blip r:embed="image1"/></pic:blipFill><pic:spPr/></pic:pic>'
)
_CHART_TYPE = {"chart": _OFFICE_TYPE + "drawingml.chart+xml"}


def _graphic(uri: str, inside: str, description: str = "") -> str:
    return (
        '<w:r><w:drawing><wp:inline><wp:extent cx="9" cy="9"/>'
        f'<wp:docPr id="1" name="G" descr="{description}"/><a:graphic><a:graphicData '
        f'uri="http://schemas.openxmlformats.org/drawingml/2006/{uri}">{inside}</a:graphicData></a:graphic>'
        "</wp:inline></w:drawing></w:r>"
    )


def word_cases() -> list[Case]:
    """The DOCX files."""

    def case(
        name: str, data: bytes, *once: str, never: tuple[str, ...] = (), rows: object = ()
    ) -> None:
        cases.append(Case(name, "docx", data, once, never, tuple(rows)))  # type: ignore[arg-type]

    cases: list[Case] = []
    case(
        "non-breaking hyphen",
        docx(
            par(
                "Order KX",
                "<w:r><w:noBreakHyphen/></w:r>",
                "4471 within 1",
                "<w:r><w:noBreakHyphen/></w:r>",
                "24 hours",
            )
        ),
        "Order KX-4471 within 1-24 hours",
    )
    case(
        "soft hyphen",
        docx(par("infor", "<w:r><w:softHyphen/></w:r>", "mation \xaddesk")),
        "information desk",
    )
    case(
        "tab, line break, tab stops",
        docx(
            par(
                "Port",
                "<w:r><w:tab/></w:r>",
                "Oban",
                "<w:r><w:br/></w:r>",
                "Pier",
                properties='<w:tabs><w:tab w:val="left" w:pos="9"/></w:tabs>',
            )
            + par("x", "<w:r><w:cr/></w:r>", "y")
        ),
        "Port Oban Pier",
        "x y",
    )
    case(
        "symbol fonts",
        docx(
            par(
                "done ",
                '<w:r><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>',
                " ",
                '<w:r><w:sym w:font="Symbol" w:char="F061"/></w:r>',
                run("\uf0b3", '<w:rFonts w:ascii="Symbol" w:hAnsi="Symbol"/>'),
                "5",
            )
        ),
        "done ✔ α≥5",
    )
    case(
        "text box (two alternatives)",
        docx(par("Before", _text_box("In the box")) + par("After")),
        "Before",
        "In the box",
        "After",
    )
    case(
        "text box (VML)",
        docx(
            par(
                "Before",
                f"<w:r><w:pict><v:shape><v:textbox><w:txbxContent>{par('In the box')}</w:txbxContent></v:textbox></v:shape></w:pict></w:r>",
            )
        ),
        "Before",
        "In the box",
    )
    case(
        "moved text",
        docx(
            par(
                '<w:moveFrom w:id="1" w:author="x"><w:r><w:t>The dog may come.</w:t></w:r></w:moveFrom>'
            )
            + par("First.")
            + par(
                '<w:moveTo w:id="2" w:author="x"><w:r><w:t>The dog may come.</w:t></w:r></w:moveTo>'
            )
        ),
        "First.",
        "The dog may come.",
    )
    case(
        "insertions, deletions",
        docx(
            par(
                "The fee is ",
                '<w:del w:id="1" w:author="x"><w:r><w:delText>40</w:delText></w:r></w:del>',
                '<w:ins w:id="2" w:author="x"><w:r><w:t>55</w:t></w:r></w:ins>',
                " pounds.",
            )
        ),
        "The fee is 55 pounds.",
        never=("40",),
    )
    case(
        "deleted paragraph mark",
        docx(par("Boats leave at ni", properties=_MARK_DELETED) + par("ne.")),
        "Boats leave at nine.",
    )
    deleted = '<w:del w:id="3" w:author="x"/>'
    case(
        "deleted row",
        docx(
            table(
                row("Mon", "9", "a"),
                row("Tue", "10", "b", properties=deleted),
                row("Wed", "11", "c"),
            )
        ),
        never=("Tue",),
        rows=(("Mon", "9", "a"), ("Wed", "11", "c")),
    )
    case(
        "hidden text, also by style",
        docx(
            par(
                "Seen ",
                run("secret", "<w:vanish/>"),
                run("private", '<w:rStyle w:val="Secret"/>'),
                run("shown", '<w:vanish w:val="0"/>'),
            )
            + par("concealed", style="Inner"),
            _HIDING,
        ),
        "Seen shown",
        never=("secret", "private", "concealed"),
    )
    case(
        "former properties",
        docx(
            par(
                run(
                    "Seen",
                    '<w:rPrChange w:id="1" w:author="x"><w:rPr><w:vanish/></w:rPr></w:rPrChange>',
                )
            )
        ),
        "Seen",
    )
    case(
        "empty cells",
        docx(table(row("", "2024", "2025"), row("Rent", "", "910"), row("Sum", "7", ""))),
        rows=(("", "2024", "2025"), ("Rent", "", "910"), ("Sum", "7", "")),
    )
    case(
        "cell of several paragraphs",
        docx(table(row(cell("Aarhus", "Harbour"), "4410", "x"))),
        rows=(("Aarhus Harbour", "4410", "x"),),
    )
    inner = table(row("mail", "a@b.c"), row("phone", "555"), columns=2)
    case(
        "nested table",
        docx(table(row("Ada", cell(inner), "Oban"))),
        "Ada",
        "mail",
        "a@b.c",
        "phone",
        "555",
        "Oban",
        rows=(("Ada", "*", "Oban"),),
    )
    span = '<w:gridSpan w:val="2"/>'
    start, goes_on = '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    case(
        "merged cells",
        docx(
            table(
                row(cell("Summer", properties=span), "z"),
                row(cell("North", properties=start), "1", "2"),
                row(cell(properties=goes_on), "3", "4"),
            )
        ),
        rows=(("Summer", "", "z"), ("North", "1", "2"), ("", "3", "4")),
    )
    case(
        "cell in a content control",
        docx(
            table(row("<w:sdt><w:sdtContent>" + cell("Skye") + "</w:sdtContent></w:sdt>", "5", "6"))
        ),
        rows=(("Skye", "5", "6"),),
    )
    case(
        "row that begins later",
        docx(table(row("2", "3", properties='<w:gridBefore w:val="1"/>'))),
        rows=(("", "2", "3"),),
    )
    headed = (
        _header("header", 1, "Contract KX-4471")
        | _header("footer", 1, "Oban Ferries Ltd")
        | _header("header", 2, "Draft of May")
    )
    refer = '<w:headerReference w:type="default" r:id="header1"/><w:footerReference w:type="default" r:id="footer1"/><w:headerReference w:type="first" r:id="header2"/>'
    case(
        "page header and footer",
        docx(par("One.", properties=_sect(refer)) + par("Two.") + _sect(refer), parts=headed),
        "Contract KX-4471",
        "Oban Ferries Ltd",
        "One.",
        "Two.",
        never=("Draft of May",),
    )
    refers = '<w:r><w:footnoteReference w:id="4"/></w:r>'
    case(
        "footnote",
        docx(
            par("Dogs travel free", refers, ".") + par("Cats too."),
            parts=_notes("footnote", "footnoteRef", "On weekdays only."),
        ),
        "Dogs travel free",
        "On weekdays only.",
        never=("line above",),
    )
    case(
        "endnote",
        docx(
            par("Dogs travel free", '<w:r><w:endnoteReference w:id="4"/></w:r>', "."),
            parts=_notes("endnote", "endnoteRef", "On weekdays only."),
        ),
        "Dogs travel free",
        "On weekdays only.",
        never=("line above",),
    )
    case(
        "comment",
        docx(
            par("Dogs travel free", '<w:r><w:commentReference w:id="2"/></w:r>', "."),
            parts=_comments("Is this still so?"),
        ),
        "Dogs travel free.",
        "Ada",
        "Is this still so?",
    )
    case(
        "numbers of lists and headings",
        docx(
            item(0, "Scope", "H1")
            + item(1, "Dogs", "H2")
            + item(2, "small ones")
            + item(2, "large ones")
            + item(1, "Cats", "H2"),
            parts=NUMBERING,
        ),
        "3 Scope",
        "3.1 Dogs",
        "a) small ones",
        "b) large ones",
        "3.2 Cats",
    )
    case(
        "field and its code",
        docx(
            par(
                "See page ",
                field("PAGEREF x", "12"),
                ", ",
                '<w:fldSimple w:instr=" DATE "><w:r><w:t>1 May</w:t></w:r></w:fldSimple>',
            )
        ),
        "See page 12, 1 May",
        never=("PAGEREF", "DATE"),
    )
    code = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    case(
        "field inside of a code",
        docx(
            par(
                "Dear ",
                code.format("begin"),
                "<w:r><w:instrText> IF </w:instrText></w:r>",
                field("MERGEFIELD sex", "hidden-f"),
                '<w:r><w:instrText> = "f" "Ms" </w:instrText></w:r>',
                code.format("separate"),
                "Ms",
                code.format("end"),
                " Muir",
            )
        ),
        "Dear Ms Muir",
        never=("hidden-f",),
    )
    case(
        "content control, hyperlink, smart tag",
        docx(
            par(
                "<w:sdt><w:sdtPr><w:alias w:val='x'/></w:sdtPr><w:sdtContent>"
                + run("Iona ")
                + "</w:sdtContent></w:sdt>",
                '<w:hyperlink w:anchor="b">' + run("by boat ") + "</w:hyperlink>",
                '<w:smartTag w:uri="u" w:element="e">' + run("today") + "</w:smartTag>",
            )
        ),
        "Iona by boat today",
    )
    case(
        "equation",
        docx(
            par(
                "Speed is ",
                "<m:oMath><m:f><m:num><m:r><m:t>s</m:t></m:r></m:num><m:den><m:sSup><m:e><m:r><m:t>t</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:den></m:f></m:oMath>",
                ".",
            )
        ),
        "Speed is s/(t^2).",
    )
    case(
        "ruby",
        docx(
            par(
                "<w:r><w:ruby><w:rubyPr/><w:rt>"
                + run("とうきょう")
                + "</w:rt><w:rubyBase>"
                + run("東京")
                + "</w:rubyBase></w:ruby></w:r>",
                "へ",
            )
        ),
        "東京(とうきょう)へ",
    )
    case(
        "description of a picture",
        docx(
            par("Map: ", _graphic("picture", _PICTURE, "the islands")),
            parts={"word/media/image1.png": Part("image", _PNG)},
        ),
        "Map:",
        "the islands",
    )
    case(
        "diagram (SmartArt)",
        docx(par("Steps", _graphic("diagram", '<dgm:relIds r:dm="data1"/>')), parts=_DIAGRAM),
        "Steps",
        "Plan the trip",
        "Book the ferry",
    )
    case(
        "chart",
        docx(
            par("Figures", _graphic("chart", '<c:chart r:id="chart1"/>')),
            parts={"word/charts/chart1.xml": Part("chart", _CHART)},
        ),
        "Figures",
        "Passengers",
        rows=(("", "2025"), ("May", "810"), ("June", "1930")),
    )
    case(
        "large first letter",
        docx(par("T", properties='<w:framePr w:dropCap="drop"/>') + par("he ferry leaves.")),
        "The ferry leaves.",
    )
    box = '<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:default w:val="0"/>{}</w:checkBox></w:ffData></w:fldChar></w:r><w:r><w:instrText> FORMCHECKBOX </w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
    case(
        "boxes of a form",
        docx(par(box.format("<w:checked/>"), " car ", box.format(""), " bicycle")),
        "☒ car ☐ bicycle",
    )
    return cases


# Slides

_MASTER = "ppt/slideMasters/slideMaster1.xml"


def pptx(*slides: str, parts: Mapping[str, Part] | None = None) -> bytes:
    """A presentation of `p:sld` elements; `slide1` and so on are their ids."""
    kind = _OFFICE_TYPE + "presentationml."
    listed = "".join(
        f'<p:sldId id="{256 + n}" r:id="slide{n}"/>' for n in range(1, len(slides) + 1)
    )
    master = f"<p:cSld><p:spTree>{_TREE}</p:spTree></p:cSld>"
    all_parts = {
        f"ppt/slides/slide{n}.xml": Part("slide", one) for n, one in enumerate(slides, 1)
    } | {
        _MASTER: Part(
            "slideMaster",
            f'<p:sldMaster {W}>{master}<p:clrMap bg1="lt1" tx1="dk1" bg2="lt2" tx2="dk2" accent1="accent1" accent2="accent2" accent3="accent3" accent4="accent4" accent5="accent5" accent6="accent6" hlink="hlink" folHlink="folHlink"/></p:sldMaster>',
        ),
        **{
            f"ppt/slideLayouts/slideLayout{n}.xml": Part(
                "slideLayout",
                f"<p:sldLayout {W}>{master}</p:sldLayout>",
                f"ppt/slides/slide{n}.xml",
            )
            for n in range(1, len(slides) + 1)
        },
        **(parts or {}),
    }
    kinds = ("slide", "slideMaster", "slideLayout", "notesSlide", "comments", "commentAuthors")
    return _package(
        "ppt/presentation.xml",
        kind + "presentation.main+xml",
        f'<p:presentation {W}><p:sldMasterIdLst><p:sldMasterId id="2147483648" r:id="slideMaster1"/></p:sldMasterIdLst>'
        f'<p:sldIdLst>{listed}</p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/></p:presentation>',
        all_parts,
        _CHART_TYPE | {one: f"{kind}{one}+xml" for one in kinds},
        [
            (f"ppt/slideLayouts/slideLayout{n}.xml", "slideMaster", _MASTER)
            for n in range(1, len(slides) + 1)
        ],
    )


_TREE = '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'


def slide(*shapes: str, attributes: str = "", root: str = "sld") -> str:
    """A slide, its layout or its notes."""
    return f"<p:{root} {W} {attributes}><p:cSld><p:spTree>{_TREE}{''.join(shapes)}</p:spTree></p:cSld></p:{root}>"


def shape(*paragraphs: str, placeholder: str = "", attributes: str = "") -> str:
    """A shape of paragraphs, or plain texts."""
    inside = "".join(
        one if one.startswith("<") else f"<a:p><a:r><a:t>{one}</a:t></a:r></a:p>"
        for one in paragraphs
    )
    box = "" if placeholder else ' txBox="1"'
    holder = f'<p:ph type="{placeholder}"/>' if placeholder else ""
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="S" {attributes}/><p:cNvSpPr{box}/><p:nvPr>{holder}</p:nvPr></p:nvSpPr><p:spPr/>'
        f"<p:txBody><a:bodyPr/>{inside}</p:txBody></p:sp>"
    )


def frame(uri: str, inside: str) -> str:
    """A table, chart or diagram of a slide."""
    return (
        '<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="4" name="F"/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr>'
        '<p:xfrm><a:off x="0" y="0"/><a:ext cx="9" cy="9"/></p:xfrm><a:graphic><a:graphicData '
        f'uri="http://schemas.openxmlformats.org/drawingml/2006/{uri}">{inside}</a:graphicData></a:graphic></p:graphicFrame>'
    )


def slide_table(*rows: tuple[str, ...]) -> str:
    """A table of a slide; a cell may begin with attributes in brackets."""
    lines = []
    for cells in rows:
        line = ""
        for one in cells:
            attributes, _, text = one.rpartition("]")
            run_of = f"<a:r><a:t>{text}</a:t></a:r>" if text else ""
            line += f"<a:tc {attributes.lstrip('[')}><a:txBody><a:bodyPr/><a:p>{run_of}</a:p></a:txBody><a:tcPr/></a:tc>"
        lines.append(f'<a:tr h="9">{line}</a:tr>')
    grid = '<a:gridCol w="9"/>' * len(rows[0])
    return frame("table", f"<a:tbl><a:tblPr/><a:tblGrid>{grid}</a:tblGrid>{''.join(lines)}</a:tbl>")


def _numbered(text: str, form: str = "arabicPeriod", level: int = 0) -> str:
    return f'<a:p><a:pPr lvl="{level}"><a:buAutoNum type="{form}"/></a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'


def slide_cases() -> list[Case]:
    """The PPTX files."""

    def case(
        name: str, data: bytes, *once: str, never: tuple[str, ...] = (), rows: object = ()
    ) -> None:
        cases.append(Case(name, "pptx", data, once, never, tuple(rows)))  # type: ignore[arg-type]

    cases: list[Case] = []
    title = shape("Fares", placeholder="title")
    first = "ppt/slides/slide1.xml"
    case("title that stands last", pptx(slide(shape("From 1 May"), title)), "Fares", "From 1 May")
    case(
        "table",
        pptx(slide(title, slide_table(("Port", "Adult", "Child"), ("Oban", "12", "6")))),
        "Fares",
        rows=(("Port", "Adult", "Child"), ("Oban", "12", "6")),
    )
    case(
        "empty cells",
        pptx(slide(slide_table(("", "2024", "2025"), ("Oban", "", "6")))),
        rows=(("", "2024", "2025"), ("Oban", "", "6")),
    )
    case(
        "merged cells",
        pptx(
            slide(
                slide_table(
                    ('[gridSpan="2"]Summer', '[hMerge="1"]', "z"),
                    ('[rowSpan="2"]Oban', "1", "2"),
                    ('[vMerge="1"]', "3", "4"),
                )
            )
        ),
        rows=(("Summer", "", "z"), ("Oban", "1", "2"), ("", "3", "4")),
    )
    two = "<a:p><a:r><a:t>Oban</a:t></a:r></a:p><a:p><a:r><a:t>Pier 2</a:t></a:r></a:p>"
    case(
        "cell of two paragraphs",
        pptx(slide(slide_table(("x", "12")).replace("<a:p><a:r><a:t>x</a:t></a:r></a:p>", two))),
        rows=(("Oban Pier 2", "12"),),
    )
    notes = {
        "ppt/notesSlides/notesSlide1.xml": Part(
            "notesSlide",
            slide(
                shape("Say hello first", placeholder="body"),
                shape("7", placeholder="sldNum"),
                root="notes",
            ),
            first,
        )
    }
    case(
        "speaker's notes", pptx(slide(title), parts=notes), "Fares", "Say hello first", never=("7",)
    )
    case(
        "hidden slide",
        pptx(slide(title), slide(shape("Old fares"), attributes='show="0"'), slide(shape("Times"))),
        "Fares",
        "Times",
        never=("Old fares",),
    )
    case(
        "hidden shape",
        pptx(slide(title, shape("Old fares", attributes='hidden="1"'))),
        "Fares",
        never=("Old fares",),
    )
    group = '<p:grpSp><p:nvGrpSpPr><p:cNvPr id="5" name="g"{}/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>{}</p:grpSp>'
    case(
        "groups of shapes",
        pptx(slide(title, group.format("", shape("Outer") + group.format("", shape("Inner"))))),
        "Fares",
        "Outer",
        "Inner",
    )
    case(
        "hidden group",
        pptx(slide(title, group.format(' hidden="1"', shape("Outer")))),
        "Fares",
        never=("Outer",),
    )
    case(
        "slide number, date, footer",
        pptx(
            slide(
                title, shape("Oban Ferries", placeholder="ftr"), shape("77", placeholder="sldNum")
            ),
            slide(shape("Times"), shape("Oban Ferries", placeholder="ftr")),
        ),
        "Fares",
        "Oban Ferries",
        "Times",
        never=("77",),
    )
    case(
        "numbered list",
        pptx(
            slide(
                shape(
                    _numbered("Pack"),
                    _numbered("socks", "alphaLcParenR", 1),
                    _numbered("shoes", "alphaLcParenR", 1),
                    _numbered("Leave"),
                )
            )
        ),
        "1. Pack",
        "a) socks",
        "b) shoes",
        "2. Leave",
    )
    case(
        "line break, field",
        pptx(
            slide(
                shape(
                    '<a:p><a:r><a:t>Ferry</a:t></a:r><a:br/><a:r><a:t>times</a:t></a:r><a:fld id="{1}" type="datetime1"><a:t> 1 May</a:t></a:fld></a:p>'
                )
            )
        ),
        "Ferry times 1 May",
    )
    case(
        "arrow of a font of signs",
        pptx(
            slide(
                shape(
                    '<a:p><a:r><a:t>Oban </a:t></a:r><a:r><a:rPr><a:sym typeface="Wingdings"/></a:rPr><a:t>à</a:t></a:r><a:r><a:t> Mull</a:t></a:r></a:p>'
                )
            )
        ),
        "Oban → Mull",
    )
    case("soft hyphen", pptx(slide(shape("infor\xadmation"))), "information")
    alternatives = f'<mc:AlternateContent><mc:Choice Requires="a14">{shape("New")}</mc:Choice><mc:Fallback>{shape("New")}</mc:Fallback></mc:AlternateContent>'
    case("alternatives", pptx(slide(title, alternatives)), "Fares", "New")
    case(
        "equation",
        pptx(
            slide(
                shape(
                    '<a:p><a:r><a:t>Speed </a:t></a:r><mc:AlternateContent><mc:Choice Requires="a14"><a14:m><m:oMath><m:f><m:num><m:r><m:t>s</m:t></m:r></m:num><m:den><m:r><m:t>t</m:t></m:r></m:den></m:f></m:oMath></a14:m></mc:Choice></mc:AlternateContent></a:p>'
                )
            )
        ),
        "Speed s/t",
    )
    diagram = {
        name.replace("word/", "ppt/"): part.__class__(part.relation, part.content, first)
        for name, part in _DIAGRAM.items()
    }
    case(
        "diagram (SmartArt)",
        pptx(slide(title, frame("diagram", '<dgm:relIds r:dm="data1"/>')), parts=diagram),
        "Fares",
        "Plan the trip",
        "Book the ferry",
    )
    case(
        "chart",
        pptx(
            slide(title, frame("chart", '<c:chart r:id="chart1"/>')),
            parts={"ppt/charts/chart1.xml": Part("chart", _CHART, first)},
        ),
        "Fares",
        "Passengers",
        rows=(("", "2025"), ("May", "810"), ("June", "1930")),
    )
    picture = '<p:pic><p:nvPicPr><p:cNvPr id="6" name="P" descr="the islands"/><p:cNvPicPr/><p:nvPr/></p:nvPicPr><p:blipFill/><p:spPr/></p:pic>'
    case("description of a picture", pptx(slide(title, picture)), "Fares", "the islands")
    comments = {
        "ppt/comments/comment1.xml": Part(
            "comments",
            f'<p:cmLst {W}><p:cm authorId="0" idx="1"><p:pos x="1" y="1"/><p:text>Is this still so?</p:text></p:cm></p:cmLst>',
            first,
        ),
        "ppt/commentAuthors.xml": Part(
            "commentAuthors",
            f'<p:cmAuthorLst {W}><p:cmAuthor id="0" name="Ada" initials="A"/></p:cmAuthorLst>',
        ),
    }
    case("comment", pptx(slide(title), parts=comments), "Fares", "Ada", "Is this still so?")
    layout = {
        "ppt/slideLayouts/slideLayout1.xml": Part(
            "slideLayout",
            slide(
                shape("Oban Ferries"),
                shape("Click to add text", placeholder="body"),
                root="sldLayout",
            ),
            first,
        )
    }
    case(
        "text of the layout",
        pptx(slide(title), parts=layout),
        "Fares",
        "Oban Ferries",
        never=("Click to",),
    )
    return cases


# OpenDocument


def odf(
    body: str,
    styles: str = "",
    pages: str = "",
    kind: str = "text",
    parts: Mapping[str, str] | None = None,
) -> bytes:
    """An OpenDocument file with these automatic styles and master pages."""
    mimetype = f"application/vnd.oasis.opendocument.{kind}"
    names = ("content.xml", "styles.xml", *(parts or {}))
    entries = "".join(
        f'<m:file-entry m:full-path="{name}" m:media-type="text/xml"/>' for name in names
    )
    return _zipped(
        {
            "mimetype": mimetype,
            "META-INF/manifest.xml": f'{XML}<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><m:file-entry m:full-path="/" m:media-type="{mimetype}"/>{entries}</m:manifest>',
            "styles.xml": f"{XML}<office:document-styles {O}><office:styles/><office:master-styles>{pages}</office:master-styles></office:document-styles>",
            "content.xml": f"{XML}<office:document-content {O}><office:automatic-styles>{styles}</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
            **(parts or {}),
        }
    )


def odf_table(*rows: tuple[str, ...]) -> str:
    """A table; a cell that begins with `<` is written as it is."""
    lines = ""
    for cells in rows:
        inside = "".join(
            one
            if one.startswith("<")
            else f"<table:table-cell><text:p>{one}</text:p></table:table-cell>"
            for one in cells
        )
        lines += f"<table:table-row>{inside}</table:table-row>"
    return f"<table:table><table:table-column/>{lines}</table:table>"


def _p(text: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style or "Standard"}">{text}</text:p>'


def _odp_frame(purpose: str, *paragraphs: str, attributes: str = "") -> str:
    inside = "".join(map(_p, paragraphs))
    return f'<draw:frame presentation:class="{purpose}" {attributes}><draw:text-box>{inside}</draw:text-box></draw:frame>'


def open_document_cases() -> list[Case]:
    """The ODT and ODP files."""

    def case(
        name: str,
        data: bytes,
        *once: str,
        never: tuple[str, ...] = (),
        rows: object = (),
        kind: str = "odt",
    ) -> None:
        cases.append(Case(name, kind, data, once, never, tuple(rows)))  # type: ignore[arg-type]

    cases: list[Case] = []
    case(
        "non-breaking and soft hyphen",
        odf(_p("Order KX\u20114471") + _p("infor\xadmation")),
        "Order KX-4471",
        "information",
    )
    case(
        "runs of spaces, tab, line break",
        odf(_p('a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d<text:soft-page-break/>e')),
        "a b c de",
    )
    case(
        "white space of the file",
        odf("<text:p>\n  One\n  <text:span>two</text:span>\n  three</text:p>"),
        "One two three",
    )
    deleted = '<text:tracked-changes><text:changed-region xml:id="c" text:id="c"><text:deletion><office:change-info><dc:creator>Ada</dc:creator></office:change-info><text:p>Old words</text:p></text:deletion></text:changed-region></text:tracked-changes>'
    case(
        "tracked deletion",
        odf(deleted + _p('New <text:change text:change-id="c"/>words')),
        "New words",
        never=("Old", "Ada"),
    )
    hiding = '<style:style style:name="T1" style:family="text"><style:text-properties text:display="none"/></style:style><style:style style:name="P1" style:family="paragraph"><style:text-properties text:display="none"/></style:style><style:style style:name="P2" style:family="paragraph" style:parent-style-name="P1"/>'
    case(
        "hidden text, also by style",
        odf(
            _p('Seen <text:span text:style-name="T1">secret</text:span>here') + _p("private", "P2"),
            hiding,
        ),
        "Seen here",
        never=("secret", "private"),
    )
    case(
        "hidden section",
        odf(
            f'<text:section text:name="s" text:display="none">{_p("secret")}</text:section><text:section text:name="t">{_p("Seen")}</text:section>'
        ),
        "Seen",
        never=("secret",),
    )
    case(
        "hidden paragraph, hidden text field",
        odf(
            _p('secret<text:hidden-paragraph text:is-hidden="true"/>')
            + _p('Seen<text:hidden-text text:is-hidden="true">private</text:hidden-text>')
        ),
        "Seen",
        never=("secret", "private"),
    )
    note = '<text:note text:id="n" text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>On weekdays only.</text:p></text:note-body></text:note>'
    case(
        "footnote",
        odf(_p(f"Dogs travel free{note}.") + _p("Cats too.")),
        "Dogs travel free",
        "On weekdays only.",
        "Cats too.",
    )
    case(
        "comment",
        odf(
            _p(
                "Dogs travel free<office:annotation><dc:creator>Ada</dc:creator><dc:date>2026-05-01</dc:date><text:p>Is this still so?</text:p></office:annotation>."
            )
        ),
        "Dogs travel free.",
        "Ada",
        "Is this still so?",
        never=("2026",),
    )
    case(
        "empty cells",
        odf(odf_table(("", "2024", "2025"), ("Rent", "", "910"))),
        rows=(("", "2024", "2025"), ("Rent", "", "910")),
    )
    covered = "<table:covered-table-cell/>"
    spanned = '<table:table-cell table:number-columns-spanned="2"><text:p>Summer</text:p></table:table-cell>'
    case(
        "merged cells",
        odf(odf_table((spanned, covered, "z"), ("Oban", "1", "2"), (covered, "3", "4"))),
        rows=(("Summer", "", "z"), ("Oban", "1", "2"), ("", "3", "4")),
    )
    case(
        "repeated cells",
        odf(
            odf_table(
                (
                    '<table:table-cell table:number-columns-repeated="2"><text:p>x</text:p></table:table-cell>',
                    "y",
                )
            )
        ),
        rows=(("x", "x", "y"),),
    )
    case(
        "cell of several paragraphs",
        odf(
            odf_table(
                (
                    "<table:table-cell><text:p>Aarhus</text:p><text:list><text:list-item><text:p>Harbour</text:p></text:list-item></text:list></table:table-cell>",
                    "4410",
                )
            )
        ),
        rows=(("Aarhus Harbour", "4410"),),
    )
    nested = (
        f"<table:table-cell>{odf_table(('mail', 'a@b.c'), ('phone', '555'))}</table:table-cell>"
    )
    case(
        "nested table",
        odf(odf_table(("Ada", nested, "Oban"))),
        "Ada",
        "mail",
        "a@b.c",
        "phone",
        "555",
        "Oban",
        rows=(("Ada", "*", "Oban"),),
    )
    pages = "".join(
        f'<style:master-page style:name="{name}"><style:header>{_p(header)}</style:header><style:header-left style:display="false">{_p("No left page")}</style:header-left><style:footer>{_p("Oban Ferries")}</style:footer></style:master-page>'
        for name, header in (("Standard", "Contract KX-4471"), ("Landscape", "Never used"))
    )
    case(
        "page header and footer",
        odf(_p("One."), pages=pages),
        "Contract KX-4471",
        "Oban Ferries",
        "One.",
        never=("Never used", "No left page"),
    )
    case(
        "text box",
        odf(
            _p(f"Before<draw:frame><draw:text-box>{_p('In the box')}</draw:text-box></draw:frame>")
            + _p("After")
        ),
        "Before",
        "In the box",
        "After",
    )
    case(
        "text in a drawn shape",
        odf(_p(f"Before<draw:custom-shape>{_p('In the star')}</draw:custom-shape>") + _p("After")),
        "Before",
        "In the star",
        "After",
    )
    case(
        "picture with a caption",
        odf(
            _p(
                f"<draw:frame><draw:text-box>{_p('<draw:frame><draw:image/><svg:desc>the islands</svg:desc></draw:frame>Figure 1')}</draw:text-box></draw:frame>"
            )
        ),
        "the islands",
        "Figure 1",
    )
    levels = '<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/><text:list-level-style-number text:level="2" style:num-format="a" style:num-suffix=")"/></text:list-style>'
    items = f'<text:list text:style-name="L1"><text:list-item>{_p("Pack")}<text:list><text:list-item>{_p("socks")}</text:list-item><text:list-item>{_p("shoes")}</text:list-item></text:list></text:list-item><text:list-item>{_p("Leave")}</text:list-item></text:list>'
    case("numbers of lists", odf(items, levels), "1. Pack", "a) socks", "b) shoes", "2. Leave")
    outline = '<text:outline-style style:name="Outline"><text:outline-level-style text:level="1" style:num-format="1"/><text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/></text:outline-style>'
    headings = "".join(
        f'<text:h text:outline-level="{level}">{text}</text:h>'
        for level, text in ((1, "Scope"), (2, "Dogs"), (2, "Cats"), (1, "Fees"))
    )
    case("numbers of headings", odf(headings, outline), "1 Scope", "1.1 Dogs", "1.2 Cats", "2 Fees")
    case(
        "ruby",
        odf(
            _p(
                "<text:ruby><text:ruby-base>東京</text:ruby-base><text:ruby-text>とうきょう</text:ruby-text></text:ruby>へ"
            )
        ),
        "東京(とうきょう)へ",
    )
    case(
        "field, hyperlink, bookmark",
        odf(
            _p(
                'See <text:bookmark-start text:name="b"/>page <text:page-number>12</text:page-number><text:bookmark-end text:name="b"/>, <text:a xlink:href="https://a.example">here</text:a>'
            )
        ),
        "See page 12, here",
    )
    math = {
        "Object 1/content.xml": '<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mrow><mi>v</mi><mo>=</mo><mfrac><mi>s</mi><mi>t</mi></mfrac></mrow><annotation>v = s over t</annotation></semantics></math>'
    }
    case(
        "equation",
        odf(
            _p('Speed is <draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>.'),
            parts=math,
        ),
        "v=s/t",
        never=("over",),
    )
    notes = f"<presentation:notes>{_odp_frame('notes', 'Say hello first')}</presentation:notes>"
    page = '<draw:page draw:name="p" draw:style-name="{}">{}</draw:page>'
    unseen = '<style:style style:name="dp2" style:family="drawing-page"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    body = page.format(
        "dp1", _odp_frame("outline", "From 1 May") + _odp_frame("title", "Fares") + notes
    )
    case(
        "title and notes of a slide",
        odf(body, kind="presentation"),
        "Fares",
        "From 1 May",
        "Say hello first",
        kind="odp",
    )
    case(
        "hidden slide",
        odf(
            body + page.format("dp2", _odp_frame("title", "Old fares")), unseen, kind="presentation"
        ),
        "Fares",
        never=("Old fares",),
        kind="odp",
    )
    case(
        "table of a slide",
        odf(
            page.format(
                "dp1",
                f"<draw:frame>{odf_table(('Port', '', 'Child'), ('Oban', '12', '6'))}</draw:frame>",
            ),
            kind="presentation",
        ),
        rows=(("Port", "", "Child"), ("Oban", "12", "6")),
        kind="odp",
    )
    case(
        "empty placeholder",
        odf(
            page.format(
                "dp1",
                _odp_frame("title", "Fares")
                + _odp_frame(
                    "outline", "Click to add text", attributes='presentation:placeholder="true"'
                ),
            ),
            kind="presentation",
        ),
        "Fares",
        never=("Click to",),
        kind="odp",
    )
    case(
        "group of shapes",
        odf(
            page.format(
                "dp1",
                f"<draw:g><draw:custom-shape>{_p('Outer')}</draw:custom-shape><draw:g><draw:custom-shape>{_p('Inner')}</draw:custom-shape></draw:g></draw:g>",
            ),
            kind="presentation",
        ),
        "Outer",
        "Inner",
        kind="odp",
    )
    return cases


def compared(text: str) -> str:
    """A text as it is compared: hyphens alike, spaces joined, without the marks of Markdown."""
    return " ".join(text.replace("\u2011", "-").replace("**", "").replace("\\", "").split())


def failures(case: Case, text: str) -> list[str]:
    """What is wrong with a parser's text; empty if it is right."""
    whole = compared(text)
    found = [
        f"{one!r} stands {whole.count(one)} times" for one in case.once if whole.count(one) != 1
    ]
    places = [whole.find(one) for one in case.once]
    if not found and places != sorted(places):
        found.append("order")
    found += [f"{one!r} is there" for one in case.never if one in whole]
    lines = [tuple(compared(one) for one in line.split("|")) for line in text.splitlines()]
    lines += [line[1:-1] for line in lines]  # Markdown begins and ends a row with a bar
    found += [
        f"no row {row}"
        for row in case.rows
        if not any(
            len(line) == len(row)
            and all(one in ("*", cell) for one, cell in zip(row, line, strict=True))
            for line in lines
        )
    ]
    return found
