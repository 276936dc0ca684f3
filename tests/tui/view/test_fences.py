"""The fence tracker against markdown-it, piece by piece."""

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from app.tui.view.fences import FenceTracker

LINES = st.lists(
    st.sampled_from(
        ["```", "~~~", "````", "```py", "text", "", "   ```", "    ```", "``` a`b", "~~"]
    ),
    max_size=12,
)


def inside_at_the_end(text):
    """Whether a line added now would be code of a fence, asked of the parser itself."""
    probe = "zqprobe"
    for token in MarkdownIt().parse(f"{text}\n{probe}"):
        if token.type == "fence" and probe in token.content:
            return True
    return False


@given(LINES, st.integers(1, 7))
def test_it_agrees_with_the_parser_however_the_text_is_cut(lines, size):
    # Indented code and paragraphs decide about fences of four spaces: keep a blank line before each.
    text = "\n\n".join(lines)
    tracker = FenceTracker()
    for start in range(0, len(text), size):
        tracker.feed(text[start : start + size])
    tracker.finish()
    assert (tracker.open_at is not None) == inside_at_the_end(text)
    assert tracker.length == len(text)


def test_offsets_of_the_open_and_of_the_closed_fence():
    tracker = FenceTracker()
    tracker.feed("ab\n```py\ncode\n")
    assert (tracker.open_at, tracker.open_length) == (3, 11)
    tracker.feed("```\n")
    assert (tracker.open_at, tracker.open_length) == (None, 0)
    assert tracker.closed_at == len("ab\n```py\ncode\n```\n")
