"""What the parser of answers changes in Markdown; how it looks is in `test_streaming.py`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.tui.markdown_parser import make_parser


def inline(text):
    """The tokens in the first paragraph of a text."""
    return make_parser().parse(text)[1].children


def links(text):
    return [child.attrs["href"] for child in inline(text) if child.type == "link_open"]


def shown(text):
    return "".join("\n" if child.type == "hardbreak" else child.content for child in inline(text))


def rows(text):
    """The cells of a table."""
    found = []
    for token in make_parser().parse(text):
        if token.type == "tr_open":
            found.append([])
        elif token.type == "inline":
            found[-1].append(token.content)
    return found


def test_a_single_line_break_is_kept():
    assert [child.type for child in inline("the river\nthe sea")] == ["text", "hardbreak", "text"]


@pytest.mark.parametrize(
    "text",
    [
        "README.md", "main.py", "self.id", "e.g. this", "1.2.3.4", "user@host.org", "Node.js",
        "ASP.NET", "www.example.com", "example.com/path", "//example.com/a", "v1.2.io", "a.ai/b",
        "ftp://example.com/x", "file:///etc/passwd", "javascript:alert(1)", "git+https://x.org/y",
        "[a](README.md)", "[a](#part)", "[a](javascript:alert(1))", "[a](file:///etc/passwd)",
        "[a](data:text/html,x)", "[a](vbscript:x)", "![a](file:///x.png)", "http://", "https:",
    ],
)  # fmt: skip
def test_what_names_no_address_is_no_link(text):
    assert links(f"see {text} here") == []
    assert text in shown(f"see {text} here")


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("https://example.com/a_(b)", "https://example.com/a_(b)"),
        ("http://localhost:8000/v1?x=1", "http://localhost:8000/v1?x=1"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("HTTPS://Example.com", "HTTPS://Example.com"),
        ("mailto:ann@example.org", "mailto:ann@example.org"),
        ("<ann@example.org>", "mailto:ann@example.org"),
        ("<https://example.com>", "https://example.com"),
        ("[a](https://example.com)", "https://example.com"),
        ("[a][1]\n\n[1]: https://example.com", "https://example.com"),
    ],
)
def test_a_scheme_makes_a_link(text, target):
    assert links(text) == [target]


@pytest.mark.parametrize("mark", "。，；：！？）」』】》、～")
def test_punctuation_of_east_asian_scripts_ends_an_address(mark):
    assert links(f"请访问 https://example.com/docs{mark}谢谢") == ["https://example.com/docs"]
    assert f"https://example.com/docs{mark}谢谢" in shown(f"https://example.com/docs{mark}谢谢")


def test_a_link_names_its_target_unless_its_text_is_that():
    assert shown("[my bank](https://evil.example/x)") == "my bank (https://evil.example/x)"
    assert shown("[https://bank.example](https://evil.example)").endswith("(https://evil.example)")
    assert shown("https://example.com/Straße") == "https://example.com/Straße"
    assert shown("<ann@example.org>") == "ann@example.org"
    assert "(https://xn--pple-43d.com)" in shown(
        "https://аpple.com"
    )  # the first letter is Cyrillic


def test_an_image_names_its_address():
    assert shown("![click me](https://evil.example/x.png)").endswith("(https://evil.example/x.png)")


@pytest.mark.parametrize("tag", ["<br>", "<br/>", "<br />", "<BR>", " <br> ", "<br>\n"])
def test_br_is_one_line_break(tag):
    assert [line.strip() for line in shown(f"one{tag}two").split("\n")] == ["one", "two"]


@pytest.mark.parametrize("text", ["`<br>`", r"\<br>", "&lt;br&gt;"])
def test_br_that_is_quoted_stays(text):
    assert shown(text) == "<br>"


def test_a_row_keeps_what_it_has_beyond_its_last_column():
    table = (
        "| a | b |\n|---|---|\n| x | `p || q` |\n| 1 | 2 | 3 |\n| only |\n|  |  |\n| r \\| s | t |\n"
        "u | v | w"
    )
    assert rows(table)[1:] == [
        ["x", "`p || q`"], ["1", "2 | 3"], ["only", ""], ["", ""], ["r | s", "t"], ["u", "v | w"],
    ]  # fmt: skip
    quoted = "\n".join(f"> {line}" for line in table.split("\n"))
    assert rows(quoted) == rows(table)


@given(st.text(st.sampled_from("|-:`<>br/[]()!\\ \n.aé。"), max_size=80))
def test_no_text_is_too_strange(text):
    for found in make_parser().parse(text):
        for child in found.children or ():
            if child.type == "link_open":
                assert str(child.attrs["href"]).lower().startswith(("http", "mailto:"))
