"""`fenced`: a text as a fenced code block of Markdown."""

import re


def fenced(text: str, language: str = "") -> str:
    """The text in a fence of backticks that nothing in it can close, without a line end behind it."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
