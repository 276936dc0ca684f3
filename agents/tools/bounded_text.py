"""Bounding what a tool returns: head and tail are kept, the middle is counted."""

from agents.tools.tool import MAX_OUTPUT_CHARS

_NOTICE_CHARS = 80


def bounded(text: str, limit: int = MAX_OUTPUT_CHARS) -> str:
    """The text itself, or its head and tail with a notice between them, at most `limit` characters."""
    if len(text) <= limit:
        return text
    half = (limit - _NOTICE_CHARS) // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[… {left_out:,} characters left out …]\n{text[-half:]}"
