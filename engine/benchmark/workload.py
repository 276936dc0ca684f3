"""What every benchmark of the engine's own is made of: random prompts, and the time a run took."""

import random
from collections.abc import Sequence

from engine.api.request import RequestOutput


def random_tokens(generator: random.Random, count: int, vocab_size: int) -> list[int]:
    """Ordinary token ids, the same for every engine with the same generator."""
    top = min(40_000, vocab_size)
    return [generator.randrange(min(100, top - 1), top) for _ in range(count)]


def elapsed_seconds(outputs: Sequence[RequestOutput]) -> float:
    """From the first request queued to the last token of all, by the engine's clock."""
    queued = min(output.timings.queued for output in outputs)
    return max(output.timings.last_token or output.timings.queued for output in outputs) - queued
