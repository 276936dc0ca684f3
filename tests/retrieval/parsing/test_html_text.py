# ruff: noqa: E501
"""What of an HTML page is indexed: what its reader sees, in the order in which it is seen."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.retrieval.parsing.html_text import extract_html
from engine.retrieval.parsing.text_builder import TextTooLong
from engine.retrieval.parsing.text_encoding import decode_html

_MOST = 1 << 20


def text(markup: str, *, mail: bool = False) -> str:
    return extract_html(markup, _MOST, mail=mail).text.strip("\n")


def headings(markup: str) -> list[tuple[int, str]]:
    return [(one.level, one.title) for one in extract_html(markup, _MOST).headings]


class TestControls:
    def test_a_question_in_a_button_is_kept_with_its_answer(self) -> None:
        page = "<h2><button>How do I reset it?</button></h2><div>Hold the key.</div>"
        assert text(page) == "How do I reset it?\n\nHold the key."
        assert headings(page) == [(2, "How do I reset it?")]

    @pytest.mark.parametrize(
        ("markup", "expected"),
        [
            ("<p>Press <button>Save</button> now", "Press Save now"),
            ("<button>One</button><button>Two</button>", "One Two"),
            ("<p>a<button>\u00d7</button>b", "ab"),
            ("<p>a<button><p>b</p></button>c", "a\n\nb\n\nc"),
            ("<pre>x = 1<button class=copy>Copy</button></pre>", "x = 1"),
            ("<details><summary>More</summary>It is so.</details>", "More\nIt is so."),
            ("<dialog>Terms apply.</dialog>", "Terms apply."),
            ("<select><option>S<option>M<optgroup><option label=Large>x</select>", "S, M, Large"),
            (
                f"<select>{'<option>x' * 40}<option selected>Denmark</select>",
                "Denmark",
            ),
            ("<textarea>\none\n  two</textarea>", "one\n  two"),
            ("<input type=submit value=Send><input value=Ada><input type=hidden value=h>", "Send Ada"),
            ("<input type=checkbox checked> done <input type=checkbox> open", "[x] done [ ] open"),
            ("<input type=password value=secret>a", "a"),
            ("<input type=image alt=Go>", "Go"),
            ("<datalist><option>x</datalist>a", "a"),
        ],
    )  # fmt: skip
    def test_what_a_field_shows(self, markup: str, expected: str) -> None:
        assert text(markup) == expected


class TestTables:
    @pytest.mark.parametrize(
        ("rows", "expected"),
        [
            ("<tr><td><p>Aarhus</p></td><td><p>4410</p></td></tr>", "Aarhus | 4410"),
            ("<tr><td><div>Main St</div><div>5</div><td><ul><li>a<li>b</ul>", "Main St 5 | - a - b"),
            ("<tr><th><th>2023<th>2024<tr><th>Sales<td>1<td>2", " | 2023 | 2024\nSales | 1 | 2"),
            ("<tr><td>a<td><td>c<tr><td>d<td>e<td>", "a |  | c\nd | e |"),
            ("<tr><td>a<td>&nbsp;<td>c<tr><td>d<td><td>f", "a | c\nd | f"),
            ("<tr><td rowspan=2>Fruit<td>Apple<tr><td>Pear", "Fruit | Apple\nFruit | Pear"),
            ("<tr><td>x<td rowspan=0>y<tr><td>z", "x | y\nz | y"),
            ("<tr><td colspan=2>Both<td>c<tr><td>a<td>b<td>d", "Both |  | c\na | b | d"),
            ("<tr><td colspan=99999>All<tr><td>a<td>b", "All\na | b"),
            ("<tfoot><tr><td>Sum<td>2<tbody><tr><td>a<td>2<thead><tr><th>A<th>B", "A | B\na | 2\nSum | 2"),
            ("<caption>Ports</caption><tr><td>a<td>b", "Ports\na | b"),
            ("<tr><td>a<td><table><tr><td>b<td>c</table>", "a | b, c"),
            (
                "<tr><th>K<th>V<tr><td>x<td>See <table><tr><td>a<td><tr><td>b<td>c</table><td>",
                "K | V\nx | See a; b, c",
            ),
            ("<tr><td>a | b<td>c", r"a \| b | c"),
            ("<tr><td>a<td><table><tr><td>b | c<td>d</table>", r"a | b \| c, d"),
            ("<tr><td>a<br>b<td>c", "a b | c"),
            ("<tr><td hidden>x<td>a<td>b", "a | b"),
            ("<tr><td>a<td><input value=7>", "a | 7"),
            ("<tr><td>one<tr><td>two", "one\ntwo"),
            ("<tr><td><h4>Port</h4><td><blockquote>Aarhus</blockquote>", "Port | Aarhus"),
            ("<tr><th>A<th>B<tr><td><h4>Port</h4><p>of call<td><pre>x\ny</pre>", "A | B\nPort of call | x y"),
        ],
    )  # fmt: skip
    def test_rows_and_columns(self, rows: str, expected: str) -> None:
        assert text(f"<table>{rows}</table>") == expected

    def test_text_outside_of_cells_stands_before_the_table(self) -> None:
        assert text("<table>foster<tr><td>x<td>y</table>z") == "foster\n\nx | y\n\nz"

    def test_a_layout_table_is_no_table(self) -> None:
        page = (
            "<table role=presentation><tr><td><table><tr><td><h1>Hello</h1><p>You paid.</td></tr>"
            "<tr><td><table><tr><td>Order<td>4410<tr><td>Total<td>9 €</table></table></table>"
        )
        assert text(page) == "Hello\n\nYou paid.\n\nOrder | 4410\nTotal | 9 €"
        assert headings(page) == [(1, "Hello")]

    def test_a_column_of_text_beside_another_is_no_row(self) -> None:
        article = "<p>" + "word " * 200
        page = f"<table><tr><td>Menu<td><h2>Head</h2>{article}</table>"
        assert text(page).startswith("Menu\n\nHead\n\nword word")

    def test_numbers_of_lines_are_no_text(self) -> None:
        page = (
            "<table><tr><td class=linenos><pre>1\n2</pre><td class=code><pre>a\n  b</pre></table>"
        )
        assert text(page) == "a\n  b"

    def test_tables_by_role_and_by_style(self) -> None:
        row = "<div role=row><span role=rowheader>a</span><span role=cell>b</span></div>"
        assert text(f"<div role=table>{row}</div>") == "a | b"
        row = '<p style="display:table-row"><span style="display: table-cell">a</span>'
        row += "<span style='display:table-cell'>b</span>"
        assert text(f"<div style='display:table'>{row}</div>") == "a | b"

    def test_a_chunk_may_begin_at_each_row(self) -> None:
        found = extract_html("<table><tr><td>a<td>b<tr><td>c<td>d</table>", _MOST)
        assert [found.text[one] for one in found.breaks] == ["a", "c"]


class TestLines:
    @pytest.mark.parametrize(
        ("markup", "expected"),
        [
            ("<b>a</b>b <i>c</i>", "ab c"),
            ("<p>a<p>b", "a\n\nb"),
            ("<div>a</div><div>b</div>", "a\nb"),
            ("a<br>b<br><br>c<hr>d", "a\nb\n\nc\n\nd"),
            ("fire<wbr>fly in&shy;dex 1&nbsp;000 zero\u200bwidth", "firefly index 1 000 zerowidth"),
            ("&copy 2024 &notit; &#x41;&#66; &amp", "© 2024 ¬it; AB &"),
            ("<pre>\na\n  b\tc</pre>d", "a\n  b\tc\n\nd"),
            ("<p>x  \n <code>a  b</code>  y", "x a b y"),
            ("<p style='white-space: pre-wrap'>a\n  b", "a\n  b"),
            ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n  - b\n- c"),
            ("<ol start=3><li>a<ol type=a><li>x<li>y</ol><li value=9>b</ol>", "3. a\n  a. x\n  b. y\n9. b"),
            ("<ol reversed type=I><li>a<li>b</ol>", "II. a\nI. b"),
            ("<ul><li><p>a</p><p>b</p><li></li><li><p>c</ul>", "- a\n\nb\n- c"),
            ("<dl><dt>Price<dd>42<dt>Size:<dd>S<dd>M</dl>", "Price: 42\nSize: S\nM"),
            ("<dl><dt>f(x)<dd><p>It returns.</p></dl>", "f(x)\n\nIt returns."),
            ("<figure><img alt=Fig src=x><figcaption>Cap</figcaption></figure>", "Fig\nCap"),
            ("10<sup>6</sup> m<sup>2</sup> 1<sup>st</sup> CO<sub>2</sub>", "10⁶ m² 1st CO2"),
            ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp>字<rt>ji</rt></ruby>", "漢字(kanji)"),
            ("was <span style='text-decoration: line-through'>$20</span> $15", "was ~~$20~~ $15"),
            ("<q>yes</q> <s>$20</s> $15 <del>$30</del><ins>$9</ins>", "“yes” ~~$20~~ $15 $9"),
            ("<math><mfrac><mn>1</mn><mi>x</mi></mfrac></math>", "1/x"),
            ("<math><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><msqrt><mi>y</mi></msqrt></math>", "x^2+√y"),
            ("<math><mi>E</mi><annotation encoding='application/x-tex'>E=m</annotation></math>", "E=m"),
            ("<svg><title>t</title><text>Axis</text><path d=x></svg>", "Axis"),
            ("<svg role=img aria-label='A plan'><path></svg>", "A plan"),
            ("a<svg><foreignObject><p>in</p></foreignObject></svg>", "a\n\nin"),
            ("<iframe srcdoc='<p>in&amp;side</p>'>no</iframe>", "in&side"),
            ("<div style='display:flex'><span>Name</span><span>Ada</span></div>", "Name Ada"),
            ("<span style='display:block'>a</span><span>b</span>", "a\n\nb"),
            ("x<img src='data:image/png;base64,AAAA' alt=dog>y", "x dog y"),
            ("ok<img class=emoji alt=😀>", "ok😀"),
            ("<video>no</video><audio>no</audio><object>no</object><canvas>no</canvas>a", "a"),
            ("<div>a<template shadowrootmode=open><p>b</template></div><template>c</template>", "a\n\nb"),
        ],
    )  # fmt: skip
    def test_layout(self, markup: str, expected: str) -> None:
        assert text(markup) == expected

    def test_headings(self) -> None:
        page = (
            "<title>A <b>page</title><h1>One<br>two</h1><div role=heading aria-level=3>Three</div>x"
            "<h2></h2>"
        )
        assert headings(page) == [(1, "One two"), (3, "Three")]
        assert extract_html(page, _MOST).title == "A <b>page"

    def test_a_heading_that_does_not_end_is_no_section_title_of_a_page(self) -> None:
        page = "<h1>Title<p>" + "word " * 100 + "<p>last"
        assert headings(page) == [(1, "Title")]
        assert text(page).endswith("\n\nlast")

    def test_the_title_of_a_drawing_is_not_that_of_the_page(self) -> None:
        assert extract_html("<svg><title>icon</title></svg>a", _MOST).title is None


class TestMarkup:
    @pytest.mark.parametrize(
        ("markup", "expected"),
        [
            ("<p>a</p><p hidden>x<p>rest", "a\n\nrest"),
            ("<ul><li hidden>x<li>rest</ul>", "- rest"),
            ("<p>a<span hidden>x<p>rest", "a\n\nrest"),
            ("<p>a<i aria-hidden=true>\u00d7<p>rest", "a\n\nrest"),
            ("<!--><p>shown", "shown"),
            ("<!---><p>shown<!--a--!>b<!--c", "shownb"),
            ("a<![CDATA[x]]>b<?php echo ?>c", "abc"),
            ("a<!--[if mso]>x<![endif]-->b<![if !mso]>c<![endif]>", "abc"),
            ("<p>a</div></span></p>b", "a\n\nb"),
            ("<b><p>a</b>b</p>c", "ab\n\nc"),
            ("a</br>b</p>c", "a\nb\n\nc"),
            ("<a href=x>a<a href=y>b</a>", "ab"),
            ("<form><form>a</form></form>", "a"),
            ("a<script>x</script><style>y</style>b<script>", "ab"),
            ("<title>t</title", ""),
            ("<plaintext>a</b>", "a</b>"),
        ],
    )  # fmt: skip
    def test_it_is_read_as_browsers_read_it(self, markup: str, expected: str) -> None:
        assert text(markup) == expected

    def test_xhtml_closes_any_element(self) -> None:
        page = (
            '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/>'
            '<script src="x"/></head><body><div class="a"/><p>a<![CDATA[ <b> ]]></p><br/></body></html>'
        )
        assert text(page) == "a <b>"

    @pytest.mark.parametrize(
        "encoding", ["utf-16", "utf-8-sig", "koi8-r", "shift_jis", "iso-2022-jp"]
    )
    def test_character_sets(self, encoding: str) -> None:
        word = "日本" if encoding in ("shift_jis", "iso-2022-jp") else "Река"
        page = f"<meta charset={encoding}><p>{word}".encode(encoding)
        assert text(decode_html(page)) == word

    def test_a_declaration_in_xml_names_the_character_set(self) -> None:
        page = "<?xml version='1.0' encoding='iso-8859-2'?><html><p>łąka</html>"
        assert text(decode_html(page.encode("iso-8859-2"))) == "łąka"

    def test_latin_1_is_what_browsers_make_of_it(self) -> None:
        assert text(decode_html(b"<meta charset=iso-8859-1>\x93caf\xe9\x94 \x80")) == "“café” €"


class TestHidden:
    @pytest.mark.parametrize(
        "panel",
        [
            "<div role=tabpanel hidden>in</div>",
            "<div hidden=until-found>in</div>",
            "<button aria-controls=p>b</button><section id=p style='display:none'>in</section>",
            "<a href='#p'>b</a><div id=p class=tab-pane style='display: none'>in</div>",
            "<button aria-expanded=false>b</button><div hidden>in</div>",
            "<h3><button>b</button></h3><div hidden>in</div>",
            "<h3>b</h3><div style='display:none'>in</div><h3>c</h3>",
            "<div class=faq-question>b</div><div class=x style='display:none'>in</div>",
            "<div class='accordion-body' hidden>in</div>",
            "<dt>b</dt><dd style='display:none'>in</dd>",
            "<div popover id=p>in</div>",
            "<div style='max-height:0;overflow:hidden'>in</div>",
            "<div style='opacity:0'>in</div>",
            "<div style='display:none' id=app><h1>x</h1>in</div>",
            "<div hidden style='display:block'>in</div>",
            "<p aria-hidden=true>in</p>",
            "<button data-bs-target='#m'>b</button><div id=m class=modal style='display:none'>in</div>",
            "<span style='display:none'>in</span> <a href='#'>Show more</a>",
            "<button data-bs-target='#q'>b</button><div id=q hidden>in</div>",
        ],
    )  # fmt: skip
    def test_what_a_reader_can_open_is_content(self, panel: str) -> None:
        assert "in" in text(f"<p>before</p>{panel}<p>after</p>").split()

    @pytest.mark.parametrize(
        "noise",
        [
            "<div hidden>out</div>",
            "<p style='display : NONE !important'>out</p>",
            "<span style='visibility:hidden'>out</span>",
            "<img width=1 height=1 alt=out src=x>",
            "<img style='width:1px;height:1px' alt=out src=x>",
            "<div class=error hidden>out</div>",
            "<form><button>Send</button></form><div hidden>out</div>",
            "<div id=menu role=menu>out</div>",
            "<nav>out</nav>",
            "<div style='position:absolute; left:-9999px'>out</div>",
            "<p style='font-size:0'>out</p>",
            "<a class='sr-only' href='#main'>out</a>",
            "<div id=onetrust-banner-sdk>out</div>",
            "<div class='cookie-banner'>out</div>",
            "<span class=price><span class=a-offscreen>$5</span><span aria-hidden=true>out</span></span>",
            "<h2>a<a class=headerlink href='#a'>out</a></h2>",
            "<noscript>out</noscript>",
            "<div class='spinner' style='display:none'>out</div>",
        ],
    )  # fmt: skip
    def test_what_nobody_can_see_is_not(self, noise: str) -> None:
        found = text(f"<p>before</p>{noise}<p>after</p>").split()
        assert "out" not in found
        assert (found[0], found[-1]) == ("before", "after")

    @pytest.mark.parametrize("mail", [False, True])
    def test_what_the_style_sheet_hides(self, mail: bool) -> None:
        page = (
            "<style>/* a */ .pre, td.x { display:none !important } #gone {visibility: hidden}"
            "@media print { .shown { display: none } } .late{display:none} p.late{display:block}</style>"
            "<p class='a pre'>out</p><p class=shown>one</p><div id=gone>out</div><p class=late>two"
            "<table><tr><td class=x>out<td>three<td>four</table>"
        )
        assert text(page, mail=mail) == "one\n\ntwo\n\nthree | four"

    def test_a_table_of_the_style_sheet(self) -> None:
        page = (
            "<style>.t{display:table}.r{display:table-row}.c{display:table-cell}.f{display:flex}</style>"
            "<div class=t><div class=r><div class=c>a</div><div class=c>b</div></div></div>"
            "<div class=f><span>Name</span><span>Ada</span></div>"
        )
        assert text(page) == "a | b\n\nName Ada"

    def test_navigation_that_holds_the_page_is_none(self) -> None:
        page = "<nav><a>Home</a><p>" + "The ferry leaves at nine from the harbour. " * 4
        assert "The ferry" in text(page + "<p>b</p>")
        assert text("<header role=banner><h1>T</h1></header><p>x") == "T\n\nx"

    def test_the_label_of_a_tab_stands_before_its_panel(self) -> None:
        page = (
            "<div role=tablist><button role=tab aria-controls=w>Windows</button>"
            "<button role=tab id=l>Linux</button><button role=tab>Other</button></div>"
            "<div id=w role=tabpanel>winget</div><div role=tabpanel aria-labelledby=l hidden>apt</div>"
        )
        assert text(page) == "Other\n\nWindows\nwinget\n\nLinux\napt"

    def test_letters_without_size_end_where_a_size_is_given(self) -> None:
        page = "<div style='font-size:0px'>x<div style='font-size:14px'>shown</div></div>"
        assert text(page) == "shown"

    def test_the_formula_of_katex_is_there_once(self) -> None:
        page = (
            "<span class=katex><span class=katex-mathml><math><annotation encoding='application/x-tex'>"
            "a+b</annotation></math></span><span class=katex-html aria-hidden=true>a+b</span></span>"
        )
        assert text(page) == "a+b"

    @pytest.mark.parametrize(
        "style",
        [
            "display:none;font-size:1px;max-height:0",
            "opacity:0",
            "max-height:0px;overflow:hidden",
            "width:1px;height:1px;overflow:hidden",
            "mso-hide:all",
            "font-size:1px",
        ],
    )
    def test_the_preheader_of_a_mail_is_not_its_text(self, style: str) -> None:
        page = f"<div style='{style}' class=tab>Preview</div><h1>Hello</h1><nav>You paid.</nav>"
        assert text(page, mail=True) == "Hello\n\nYou paid."

    @pytest.mark.parametrize(
        ("page", "expected"),
        [
            ("<noscript>Only <b>this</b></noscript>", "Only this"),
            ("<frameset><frame src=a><noframes><p>No frames</noframes></frameset>", "No frames"),
            ("<div id=app style='display:none'>The page</div>", "The page"),
            ("<nav><a>One</a></nav>", "One"),
        ],
    )
    def test_a_page_without_other_text(self, page: str, expected: str) -> None:
        assert text(page) == expected

    def test_the_main_part_with_the_heading_of_the_page(self) -> None:
        page = "<header><h1>T</h1>x</header><nav>n</nav><main><p>m</main><main hidden>h</main><p>f"
        assert text(page) == "T\n\nm"


_INLINE = st.sampled_from(["span", "b", "i", "a", "em", "label", "button", "sup", "u"])
_BLOCK = st.sampled_from(
    ["div", "section", "p", "blockquote", "h2", "details", "ul", "table", "dl"]
)
_LEAF = st.just("#")


def _nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.tuples(st.one_of(_INLINE, _BLOCK), st.lists(inner, max_size=4))


_TREE = st.recursive(_LEAF, _nested, max_leaves=25)


def _markup(tree: object, words: list[str]) -> str:
    if not isinstance(tree, tuple):
        words.append(f"w{len(words)}x")
        return words[-1]
    name, children = tree
    parts = [_markup(one, words) for one in children]
    match name:
        case "ul":
            return "<ul>" + "".join(f"<li>{one}</li>" for one in parts) + "</ul>"
        case "dl":
            return "<dl>" + "".join(f"<dt>{one}</dt><dd></dd>" for one in parts) + "</dl>"
        case "table":
            cells = [f"<td>{one}</td>" for one in parts]
            rows = ["".join(cells[at : at + 2]) for at in range(0, len(cells), 2)]
            return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"
    return f"<{name}>{' '.join(parts)}</{name}>"


@given(st.lists(_TREE, max_size=5))
def test_each_text_is_there_once_and_in_order(trees: list[object]) -> None:
    words: list[str] = []
    markup = "\n".join(_markup(tree, words) for tree in trees)
    found = extract_html(markup, _MOST)
    assert re.findall(r"w\d+x", found.text) == words
    for one in found.headings:
        assert " ".join(found.text[one.start :].split()).startswith(one.title)


_PIECES = st.sampled_from(
    re.findall(
        "<[^<>]*>|[^ \n]+",
        """<div> </div> <p> </p> <table> </table> <tr> <td> </td> <b> </b> <a href=x> </a> <button> </button>
        <ul> <li> </ul> <select> <option> </select> <h2> </h2> <svg> <foreignObject> </svg> <math> <mi>
        </math> <template> </template> <!--> <!-- --> <br> <title> </title> <frameset> <textarea> </textarea> <script>
        </script> <ruby> <rt> <dd> <dt> <caption> <![CDATA[ ]]> x &amp <pre> </pre> <noscript> <p hidden>
        <iframe srcdoc='&lt;p>y'> <td rowspan=9> <td colspan=9> <ol start=-5> < > & <?xml /> <s> <sup>
        <div style='font-size:0'> <dl> <del> <caption> <nav> <main> <input value=v> <img alt=a>""",
    )
)


@given(st.lists(_PIECES, max_size=40).map("".join))
def test_any_markup_has_a_text(markup: str) -> None:
    found = extract_html(markup, _MOST)
    for one in found.headings:
        assert 0 <= one.start < len(found.text)
    extract_html(markup, _MOST, mail=True)


@pytest.mark.parametrize(
    "piece",
    ["<div>", "<nav>", "<a ", "<!--", "<table><tr><td>", "<sup>", "<s>", "<ul><li>", "<h1><div>", "<dl><dt>"],
)  # fmt: skip
def test_the_depth_of_a_page_is_not_that_of_calls(piece: str) -> None:
    extract_html(piece * 2_000 + "x", _MOST)


def test_a_cell_that_spans_many_rows_ends_at_the_bound_of_the_text() -> None:
    page = "<table><tr>" + "<td rowspan=65534>word" * 300 + "<tr><td>y" * 3_000
    with pytest.raises(TextTooLong):
        extract_html(page, _MOST)


def _row_headers(markup: str) -> list[tuple[str | None, str]]:
    """The header rows, each with the line at which it begins to hold."""
    found = extract_html(f"{markup}<p>End", 10_000)
    return [
        (one.text, found.text[one.start :].strip().partition("\n")[0]) for one in found.row_headers
    ]


_BODY = "<tr><td>Apple<td>2<tr><td>Pear<td>3"


@pytest.mark.parametrize(
    ("markup", "header"),
    [
        (f"<table><tr><th>Fruit<th>Price{_BODY}</table>", "Fruit | Price"),
        (f"<table><thead><tr><td>Fruit<td>Price<tbody>{_BODY}</table>", "Fruit | Price"),
        (f"<table><tr><td>Fruit<td>Price{_BODY}</table>", "Fruit | Price"),
        (f"<table><tr><th><th>2026{_BODY}</table>", " | 2026"),
        (f"<table><tr><th colspan=2>Prices<tr><th>Fruit<th>Price{_BODY}</table>", "Fruit | Price"),
        (f"<table><tbody>{_BODY}<thead><tr><th>Fruit<th>Price</table>", "Fruit | Price"),
        (
            "<table><tr><th rowspan=2>Fruit<th colspan=2>2026<tr><th>Q1<th>Q2"
            "<tr><td>Apple<td>1<td>2<tr><td>Pear<td>3<td>4</table>",
            "Fruit | 2026 Q1 | 2026 Q2",
        ),
    ],
)
def test_rows_of_a_table_belong_to_its_header_row(markup: str, header: str) -> None:
    first, last = _row_headers(markup)
    assert first[0] == header
    assert first[1].startswith("Apple | ")
    assert last == (None, "End")


@pytest.mark.parametrize(
    "markup",
    [
        "<table><tr><th>Fruit<td>Apple<tr><th>Price<td>2</table>",
        "<table><tr><td>1<td>2<tr><td>3<td>4</table>",
        "<table role=presentation><tr><td>Fruit<td>Price<tr><td>Apple<td>2</table>",
        "<table><tr><th>Fruit<th>Price</table>",
        "<table><tr><th>Fruit<tr><td>Apple</table>",
    ],
)
def test_tables_without_a_header_row(markup: str) -> None:
    assert _row_headers(markup) == []
