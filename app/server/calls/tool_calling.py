"""`TurnTools`: the tools of a chat request: what the model is offered, and how its calls are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from app.server.calls.model import LoadedModel
from app.server.wire.errors import bad_request
from app.server.wire.schemas import ChatCompletionRequest
from engine.api.tools import Tool, ToolChoice
from engine.text.answer_parser import AnswerParser, PlainText
from engine.text.tool_calls.choosing import form_of_template, new_parser
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.forms.harmony import HARMONY
from engine.text.tool_messages import TemplateTool, template_tools


@dataclass(frozen=True)
class TurnTools:
    """The tools of one turn.

    Attributes:
        offered: all of them; the model reads them even if it may not call one, so that prompts of an equal
            beginning stay equal.
        choice: which of them it may call.
        form: how the model writes calls.
    """

    offered: Sequence[Tool]
    choice: ToolChoice
    form: CallForm

    @property
    def for_template(self) -> list[TemplateTool]:
        """The tools as the chat template reads them."""
        return template_tools(self.offered)

    @cached_property
    def callable(self) -> dict[str, Tool]:
        """The tools that may be called, by name."""
        if self.choice.mode == "none":
            return {}
        names = self.choice.names
        return {one.name: one for one in self.offered if names is None or one.name in names}

    def shown_control_ids(self, model: LoadedModel) -> frozenset[int]:
        """The control tokens that the parser needs to see."""
        if not self.callable and self.form is not HARMONY:
            return frozenset()
        spellings = model.tokenizer.control_tokens.spellings
        return frozenset(spellings[mark] for mark in self.form.marks if mark in spellings)

    def parser(self) -> AnswerParser:
        """A parser for one choice."""
        if not self.callable and self.form is not HARMONY:
            return PlainText()
        return new_parser(self.form, self.callable, parallel=self.choice.parallel)


def turn_tools(body: ChatCompletionRequest, model: LoadedModel) -> TurnTools | None:
    """The tools of a request; None if it has none, or none of a type that is served.

    Raises:
        ApiError: 400 for a choice that no tool fits.
    """
    given, choice = body.offered_tools, body.choice_of_tools
    if choice.mode == "required" and not body.has_tools:
        raise bad_request(
            "`tool_choice` asks for a call, but there are no `tools`.", param="tool_choice"
        )
    if not given:
        return None
    unknown = sorted((choice.names or frozenset()) - {one.name for one in given})
    if unknown:
        raise bad_request(
            f"`tool_choice` names {unknown[0]!r}, which is none of the `tools`.",
            param="tool_choice",
        )
    return TurnTools(given, choice, form_of_template(model.tokenizer.chat_template))
