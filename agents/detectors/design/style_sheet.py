"""`StyleRule`: the rules of CSS, Textual CSS and `<style>` elements, with the lines of their declarations.

A small tolerant parser, because Textual's dialect nests rules and has its own variables. It never raises.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from agents.workspace.source_file import SourceFile

_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,\s*([^()]*))?\)")
_DOLLAR = re.compile(r"\$[\w-]+")
_DECLARATION = re.compile(r"(--[\w-]+|\$[\w-]+|[a-zA-Z-]+)\s*:\s*(.+)\Z", re.DOTALL)
_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Declaration:
    """`name: value`, as written, at a line from 1."""

    name: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class StyleRule:
    """A rule.

    Attributes:
        selector: as written; nested selectors are joined with spaces.
        line: of the selector, from 1.
        declarations: in order.
        conditions: enclosing at-rules such as `@media (max-width: 600px)`.
    """

    selector: str
    line: int
    declarations: tuple[Declaration, ...]
    conditions: tuple[str, ...] = ()

    def get(self, *names: str) -> Declaration | None:
        """The last declaration of any of these properties."""
        found = [one for one in self.declarations if one.name in names]
        return found[-1] if found else None


@dataclass(slots=True)
class _Open:
    selector: str
    line: int
    declarations: list[Declaration] = field(default_factory=list)


def style_rules(text: str, first_line: int = 1) -> list[StyleRule]:
    """The rules of a style sheet's text; `first_line` is that of its first character."""
    text = _without_comments(text)
    rules: list[StyleRule] = []
    stack: list[_Open] = [_Open("", first_line)]
    start = 0
    line = begin_line = first_line
    quote = ""
    depth = 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter in (quote, "\n") else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "(":
            depth += 1
        elif letter == ")":
            depth = max(0, depth - 1)
        elif letter in "{};" and (depth == 0 or letter != ";"):
            piece, depth = text[start:at], 0
            written = piece.strip()
            where = begin_line + piece[: len(piece) - len(piece.lstrip())].count("\n")
            if letter == "{":
                if len(stack) < _MAX_DEPTH:
                    stack.append(_Open(" ".join(written.split()), where))
            else:
                if written and (match := _DECLARATION.match(written)):
                    name, value = match.groups()
                    kept = Declaration(name.lower(), " ".join(value.split()), where)
                    stack[-1].declarations.append(kept)
                if letter == "}" and len(stack) > 1:
                    _close(stack, rules)
            start, begin_line = at + 1, line
        if letter == "\n":
            line += 1
    if stack[0].declarations:  # Textual's variables stand outside of rules
        rules.append(StyleRule("", first_line, tuple(stack[0].declarations)))
    return sorted(rules, key=lambda rule: rule.line)


def _close(stack: list[_Open], rules: list[StyleRule]) -> None:
    ended = stack.pop()
    outer = [one.selector for one in stack[1:]]
    conditions = tuple(one for one in [*outer, ended.selector] if one.startswith("@"))
    names = [one for one in [*outer, ended.selector] if not one.startswith("@")]
    if ended.declarations:
        selector = " ".join(names).replace(" &", "")
        rules.append(StyleRule(selector, ended.line, tuple(ended.declarations), conditions))


def _without_comments(text: str) -> str:
    """The text with comments replaced by spaces, so that lines stay."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match.group())

    return re.sub(r"/\*.*?(?:\*/|\Z)", blank, text, flags=re.DOTALL)


def variables_of(rules: list[StyleRule]) -> dict[str, str]:
    """Custom properties (`--x`) and Textual's variables (`$x`) with their values; later ones win."""
    return {
        one.name: one.value
        for rule in rules
        for one in rule.declarations
        if one.name.startswith(("--", "$"))
    }


def resolve(value: str, variables: dict[str, str], depth: int = 0) -> str:
    """The value with variables replaced, at most eight deep; unknown ones stay."""
    if depth >= 8 or ("var(" not in value and "$" not in value):
        return value

    def css(match: re.Match[str]) -> str:
        return variables.get(match[1], match[2] or match.group())

    replaced = _VARIABLE.sub(css, value)
    replaced = _DOLLAR.sub(lambda match: variables.get(match.group(), match.group()), replaced)
    return value if replaced == value else resolve(replaced, variables, depth + 1)


def used_variables(text: str) -> Iterator[tuple[str, int]]:
    """Names of variables where a value refers to them, with the line from 1."""
    for number, line in enumerate(_without_comments(text).split("\n"), 1):
        for match in _VARIABLE.finditer(line):
            yield match[1], number
        declared = re.match(r"\s*(\$[\w-]+)\s*:", line)
        for match in _DOLLAR.finditer(line):
            if declared is None or match.start() != declared.start(1):
                yield match.group(), number


def rules_of_file(file: SourceFile) -> list[StyleRule]:
    """The rules of a style sheet, or of the `<style>` elements of a page."""
    if file.language in ("css", "tcss"):
        return style_rules(file.text)
    found: list[StyleRule] = []
    for match in re.finditer(r"<style\b[^>]*>(.*?)(?:</style|\Z)", file.text, re.DOTALL | re.I):
        found += style_rules(match[1], file.text.count("\n", 0, match.start(1)) + 1)
    return found
