"""What the parser of answers changes in Markdown; how it looks is in `test_streaming.py`."""

from app.tui.markdown_parser import make_parser


def test_a_single_line_break_is_kept():
    inline = make_parser().parse("the river\nthe sea")[1]
    assert [child.type for child in inline.children] == ["text", "hardbreak", "text"]
