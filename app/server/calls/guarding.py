"""`CallGuard`: the guardrails of one API call, over its messages and the texts of its answers.

Only text is checked and changed. Token ids and logprobs are reported as generated; a call that asks for
`return_token_ids` gets its text unchanged too, because it must be the text of the ids: there, what would be
removed is reported, and a block still ends the answer.

Cost: nothing without guardrails; else one check of the messages, and of each piece of an answer.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from agents.guardrails.detection import Action, Detection, Kind
from agents.guardrails.guardrails import Guardrails, OutputCheck
from agents.guardrails.redaction import RedactionMap
from agents.guardrails.words import refusal
from app.server.calls.fanout import Choices
from app.server.process.context import ServerContext
from app.server.process.counters import ServerCounters
from app.server.wire.errors import bad_request
from app.server.wire.schemas import SamplingFields
from engine.api.request import FinishReason, RequestOutput, TokenBatch

MAX_REPORTED = 100
"""Findings that are listed with a choice."""

Part = TypeVar("Part", RequestOutput, TokenBatch)


class CallGuard:
    """One per call. The same value has the same placeholder in all its messages and answers."""

    def __init__(self, context: ServerContext, body: SamplingFields) -> None:
        """Guard a call.

        Args:
            context: the server; without guardrails everything passes.
            body: the request body.
        """
        given = context.guardrails
        self._guardrails = given if given is not None and given.acts else None
        self._counters: ServerCounters = context.counters
        self._keeps_text = bool(body.return_token_ids)
        self._redactions = RedactionMap()
        self._input: dict[Kind, Action] = {}
        self._checks: dict[int, OutputCheck] = {}
        self._blocked: set[int] = set()
        self._reported: dict[int, int] = {}

    # Input.

    def check_text(self, text: str, *, param: str, expected: frozenset[Kind] = frozenset()) -> str:
        """A text as the model is to read it. Not thread-safe; may run on a worker thread.

        Args:
            text: a message or a prompt.
            param: the field that it is from.
            expected: kinds that are not worth a report here.

        Raises:
            ApiError: 400 with the code `content_filter`.
        """
        if self._guardrails is None:
            return text
        checked = self._guardrails.check_input(text, self._redactions)
        actions = self._guardrails.policy.input_actions
        for one in checked.detections:
            if one.kind not in expected:
                self._input[one.kind] = actions[one.kind]
                self._counters.guarded("input", one.kind.value, actions[one.kind].value)
        if checked.blocked is not None:
            raise bad_request(refusal(checked.blocked), param=param, code="content_filter")
        return checked.text

    def check_prompt(self, text: str) -> str:
        """A raw prompt, whose writer applies the template: its control tokens are expected."""
        return self.check_text(text, param="prompt", expected=frozenset({Kind.SPECIAL_TOKEN}))

    def check_value(self, value: Any) -> Any:
        """A part of a message with its texts as the model is to read them; names of members stay."""
        if self._guardrails is None:
            return value
        if isinstance(value, str):
            return self.check_text(value, param="messages")
        if isinstance(value, dict):
            return {name: self.check_value(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.check_value(one) for one in value]
        return value

    @property
    def header(self) -> str:
        """What was found in the input, such as `card=redact, email=flag`; empty if nothing was."""
        return ", ".join(f"{kind.value}={action.value}" for kind, action in self._input.items())

    # Output.

    async def batches(self, choices: Choices) -> AsyncIterator[tuple[int, TokenBatch]]:
        """The batches of the choices, checked; a choice that is blocked ends with `content_filter`."""
        if self._guardrails is None:
            async for pair in choices.batches():
                yield pair
            return
        async for index, batch in choices.batches():
            if index in self._blocked:
                continue
            finished = batch.finish_reason is not None
            batch = self._checked(self._guardrails, index, batch, finished=finished)
            if index in self._blocked:
                choices.abort_choice(index)
            yield index, batch

    def outputs(self, outputs: Sequence[RequestOutput]) -> list[RequestOutput]:
        """Complete answers, checked, in the order of the choices."""
        if self._guardrails is None:
            return list(outputs)
        return [
            self._checked(self._guardrails, index, output, finished=True)
            for index, output in enumerate(outputs)
        ]

    def found(self, index: int) -> dict[str, Any]:
        """The member `guardrails` of a choice, with what was found since the last call; or nothing."""
        check = self._checks.get(index)
        if check is None or self._guardrails is None:
            return {}
        before = self._reported.get(index, 0)
        fresh = check.detections[before:]
        if not fresh:
            return {}
        self._reported[index] = before + len(fresh)
        actions = self._guardrails.policy.output_actions
        return {"guardrails": [_fields(one, actions[one.kind]) for one in fresh[:MAX_REPORTED]]}

    def _checked(self, guardrails: Guardrails, index: int, part: Part, *, finished: bool) -> Part:
        """A part of a choice with the text that can be shown."""
        if part.finish_reason in (FinishReason.ERROR, FinishReason.ABORT):
            return part
        if index not in self._checks:
            self._checks[index] = guardrails.output_check(self._redactions)
        check = self._checks[index]
        known = check.num_detections
        text = check.feed(part.text)
        if finished:
            text += check.finish()
        if check.num_detections > known:
            self._count(guardrails.policy.output_actions, check.detections[known:])
        if self._keeps_text:
            text = part.text
        if check.blocked is None:
            return part if text is part.text else replace(part, text=text)
        self._blocked.add(index)
        return replace(part, text=text, finish_reason=FinishReason.CONTENT_FILTER)

    def _count(self, actions: Mapping[Kind, Action], detections: Sequence[Detection]) -> None:
        for one in detections:
            self._counters.guarded("output", one.kind.value, actions[one.kind].value)


def _fields(detection: Detection, action: Action) -> dict[str, Any]:
    """A finding without its text; offsets are those of the text as it was generated."""
    return {
        "kind": detection.kind.value,
        "rule": detection.rule,
        "action": action.value,
        "start": detection.start,
        "end": detection.end,
        "confidence": round(detection.confidence, 4),
    }
