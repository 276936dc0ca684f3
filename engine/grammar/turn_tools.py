"""`TurnTools`: the tools of one turn: what the model is offered, and how its calls are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from engine.api.grammar import Grammar
from engine.api.tools import Tool, ToolChoice, ToolDecision
from engine.grammar.call_grammar import call_grammar
from engine.text.answer_parser import AnswerParser, PlainText
from engine.text.chat_tokenizer import ChatTokenizer
from engine.text.tool_calls.choosing import new_parser
from engine.text.tool_calls.form import CallForm
from engine.text.tool_calls.forms.harmony import HARMONY
from engine.text.tool_calls.repeated_calls import NameAndArguments, WithoutRepeats
from engine.text.tool_messages import TemplateTool, template_tools

_THINK_TOKENS = 16
"""Tokens at the end of a prompt that have a `<think>` which its template writes there."""


@dataclass(frozen=True)
class TurnTools:
    """The tools of one turn.

    Attributes:
        offered: all of them; the model reads them even if it may not call one, so that prompts of an equal
            beginning stay equal.
        choice: which of them it may call.
        form: how the model writes calls.
        tokenizer: of the model.
        decision: who decides whether one is called.
        exhausted: a call that is not to be made again.
    """

    offered: Sequence[Tool]
    choice: ToolChoice
    form: CallForm
    tokenizer: ChatTokenizer
    decision: ToolDecision = "auto"
    exhausted: NameAndArguments | None = None

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

    @property
    def is_forced(self) -> bool:
        """Whether the answer is one call or more, and nothing else."""
        return self.choice.mode == "required"

    @property
    def shown_control_ids(self) -> frozenset[int]:
        """The control tokens that the parser needs to see."""
        if not self.callable and self.form is not HARMONY:
            return frozenset()
        spellings = self.tokenizer.control_tokens.spellings
        return frozenset(spellings[mark] for mark in self.form.marks if mark in spellings)

    def opening_ids(self, prompt: Sequence[int]) -> tuple[int, ...]:
        """The tokens that begin a forced answer after a prompt, to which they belong.

        A template may begin the reasoning in the prompt: a forced call has none.
        """
        end = self.tokenizer.decode(prompt[-_THINK_TOKENS:], skip_special=False)
        thinks = end.rstrip().endswith("<think>")
        opening = ("\n</think>\n\n" if thinks else "") + self.form.opening
        return tuple(self.tokenizer.encode(opening, special=True))

    def grammar(self) -> Grammar:
        """The language of a forced answer, after its opening.

        Raises:
            InvalidRequest: the tools cannot be written as JSON.
        """
        return call_grammar(self.form, self.offered, self.choice, self.tokenizer.control_tokens)

    def parser(self) -> AnswerParser:
        """A parser for one choice; it knows the opening of a forced answer."""
        if not self.callable and self.form is not HARMONY:
            return PlainText()
        parser = new_parser(self.form, self.callable, parallel=self.choice.parallel)
        if self.is_forced:
            parser.feed(self.form.opening)
        elif self.exhausted is not None:
            parser = WithoutRepeats(parser, self.exhausted)
        return parser
