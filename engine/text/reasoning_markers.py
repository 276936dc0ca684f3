"""`ReasoningMarkers`: how a model writes the beginning and the end of its reasoning."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

_TAIL_TOKENS = 16
"""A prompt's last tokens, in which a template begins the reasoning, or has ended it."""
_NEW_PARAGRAPH = "\n\n"
"""What most models write between their reasoning and the answer."""


@dataclass(frozen=True, slots=True)
class ReasoningMarkers:
    """The text before and after a model's reasoning.

    Attributes:
        opening: before it.
        closing: after it.
        answer: between the closing marker and the answer.
        is_message: whether the reasoning is a message of its own, as in Harmony: its closing marker ends
            other messages too, and more reasoning may follow.
        tags: around the answer, for models that write some; a tag is left out where it stands.
    """

    opening: str
    closing: str
    answer: str = _NEW_PARAGRAPH
    is_message: bool = False
    tags: tuple[str, str] = ("", "")

    def begun_in(self, text: str) -> bool | None:
        """Whether a text that the answer continues reasons at its end.

        None if it has neither marker: the answer itself may begin to reason.
        """
        opened, closed = text.rfind(self.opening), text.rfind(self.closing)
        if opened > closed:
            return True
        return None if closed < 0 or self.is_message else False


_KNOWN = (
    # Qwen3, DeepSeek R1 to V3.2, QwQ, SmolLM3, GLM, MiniMax, Kimi, Nemotron, Phi-4 reasoning, Olmo 3 Think;
    # some have tags around their answers as well: Granite 3.3 and ERNIE 4.5 `<response>`, Hunyuan `<answer>`.
    ReasoningMarkers("<think>", "</think>"),
    ReasoningMarkers("[THINK]", "[/THINK]"),  # Magistral, Mistral 3
    ReasoningMarkers("<seed:think>", "</seed:think>"),  # Seed-OSS
    ReasoningMarkers("<|START_THINKING|>", "<|END_THINKING|>"),  # Command R7B, Command A
    ReasoningMarkers("<|channel>thought", "<channel|>"),  # Gemma 4
    ReasoningMarkers("<reasoning>", "</reasoning>"),
    ReasoningMarkers("Here is my thought process:", "Here is my response:"),  # Granite 3.2
    ReasoningMarkers(
        "Here are my reasoning steps:",
        "[BEGIN FINAL RESPONSE]",
        answer="\n",
        tags=("", "[END FINAL RESPONSE]"),
    ),  # Apriel
)
"""Markers of published families. A template that reasons writes the closing one, at least to leave earlier
reasoning out."""
_HARMONY = ReasoningMarkers(
    "<|channel|>analysis<|message|>",
    "<|end|>",
    answer="<|start|>assistant<|channel|>final<|message|>",
    is_message=True,
)
"""gpt-oss."""
_HARMONY_SIGN = "<|channel|>"
_ANSWER_TAGS = (("<response>", "</response>"), ("<answer>", "</answer>"))


def markers_of(template: str) -> ReasoningMarkers | None:
    """The markers that a chat template knows; None for a model that does not reason.

    Args:
        template: Jinja source.
    """
    if _HARMONY_SIGN in template:
        return _HARMONY
    for markers in _KNOWN:
        if markers.closing in template:
            tags = next((both for both in _ANSWER_TAGS if both[0] in template), markers.tags)
            return replace(markers, tags=tags)
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
