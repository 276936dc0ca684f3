"""Token counts of one API call: each prompt counts once; completion tokens of all choices are summed."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from app.server.wire.schemas import SamplingFields
from engine.api.request import RequestOutput, TokenBatch


def input_output_usage(
    read: int, cached: int, written: int, *, reasoning: int = 0
) -> dict[str, Any]:
    """The `usage` object of OpenAI's newer endpoints, which speak of input and output.

    The client's own type requires `cache_write_tokens`. Every token of a prompt that is computed is written
    to the KV cache, so they are those that were not found in it.
    """
    return {
        "input_tokens": read,
        "input_tokens_details": {
            "cached_tokens": cached,
            "cache_write_tokens": max(0, read - cached),
        },
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": read + written,
    }


class CallUsage(ABC):
    """The token counts of a call."""

    @abstractmethod
    def counts(self) -> dict[str, Any]:
        """The `usage` object."""

    def of_chunk(self, body: SamplingFields) -> dict[str, Any]:
        """The `usage` member of a chunk before the last one, if the request asks for usage."""
        if body.usage_in_chunks:
            return {"usage": self.counts()}
        return {"usage": None} if body.include_usage else {}


class Usage(CallUsage):
    """Sums the engine's counts over the choices of a call.

    Attributes:
        completion_tokens: that all choices have so far.
    """

    def __init__(self, prompts: Sequence[tuple[int, ...]], n: int) -> None:
        """Count a call of `n` choices a prompt; choice `i` continues prompt `i // n`."""
        self._prompts = prompts
        self._n = n
        self._cached: dict[int, int] = {}  # prompt → tokens that no choice of it computed
        self.completion_tokens = 0
        self._reasoning: int | None = None  # None for a call whose answers have none

    def add_reasoning(self, tokens: int) -> None:
        """Count tokens that `add` has counted as those of reasoning, too."""
        self._reasoning = (self._reasoning or 0) + tokens

    def add(self, index: int, part: RequestOutput | TokenBatch) -> None:
        """Count new tokens of choice `index`."""
        self.completion_tokens += len(part.token_ids)
        prompt = index // self._n
        # Choices of a prompt share its blocks: only the minimum was cached before the call.
        cached = self._cached.get(prompt, part.cached_tokens)
        self._cached[prompt] = min(cached, part.cached_tokens)

    def add_all(self, outputs: Iterable[RequestOutput]) -> "Usage":
        """Count complete choices, in order."""
        for index, output in enumerate(outputs):
            self.add(index, output)
        return self

    def counts(self) -> dict[str, Any]:
        """The `usage` object."""
        prompt_tokens = sum(map(len, self._prompts))
        details = {}
        if self._reasoning is not None:
            details = {"completion_tokens_details": {"reasoning_tokens": self._reasoning}}
        return {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": sum(self._cached.values())},
            **details,
        }


class SummedUsage(CallUsage):
    """The counts of a call that generates several times, one after the other.

    Attributes:
        rounds: the counts of each generation.
    """

    def __init__(self) -> None:
        self.rounds: list[Usage] = []

    @property
    def completion_tokens(self) -> int:
        """Tokens that all generations together have written."""
        return sum(one.completion_tokens for one in self.rounds)

    def counts(self) -> dict[str, Any]:
        """The `usage` object; every round counts its whole prompt, most of which is cached."""
        total: dict[str, Any] = Usage((), 1).counts()
        for one in self.rounds:
            _add(total, one.counts())
        return total


def _add(total: dict[str, Any], counts: dict[str, Any]) -> None:
    for name, value in counts.items():
        if isinstance(value, dict):
            _add(total.setdefault(name, {}), value)
        else:
            total[name] = total.get(name, 0) + value
