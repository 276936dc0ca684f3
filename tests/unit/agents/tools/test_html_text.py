"""Reducing pages to text: what a reader sees, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.tools.html_text import HtmlText, html_text
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.parser_limits import MIB, ParserLimits
from engine.retrieval.parsing.web_page import extract_web_page

_MOST = 1 << 20


def reduced(source: str) -> str:
    return extract_web_page(f"https://e.org/\n{source}".encode(), _MOST).text.strip("\n")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>a <b>b</b> <i>c</i>d</p>", "a b cd"),
        ("<h2>Head</h2><p>x<br>y<h3>Sub</h3>", "## Head\n\nx\ny\n\n### Sub"),
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("<table><tr><td><p>Aarhus</p><td><p>4410</p></table>", "Aarhus | 4410"),
        ("<h2><button>How?</button></h2><div>So.</div>", "## How?\n\nSo."),
        ("<a href='/x?y=1&amp;z=2'>link</a>", "link <https://e.org/x?y=1&z=2>"),
        ("<base href='/d/'><a href=x>link</a>", "link <https://e.org/d/x>"),
        ("<a href='javascript:x()'>link</a><a>b</a>", "linkb"),
        ("a<script>b</script><style>c</style><template>d</template>e", "ae"),
        ("a<p hidden>b<p>c", "a\n\nc"),
        ("a<div style='display: none'>b<div>c</div>d</div>e", "ae"),
        ("<img alt='a chart'>", "a chart"),
        ("<a title='>' href=x>y</a>", "y <https://e.org/x>"),
        (f"<a href='{'x' * 600}'>long</a>", "long"),
        ("<a href='https://[x'>bad</a>", "bad"),
    ],
)
def test_the_text_of_a_page(source: str, text: str) -> None:
    assert reduced(source) == text


def test_it_is_read_in_a_process_of_its_own() -> None:
    source = "<head><title>A &amp;\n B</title></head>c\u202e<a href=d>d</a>"
    assert html_text(source, "https://e.org/") == HtmlText("A & B", "cd <https://e.org/d>")


def test_a_page_that_takes_more_memory_than_is_allowed_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agents.tools.html_text._LIMITS", ParserLimits(memory_bytes=96 * MIB))
    with pytest.raises(Unreadable, match="memory"):
        html_text("<p>word</p>" * 300_000)


@given(st.text(max_size=200))
def test_any_text_has_a_text(source: str) -> None:
    assert len(reduced(source)) <= 60 * len(source) + 8
