"""`ReasoningControl`: how long a model may reason before its answer, and where a grammar begins."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasoningControl:
    """The reasoning of one answer. The tokens are those of the model's markers, such as `</think>`.

    Attributes:
        opening_ids: with which the answer may begin to reason; empty if the prompt has begun to.
        closing_ids: that end it; at least one.
        max_tokens: after so many tokens of reasoning the closing ones are forced; None sets no limit.
        answer_ids: forced between the closing tokens and the answer, if that has a grammar.
    """

    closing_ids: tuple[int, ...]
    opening_ids: tuple[int, ...] = ()
    max_tokens: int | None = None
    answer_ids: tuple[int, ...] = ()
