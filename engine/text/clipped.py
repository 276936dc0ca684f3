"""`clipped`: the head and the tail of a text with too many tokens."""

from collections.abc import Callable, Sequence


def clipped(
    text: str,
    limit: int,
    tokenize: Callable[[str], Sequence[int]],
    detokenize: Callable[[Sequence[int]], str],
) -> str:
    """The text with about `limit` tokens; the middle of a longer one is left out, and how much it had."""
    ids = tokenize(text)
    if len(ids) <= limit:
        return text
    half = max(1, limit // 2 - 8)
    cut = len(ids) - 2 * half
    return f"{detokenize(ids[:half])}\n… {cut} tokens …\n{detokenize(ids[-half:])}"
