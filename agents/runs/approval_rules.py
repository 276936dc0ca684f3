"""`ApprovalRule`: the mode of calls whose parsed arguments match a pattern, such as `shell: pytest *`.

A pattern is a list of words, compared one by one with the words of a call: `*` stands for one word, at the
end for any number of words, none included; every other word stands for itself. What a command line means is
decided before (`agents.tools.shell_words`), so `shell: pytest *` does not match `pytest x; rm -rf /`,
whose words are those of `sh -c`.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents.api.agent_spec import PermissionMode
from agents.api.errors import InvalidTask

ANY = "*"
_STRICTNESS: dict[PermissionMode, int] = {"auto": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """One rule of the user's.

    Attributes:
        tool: name of the tool.
        pattern: words; `ANY` stands for one word, at the end for all that follow.
        mode: of the calls that match.
    """

    tool: str
    pattern: tuple[str, ...]
    mode: PermissionMode = "auto"

    def matches(self, tool: str, words: Sequence[str]) -> bool:
        """Whether a call is meant."""
        if tool != self.tool:
            return False
        pattern = self.pattern
        if pattern[-1] == ANY:
            pattern = pattern[:-1]
            words = words[: len(pattern)] if len(words) >= len(pattern) else words
        return len(pattern) == len(words) and all(
            one in (ANY, word) for one, word in zip(pattern, words, strict=True)
        )


def parse_rule(text: str, mode: PermissionMode = "auto") -> ApprovalRule:
    """The rule of a text such as `shell: pytest *`.

    Raises:
        InvalidTask: it has no tool, no pattern, or a quote that is not closed.
    """
    tool, colon, pattern = text.partition(":")
    try:
        words = tuple(shlex.split(pattern))
    except ValueError as error:
        raise InvalidTask(f"The approval rule {text!r:.80} cannot be parsed: {error}.") from error
    if not colon or not tool.strip() or not words:
        raise InvalidTask(
            f"The approval rule {text!r:.80} should be a tool and a pattern, such as 'shell: pytest *'."
        )
    return ApprovalRule(tool.strip(), words, mode)


def mode_of(
    rules: Iterable[ApprovalRule], tool: str, words: Sequence[str]
) -> PermissionMode | None:
    """The strictest mode of the rules that match a call, or None if none does."""
    modes = [rule.mode for rule in rules if rule.matches(tool, words)]
    return max(modes, key=lambda mode: _STRICTNESS[mode], default=None)
