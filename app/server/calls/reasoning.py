"""`AnswerReasoning`s of a chat: where they begin and end, how long they may be, and what is shown of them."""

from dataclasses import dataclass

from app.server.calls.model import LoadedModel
from app.server.calls.prompts import ChatPrompt
from app.server.wire.schemas import ChatCompletionRequest
from engine.api.reasoning import ReasoningControl
from engine.text.answer_parser import AnswerParser, PlainText
from engine.text.answer_tags import WithoutTags
from engine.text.reasoning_markers import ReasoningMarkers, tail_of
from engine.text.reasoning_parser import ReasoningParser
from engine.text.reasoning_tokens import ReasoningTokens
from engine.text.tool_calls.harmony_parser import HarmonyParser


@dataclass(frozen=True, slots=True)
class ChatReasoning:
    """The reasoning of one chat's answers.

    Attributes:
        markers: of the model.
        begun: whether the prompt has begun the reasoning.
        opening_ids: the opening marker as tokens.
        closing_ids: the closing marker as tokens.
        answer_ids: as in `ReasoningControl`.
        stays_in_text: whether the request wants it as a part of the text.
    """

    markers: ReasoningMarkers
    begun: bool
    opening_ids: tuple[int, ...]
    closing_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    stays_in_text: bool

    def control(self, max_tokens: int | None) -> ReasoningControl:
        """What the engine needs in order to end the reasoning, and to begin a grammar after it."""
        opening = () if self.begun else self.opening_ids
        return ReasoningControl(self.closing_ids, opening, max_tokens, self.answer_ids)

    def shown_control_ids(self, model: LoadedModel) -> frozenset[int]:
        """The control tokens that the parser needs to see."""
        controls = model.tokenizer.control_tokens.ids
        return frozenset((*self.opening_ids, *self.closing_ids, *self.answer_ids)) & controls

    def parser(self, rest: AnswerParser) -> AnswerParser:
        """The parser of one answer, whose text after the reasoning `rest` parses."""
        if self.stays_in_text:
            return rest
        if self.markers.is_message:  # `rest` divides messages
            return rest
        if any(self.markers.tags):
            rest = WithoutTags(self.markers.tags, rest)
        return ReasoningParser(self.markers, rest, begun=self.begun)

    def plain_parser(self) -> AnswerParser:
        """The parser of an answer in which there are no calls."""
        if self.markers.is_message and not self.stays_in_text:
            return HarmonyParser({})
        return PlainText()

    def tokens(self) -> ReasoningTokens:
        """A counter of one answer's reasoning."""
        return ReasoningTokens(self.opening_ids, self.closing_ids, begun=self.begun)


def chat_reasoning(
    body: ChatCompletionRequest, model: LoadedModel, prompt: ChatPrompt
) -> ChatReasoning | None:
    """The reasoning that an answer may have; None if the model does not reason, or is done with it."""
    tokenizer = model.tokenizer
    markers = tokenizer.reasoning
    if markers is None:
        return None
    tail = tail_of(
        prompt.ids,
        prompt.continued_tokens,
        lambda ids: tokenizer.decode(ids, skip_special=False),
    )
    begun = markers.begun_in(tail)
    if begun is False:
        return None

    def ids(text: str) -> tuple[int, ...]:
        return tuple(tokenizer.encode(text, special=True))

    return ChatReasoning(
        markers,
        bool(begun),
        ids(markers.opening),
        ids(markers.closing),
        ids(markers.answer) if markers.is_message else tuple(tokenizer.encode_rest(markers.answer)),
        body.reasoning_stays_in_text,
    )
