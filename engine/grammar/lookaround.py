"""Look-around in regular expressions, which the grammar library lacks, as several expressions without it.

A look-ahead at the very start restricts the whole text, so it becomes an expression of its own that the text
must match, too. Any other is left out, and so are word boundaries, which only widens the expression. An
expression with back-references is left out as a whole.
"""

import re
from dataclasses import dataclass

_GROUPS = ("(?=", "(?!", "(?<=", "(?<!")
_BACK_REFERENCE = re.compile(r"[1-9]|k<|k\{")
_ONLY_OF_CLASS = re.compile(r"\^?\[((?:[^\]\\^]|\\.)(?:[^\]\\]|\\.)*)\]\*\$")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d*,?\d*\})[?+]?")


@dataclass(frozen=True, slots=True)
class PlainPatterns:
    """Expressions without look-around; a text that matches the original matches all of them.

    Attributes:
        patterns: the expressions, each found anywhere in the text.
        is_exact: whether conversely a text that matches all of them matches the original.
    """

    patterns: tuple[str, ...]
    is_exact: bool


def without_lookaround(pattern: str) -> PlainPatterns:
    """An expression in the grammar library's syntax, as a search in the text."""
    ends = _group_ends(pattern)
    if ends is None:
        return PlainPatterns((), False)
    pattern = re.sub(r"((?:^|[^\\])(?:\\\\)*)\\Z", r"\1\\z", pattern)
    if not ends.lookarounds:
        return PlainPatterns((pattern,), True)
    conjuncts: list[str] = []
    is_exact, at = True, 1
    while pattern.startswith("^") and not ends.has_alternatives and at in ends.lookarounds:
        end = ends.lookarounds[at]
        inner = pattern[at + 3 : end - 1]
        only = _ONLY_OF_CLASS.fullmatch(inner)
        if pattern.startswith("(?=", at) and not _contains_lookaround(inner):
            conjuncts.append(inner if inner.startswith("^") else f"^(?:{inner})")
        elif pattern.startswith("(?!", at) and only is not None:
            conjuncts.append(f"[^{only.group(1)}]")  # not of these characters only
        else:
            is_exact = False
        at = end
    rest, begin = "", at if at > 1 else 0
    while begin < len(pattern):
        start = min((one for one in ends.lookarounds if one >= begin), default=len(pattern))
        rest += pattern[begin:start]
        if start < len(pattern):
            is_exact = False
            begin = ends.lookarounds[start]
            quantifier = _QUANTIFIER.match(pattern, begin)
            begin = begin if quantifier is None else quantifier.end()
        else:
            begin = start
    whole = "^" + rest if at > 1 else rest
    return PlainPatterns((*conjuncts, whole), is_exact)


@dataclass(slots=True)
class _Groups:
    """Look-around of an expression but that inside others, start to end; whether it has top-level `|`."""

    lookarounds: dict[int, int]
    has_alternatives: bool = False


def _contains_lookaround(pattern: str) -> bool:
    groups = _group_ends(pattern)
    return groups is None or bool(groups.lookarounds)


def _group_ends(pattern: str) -> _Groups | None:
    """The groups of an expression; None if it has back-references."""
    groups, open_groups, in_class, at = _Groups({}), list[tuple[int, bool]](), False, 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            if not in_class and _BACK_REFERENCE.match(pattern, at + 1):
                return None
            is_boundary = not in_class and pattern.startswith(("\\b", "\\B"), at)
            if is_boundary and not any(outer for _, outer in open_groups):
                groups.lookarounds[at] = at + 2
            at += 2
            continue
        if in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
            at += 1 + pattern.startswith("^", at + 1)
            at += pattern.startswith("]", at)  # a `]` that comes first is a character
            continue
        elif character == "(":
            if pattern.startswith("(?P=", at):
                return None
            open_groups.append((at, pattern.startswith(_GROUPS, at)))
        elif character == ")" and open_groups:
            start, looks_around = open_groups.pop()
            if looks_around and not any(outer for _, outer in open_groups):
                groups.lookarounds[start] = at + 1
        elif character == "|" and not open_groups:
            groups.has_alternatives = True
        at += 1
    return groups
