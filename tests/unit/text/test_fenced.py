"""`fenced`."""

import pytest
from markdown_it import MarkdownIt

from engine.text.fenced import fenced


def test_the_language_stands_behind_the_fence() -> None:
    assert fenced("x = 1", "python") == "```python\nx = 1\n```"


@pytest.mark.parametrize("text", ["a", "```\nb\n```", "` `` ````", "~~~\nc", " ```"])
def test_nothing_in_the_text_closes_it(text: str) -> None:
    (block,) = MarkdownIt().parse(fenced(text))
    assert (block.type, block.content) == ("fence", f"{text}\n")
