"""What is removed from a text before it is remembered: secrets, and characters that nobody sees."""

from dataclasses import dataclass
from functools import cache

from agents.guardrails.detection import Action, Kind
from agents.guardrails.guardrails import Guardrails
from agents.guardrails.policy import Policy

_KINDS = frozenset({Kind.SECRET, Kind.CARD, Kind.IBAN, Kind.NATIONAL_ID, Kind.HIDDEN_TEXT})


@dataclass(frozen=True, slots=True)
class FilteredText:
    """A text that may be stored.

    Attributes:
        text: with `[secret removed]` and the like in place of what was removed.
        removed: kinds of what was removed.
    """

    text: str
    removed: tuple[str, ...]


def filter_text(text: str) -> FilteredText:
    """Remove secrets, card and account numbers, national ids and hidden characters."""
    checked = _guardrails().check_input(text.encode("utf-8", "replace").decode())
    kinds = sorted({one.kind.value for one in checked.detections})
    return FilteredText(checked.text, tuple(kinds))


@cache
def _guardrails() -> Guardrails:
    actions = {kind: Action.REDACT if kind in _KINDS else Action.ALLOW for kind in Kind}
    return Guardrails(Policy(input_actions=actions))
