"""`RunGuard`: the guardrails of agents' runs, over what a model reads and writes.

    documents, files     redacted before they reach a prompt; the same text is checked once for all agents
    tools' outputs       redacted for the model and for the log; labelled by what was found in them
    model's texts        checked like answers before they become a part of a result

Procedures and detectors read files as they are: they look for what is redacted here. What they copy into a
result is not changed either; front ends check what they show. Redaction in runs is final: a model that
edits a line it has not seen whole fails to match it.

Labels: secrets and personal data make a tool's output private, an injection makes it untrusted. So the taint
rule of `ToolExecutor` applies to what the recognizers and classifiers found, too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from agents.guardrails.detection import Action, Detection, Kind
from agents.guardrails.guardrails import CheckedText, Guardrails
from agents.guardrails.words import name_of
from agents.outputs.base import Output
from agents.tools.tool import Taint

_PRIVATE = frozenset({Kind.CARD, Kind.IBAN, Kind.NATIONAL_ID, Kind.SECRET})
_UNTRUSTED = frozenset({Kind.INJECTION, Kind.JUDGED})
_KEPT_TEXTS = 16


@dataclass(frozen=True, slots=True)
class GuardedText:
    """A text after its check.

    Attributes:
        text: what may be used.
        found: number of findings by kind; the texts themselves are in no event.
        action: the strongest action.
        labels: labels that the findings add.
    """

    text: str
    found: Mapping[str, int]
    action: Action = Action.ALLOW
    labels: frozenset[Taint] = frozenset()


class RunGuard:
    """The checks of all runs of a cluster. Use from one event loop; `check_input` on any thread."""

    def __init__(self, guardrails: Guardrails) -> None:
        """Check by the policy of `guardrails`; its classifiers look at tools' outputs."""
        self._guardrails = guardrails
        self._checked = lru_cache(_KEPT_TEXTS)(guardrails.check_input)

    @property
    def failures(self) -> Mapping[str, str]:
        """Guardrails that raised and were left out, with the reason."""
        return self._guardrails.failures

    def check_input(self, text: str) -> GuardedText:
        """A document or task as a model may read it; a blocked one is empty."""
        return self._guarded(self._checked(text))

    async def tool_output(self, text: str) -> GuardedText:
        """A tool's output as a model may read it. Costs an embedding for each 400 characters with tier 2."""
        checked = self._guardrails.check_input(text)
        suspicious = await self._guardrails.classify_input(checked.text)
        return self._guarded(checked, suspicious)

    def _guarded(self, checked: CheckedText, more: Iterable[Detection] = ()) -> GuardedText:
        kinds = [one.kind for one in (*checked.detections, *more)]
        labels = {Taint.PRIVATE} if _PRIVATE & set(kinds) else set()
        labels |= {Taint.UNTRUSTED} if _UNTRUSTED & set(kinds) else set()
        text = checked.text
        if checked.blocked is not None:
            text = f"[left out: it contains a {name_of(checked.blocked.kind)}]"
        actions = self._guardrails.policy.input_actions
        action = max(
            (actions[kind] for kind in kinds), key=lambda one: one.rank, default=Action.ALLOW
        )
        return GuardedText(text, Counter(kind.value for kind in kinds), action, frozenset(labels))

    def output(self, before: Output, after: Output) -> tuple[Output, GuardedText]:
        """What the model made of a procedure's output, with the texts that it added checked.

        Returns:
            The output, which is `before` if one of the texts is blocked or does not fit the schema once
            it is redacted; and what was found, without a text.
        """
        known = set(_texts(before.model_dump(mode="json")))
        found: Counter[str] = Counter()
        action = Action.ALLOW

        def checked(text: str) -> str:
            nonlocal action
            if text in known:
                return text
            check = self._guardrails.output_check()
            shown = check.feed(text) + check.finish()
            found.update(one.kind.value for one in check.detections)
            action = max(action, check.action, key=lambda one: one.rank)
            return shown

        fields = _mapped(after.model_dump(mode="json"), checked)
        output = after
        if action is Action.BLOCK:
            output = before
        elif action is Action.REDACT:
            try:
                output = type(after).model_validate(fields)
            except ValidationError:
                output = before
        return output, GuardedText("", found, action)


def _texts(value: Any) -> Iterable[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _mapped(value: Any, change: Any) -> Any:
    """A JSON value with each text changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _mapped(one, change) for name, one in value.items()}
    if isinstance(value, list):
        return [_mapped(one, change) for one in value]
    return value
