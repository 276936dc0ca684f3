"""`Thinking`: whether, how hard and how long models think before they answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.api.errors import InvalidRequest

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
"""The efforts that chat templates know."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """What is asked of models that reason; of others nothing.

    Attributes:
        enabled: whether they think; None leaves it to the model.
        effort: one of `EFFORTS`, of which each chat template knows some or none; None leaves it to the model.
        max_tokens: after so many tokens of reasoning the answer begins; None sets no limit.
    """

    enabled: bool | None = None
    effort: str | None = None
    max_tokens: int | None = None

    def variables(self) -> Mapping[str, Any]:
        """The variables of chat templates."""
        chosen = {"enable_thinking": self.enabled, "reasoning_effort": self.effort}
        return {name: value for name, value in chosen.items() if value is not None}

    def __str__(self) -> str:
        """A few words: `on, effort high, at most 500 tokens`."""
        parts = []
        if self.enabled is not None:
            parts.append("on" if self.enabled else "off")
        if self.effort is not None:
            parts.append(f"effort {self.effort}")
        if self.max_tokens is not None:
            parts.append(f"at most {self.max_tokens} tokens")
        return ", ".join(parts) or "as the model does"


def read_thinking(text: str, now: Thinking = Thinking()) -> Thinking:
    """What `on`, `off`, an effort, a number of tokens or `default` changes; several may follow each other.

    Raises:
        InvalidRequest: none of these.
    """
    for word in text.replace(",", " ").lower().split():
        if word == "default":
            now = Thinking()
        elif word in ("on", "off"):
            now = Thinking(word == "on", now.effort, now.max_tokens)
        elif word in EFFORTS:
            now = Thinking(True, word, now.max_tokens)
        elif word.isdecimal() and len(word) < 10:
            now = Thinking(now.enabled, now.effort, int(word))
        else:
            raise InvalidRequest(
                f"{word!r:.40} should be on, off, default, a number of tokens, or an effort: "
                f"{', '.join(EFFORTS)}."
            )
    return now
