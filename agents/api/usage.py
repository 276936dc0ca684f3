"""`Usage`: what a run or a batch of questions has used."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used.

    Attributes:
        computed_tokens: prompt and output tokens that the engine computed for it.
        cached_tokens: prompt tokens that it found computed: what sharing the prefix saved.
        generated_tokens: output tokens.
        tool_calls: calls of tools.
        seconds: wall time.
    """

    computed_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    tool_calls: int = 0
    seconds: float = 0.0

    def plus(self, other: "Usage") -> "Usage":
        """The sum, of the times too."""
        return Usage(
            self.computed_tokens + other.computed_tokens,
            self.cached_tokens + other.cached_tokens,
            self.generated_tokens + other.generated_tokens,
            self.tool_calls + other.tool_calls,
            self.seconds + other.seconds,
        )
