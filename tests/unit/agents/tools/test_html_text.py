"""Reducing pages to text: what a reader sees, and nothing else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.tools.html_text import HtmlText, html_text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>a <b>b</b> <i>c</i>d</p>", "a b cd"),
        ("<h2>Head</h2><p>x<br>y", "## Head\n\nx\ny"),
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("<table><tr><th>a</th><th>b</th></tr></table>", "a | b |"),
        ("<a href='/x?y=1&amp;z=2'>link</a>", "link <https://e.org/x?y=1&z=2>"),
        ("<a href='javascript:x()'>link</a>", "link"),
        ("a<script>b</script><style>c</style><template>d</template>e", "a e"),
        ("a<p hidden>b<p>c", "a\nc"),
        ("a<div style='display: none'>b<div>c</div>d</div>e", "a e"),
        ("a<!-- b -->c", "ac"),
        ("1 < 2 &amp; 3 &gt; 2", "1 < 2 & 3 > 2"),
        ("a\u200b\u202eb\U000e0041", "ab"),
        ("<img alt='a chart'>", "a chart"),
        ("<a title='>' href=x>y</a>", "y <https://e.org/x>"),
        ("a <b", "a"),
        ("a <!-- b", "a"),
        ("a <script> b", "a"),
    ],
)
def test_the_text_of_a_page(source, text):
    assert html_text(source, "https://e.org/").text == text


def test_the_title_is_apart():
    assert html_text("<head><title>A &amp;\n B</title></head>c") == HtmlText("A & B", "c")


MARKUP = [
    "<div>",
    "<a ",
    "<!--",
    "-->",
    "<script>",
    "</script>",
    "<p hidden>",
    "</p>",
    "'",
    '"',
    "=",
    ">",
    "<",
    "&",
    "x",
]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(MARKUP), max_size=40).map("".join) | st.text(max_size=200))
def test_any_text_is_reduced_without_growing(source):
    reduced = html_text(source)
    assert len(reduced.text) <= 3 * len(source) + 8


@pytest.mark.parametrize(
    "piece", ["<div>", "<a ", "<!--", "<a b='", "<script></", "</", "<a x=", "<p hidden>"]
)
def test_the_work_grows_with_the_page_only(piece):
    """A scanner that is quadratic takes minutes for this."""
    html_text(piece * (400_000 // len(piece)))
