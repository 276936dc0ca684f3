"""Token counts of one API call: each prompt once, however many choices; completions summed."""

from collections.abc import Sequence
from typing import Any


def usage(prompts: Sequence[tuple[int, ...]], completion_tokens: int) -> dict[str, Any]:
    """The `usage` object; the counts are the engine's own."""
    prompt_tokens = sum(map(len, prompts))
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }
