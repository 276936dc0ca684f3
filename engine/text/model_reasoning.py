"""`ModelReasoning`: where a model's reasoning begins and ends in its answers, and how these are divided."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.api.reasoning import ReasoningControl
from engine.text.answer_parser import AnswerParser, PlainText
from engine.text.answer_tags import WithoutTags
from engine.text.reasoning_markers import ReasoningMarkers
from engine.text.reasoning_parser import ReasoningParser
from engine.text.reasoning_tokens import ReasoningTokens
from engine.text.tool_calls.harmony_parser import HarmonyParser

Encode = Callable[[str], Sequence[int]]


@dataclass(frozen=True, slots=True)
class ModelReasoning:
    """The reasoning of the answers to one prompt.

    Attributes:
        markers: of the model.
        begun: whether the prompt has begun the reasoning.
        opening_ids: the opening marker as tokens.
        closing_ids: the closing marker as tokens.
        answer_ids: as in `ReasoningControl`.
    """

    markers: ReasoningMarkers
    begun: bool
    opening_ids: tuple[int, ...]
    closing_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]

    def control(self, max_tokens: int | None) -> ReasoningControl:
        """What the engine needs in order to end the reasoning, and to begin a grammar after it."""
        opening = () if self.begun else self.opening_ids
        return ReasoningControl(self.closing_ids, opening, max_tokens, self.answer_ids)

    def shown_control_ids(self, controls: frozenset[int]) -> frozenset[int]:
        """Those of a model's control tokens that the parser needs to see."""
        return frozenset((*self.opening_ids, *self.closing_ids, *self.answer_ids)) & controls

    def parser(self, rest: AnswerParser) -> AnswerParser:
        """The parser of one answer, whose text after the reasoning `rest` parses."""
        if self.markers.is_message:  # `rest` divides messages
            return rest
        if any(self.markers.tags):
            rest = WithoutTags(self.markers.tags, rest)
        return ReasoningParser(self.markers, rest, begun=self.begun)

    def plain_parser(self) -> AnswerParser:
        """What parses the text after the reasoning, if there are no calls in it."""
        return HarmonyParser({}) if self.markers.is_message else PlainText()

    def tokens(self) -> ReasoningTokens:
        """A counter of one answer's reasoning."""
        return ReasoningTokens(self.opening_ids, self.closing_ids, begun=self.begun)


def reasoning_after(
    tail: str, markers: ReasoningMarkers, *, encode: Encode, encode_rest: Encode
) -> ModelReasoning | None:
    """The reasoning that an answer may have; None if the prompt has ended it.

    Args:
        tail: of the prompt; see `tail_of`.
        markers: of the model.
        encode: the tokens of a text, in which control tokens are such tokens.
        encode_rest: the tokens of a text that continues another.
    """
    begun = markers.begun_in(tail)
    if begun is False:
        return None
    answer = encode(markers.answer) if markers.is_message else encode_rest(markers.answer)
    return ModelReasoning(
        markers,
        bool(begun),
        tuple(encode(markers.opening)),
        tuple(encode(markers.closing)),
        tuple(answer),
    )
