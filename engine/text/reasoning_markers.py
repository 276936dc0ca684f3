"""`ReasoningMarkers`: how a model writes the beginning and the end of its reasoning."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

_KNOWN = (
    (
        "<think>",
        "</think>",
    ),  # Qwen3, DeepSeek R1, QwQ, SmolLM3, GLM, MiniMax, Granite 3.2, Phi-4 reasoning
    ("[THINK]", "[/THINK]"),  # Magistral, Mistral 3
    ("<seed:think>", "</seed:think>"),  # Seed-OSS
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    ("<|channel>thought", "<channel|>"),  # Gemma 4
    ("<reasoning>", "</reasoning>"),
)
"""Markers of published families. A template that reasons writes the closing one, at least to leave earlier
reasoning out."""
_TAIL_TOKENS = 16
"""A prompt's last tokens, in which a template begins the reasoning, or has ended it."""


@dataclass(frozen=True, slots=True)
class ReasoningMarkers:
    """The text before and after a model's reasoning."""

    opening: str
    closing: str

    def begun_in(self, text: str) -> bool | None:
        """Whether a text that the answer continues reasons at its end.

        None if it has neither marker: the answer itself may begin to reason.
        """
        opened, closed = text.rfind(self.opening), text.rfind(self.closing)
        if opened < 0 and closed < 0:
            return None
        return opened > closed


def markers_of(template: str) -> ReasoningMarkers | None:
    """The markers that a chat template knows; None for a model that does not reason.

    Args:
        template: Jinja source.
    """
    for opening, closing in _KNOWN:
        if closing in template:
            return ReasoningMarkers(opening, closing)
    return None


def tail_of(
    prompt: Sequence[int], continued_tokens: int, decode: Callable[[Sequence[int]], str]
) -> str:
    """The end of a prompt in which its reasoning would have begun.

    Args:
        prompt: token ids.
        continued_tokens: how many of the last ones are the beginning of the answer.
        decode: text of token ids, control tokens included.
    """
    return decode(prompt[-max(_TAIL_TOKENS, continued_tokens + _TAIL_TOKENS) :])
