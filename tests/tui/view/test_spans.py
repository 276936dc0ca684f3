from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from app.tui.view.content import to_content
from app.tui.view.spans import Span, cut, fit, justify, plain, width

TEXT = st.text(alphabet="ab 日本👍éप्र", max_size=30)


@given(TEXT, st.integers(0, 40))
def test_fitted_text_is_never_wider_and_short_text_is_whole(text, cells):
    fitted = fit(text, cells)
    assert cell_len(fitted) <= cells
    if cell_len(text) <= cells:
        assert fitted == text


@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=4), st.integers(1, 60))
def test_a_justified_row_is_never_wider_and_keeps_its_right_part(left, right, cells):
    right_spans = [Span(text) for text in right]
    row = justify([Span(text) for text in left], right_spans, cells)
    assert width(row) <= cells
    if width(right_spans) < cells:
        assert plain([row]).endswith("".join(right))
        assert width(row) == cells


def test_cutting_keeps_styles_and_shortens_the_last_span():
    line = (Span("alpha", "bold"), Span("beta", "$muted"))
    assert cut(line, 7) == (Span("alpha", "bold"), Span("b…", "$muted"))


def test_content_carries_text_styles_and_clicks():
    content = to_content([(Span("a", "$primary"), Span("b[/]", "", "app.help")), (Span("c"),)])
    assert content.plain == "ab[/]\nc"
    assert [(span.start, span.end) for span in content.spans] == [(0, 1), (1, 5)]
    assert content.spans[1].style.meta == {"@click": "app.help"}
