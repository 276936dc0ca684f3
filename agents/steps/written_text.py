"""`checked_answer`: what a model wrote, without hidden text and without what sends data when it is shown."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from agents.guardrails.detection import Action, Kind
from agents.guardrails.guardrails import Guardrails
from agents.guardrails.policy import Policy

_KINDS = frozenset({Kind.EXFILTRATION, Kind.HIDDEN_TEXT})


def checked_answer(value: Any) -> Any:
    """The JSON value with every text checked: images with data on other hosts, hidden characters."""
    if isinstance(value, str):
        check = _guardrails().output_check()
        return check.feed(value) + check.finish()
    if isinstance(value, Mapping):
        return {name: checked_answer(one) for name, one in value.items()}
    if isinstance(value, list):
        return [checked_answer(one) for one in value]
    return value


@cache
def _guardrails() -> Guardrails:
    actions = {kind: Action.REDACT if kind in _KINDS else Action.ALLOW for kind in Kind}
    return Guardrails(Policy(output_actions=actions))
