"""`ChatChoice`: one choice of a chat's answer, from the engine's text to the parts of the answer."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.server.calls.call_check import CallCheck, invalid_fields
from app.server.calls.cited_choice import CitedChoice
from app.server.calls.model import off_loop
from engine.api.answer_parts import (
    AnswerPart,
    AnswerReasoning,
    AnswerText,
    CallArguments,
    CallBegun,
)
from engine.api.request import RequestOutput, TokenBatch
from engine.text.answer_parser import AnswerParser
from engine.text.reasoning_tokens import ReasoningTokens


@dataclass(frozen=True, slots=True)
class ChoiceEnd:
    """The end of a choice.

    Attributes:
        reason: OpenAI's `finish_reason`.
        annotations: citations in its text; None for a chat without retrieval.
        fields: members of the choice beyond OpenAI's, such as `retrieval` and `guardrails`.
    """

    reason: str
    annotations: list[dict[str, Any]] | None = None
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnPiece:
    """What is new in a choice.

    Attributes:
        choice: its index.
        parts: of the answer.
        batch: the tokens that the parts come from; None if nothing was generated.
        end: None while the choice runs.
        loop_event: what a tool that the server calls does, as JSON members; None for a piece of an answer.
    """

    choice: int
    parts: Sequence[AnswerPart]
    batch: TokenBatch | None = None
    end: ChoiceEnd | None = None
    loop_event: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A complete call of a tool; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class AnsweredChoice:
    """A complete choice. `output` is None if nothing was generated."""

    parts: Sequence[AnswerPart]
    end: ChoiceEnd
    output: RequestOutput | None = None

    @property
    def text(self) -> str:
        """Its text."""
        return "".join(part.text for part in self.parts if isinstance(part, AnswerText))

    @property
    def reasoning(self) -> str:
        """The reasoning before the text."""
        return "".join(part.text for part in self.parts if isinstance(part, AnswerReasoning))

    @property
    def calls(self) -> list[AnsweredCall]:
        """Its calls of tools."""
        arguments: dict[int, str] = {}
        for part in self.parts:
            if isinstance(part, CallArguments):
                arguments[part.index] = arguments.get(part.index, "") + part.text
        return [
            AnsweredCall(part.id, part.name, arguments.get(part.index, ""))
            for part in self.parts
            if isinstance(part, CallBegun)
        ]


class ChatChoice:
    """Reads the text of one choice: it is divided into parts, then the citations in its texts are checked.

    Attributes:
        reasoning: counts the tokens of its reasoning; None if it cannot have any.
    """

    def __init__(
        self,
        parser: AnswerParser,
        cited: CitedChoice | None,
        reasoning: ReasoningTokens | None = None,
        check: CallCheck | None = None,
        *,
        shows_reasoning: bool = True,
    ) -> None:
        self.reasoning = reasoning
        self._check = check
        self._invalid: list[dict[str, str]] = []
        self._parser = parser
        self._cited = cited
        self._shows_reasoning = shows_reasoning
        self._calls = 0

    @property
    def ended(self) -> bool:
        """Whether nothing more is shown, although the engine goes on."""
        return self._parser.ended or (self._cited is not None and self._cited.ended)

    async def feed(self, text: str, finish: str | None) -> tuple[list[AnswerPart], str | None]:
        """The parts that are new after a piece of text, and the reason if the choice has ended."""
        parts = [*await off_loop(len(text), lambda: self._parser.feed(text))]
        if self._parser.ended:
            finish = "stop"
        elif finish is not None:
            parts += self._parser.finish(cut=finish == "length")
        if self._cited is not None:
            parts = await self._with_citations(self._cited, parts)
            if self._cited.ended:
                finish = "stop"
            if finish is not None and (rest := await self._cited.finish()):
                parts.append(AnswerText(rest))
        if not self._shows_reasoning:
            parts = [part for part in parts if not isinstance(part, AnswerReasoning)]
        self._calls += sum(isinstance(part, CallBegun) for part in parts)
        if self._check is not None:
            self._check.add(parts)
            if finish is not None and self._calls:  # a schema may cost much, whatever the length
                self._invalid = await asyncio.to_thread(self._check.invalid_calls)
        if finish == "stop" and self._calls:
            finish = "tool_calls"
        return parts, finish

    @staticmethod
    async def _with_citations(cited: CitedChoice, parts: Sequence[AnswerPart]) -> list[AnswerPart]:
        """The parts with the texts that can be shown; nothing after the text has ended."""
        shown: list[AnswerPart] = []
        for part in parts:
            if cited.ended:
                break
            if not isinstance(part, AnswerText):
                shown.append(part)
            elif text := await cited.feed(part.text):
                shown.append(AnswerText(text))
        return shown

    def end(self, reason: str, found: dict[str, Any]) -> ChoiceEnd:
        """The end of the choice; `found` is what the guardrails report."""
        found = {**found, **invalid_fields(self._invalid)}
        if self._cited is None:
            return ChoiceEnd(reason, None, found)
        return ChoiceEnd(reason, self._cited.annotations(), {**found, **self._cited.fields()})
