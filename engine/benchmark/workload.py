"""Functions shared by the engine's benchmarks: random prompts and the duration of a run."""

import random
from collections.abc import Sequence

from engine.api.request import RequestOutput


def random_tokens(generator: random.Random, count: int, vocab_size: int) -> list[int]:
    """`count` random token ids without special tokens, reproducible for a given generator."""
    top = min(40_000, vocab_size)
    return [generator.randrange(min(100, top - 1), top) for _ in range(count)]


def elapsed_seconds(outputs: Sequence[RequestOutput]) -> float:
    """Seconds from queueing the first request to the last token, by the engine's clock."""
    queued = min(output.timings.queued for output in outputs)
    return max(output.timings.last_token or output.timings.queued for output in outputs) - queued
