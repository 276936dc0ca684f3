"""Design tokens: near-duplicate colours, unused and undefined tokens, values beside the tokens."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from agents.api.finding import Finding, Severity
from agents.detectors.design.colors import Color, difference, parse_color
from agents.detectors.design.style_sheet import resolve, rules_of_file, used_variables, variables_of
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_LOW, _MEDIUM = Severity.LOW, Severity.MEDIUM
NEAR_DUPLICATE = Rule("near-duplicate-color", _LOW, "Two tokens that look the same")
UNUSED = Rule("unused-token", _LOW, "Token that nothing uses")
UNDEFINED = Rule("undefined-token", _MEDIUM, "Token that is not defined")
OFF_PALETTE = Rule("off-palette", _LOW, "Colour beside the palette")
CYCLE = Rule("token-cycle", _MEDIUM, "Tokens that refer to each other")
BAD_VALUE = Rule("token-value", _MEDIUM, "Token without a usable value")
JUST_NOTICEABLE = 2.3
RELATED = 15.0
_FIRST_COLOR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgba?|hsla?)\([^()]*\)")
_COLOR_PROPERTIES = re.compile(r"color|background|border|outline|fill|stroke|shadow")
_TEXTUAL = frozenset([
    "primary", "secondary", "foreground", "background", "surface", "panel", "boost", "warning", "error",
    "success", "accent", "text", "text-muted", "text-disabled", "block-cursor-background", "border",
])  # fmt: skip


class Token(NamedTuple):
    """A named value at a line."""

    name: str
    value: str
    line: int


def css_tokens(file: SourceFile) -> list[Token]:
    """Custom properties and Textual variables of a style sheet or page."""
    return [
        Token(one.name, one.value, one.line)
        for rule in rules_of_file(file)
        for one in rule.declarations
        if one.name.startswith(("--", "$")) and not rule.conditions and not _is_theme(rule.selector)
    ]


def _is_theme(selector: str) -> bool:
    """Whether the rule redefines tokens for a state, such as a dark theme."""
    return bool(re.search(r"\[data-|dark|\.theme|prefers-|:host\(", selector))


def json_tokens(file: SourceFile) -> list[Token]:
    """Tokens of a JSON file in the Design Tokens format (`$value`, or `value`), or of plain nesting."""
    try:
        data = json.loads(file.text)
    except (ValueError, RecursionError):
        return []
    found: list[Token] = []

    def collect(value: Any, path: tuple[str, ...]) -> None:
        if len(path) > 12:
            return
        if isinstance(value, dict):
            leaf = value.get("$value", value.get("value"))
            if isinstance(leaf, str | int | float) and path:
                found.append(Token(".".join(path), str(leaf), _line_of(file, path)))
                return
            for key, inner in value.items():
                if not str(key).startswith("$"):
                    collect(inner, (*path, str(key)))
        elif isinstance(value, str | int | float) and not isinstance(value, bool) and path:
            found.append(Token(".".join(path), str(value), _line_of(file, path)))

    collect(data, ())
    return found


def _line_of(file: SourceFile, path: tuple[str, ...]) -> int:
    """The line of the last key of a path, looked for in the order of the keys."""
    at = 0
    for key in path:
        found = file.text.find(json.dumps(key, ensure_ascii=False), at)
        at = found if found >= 0 else at
    return file.text.count("\n", 0, at) + 1


def is_token_file(file: SourceFile) -> bool:
    """Whether a JSON file holds design tokens, by its name or its members."""
    if file.language != "json":
        return False
    named = re.search(r"token|theme|palette|design", file.path.rsplit("/", 1)[-1], re.I)
    return named is not None or '"$value"' in file.text


def detect_tokens(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    """All rules over style sheets, pages and token files."""
    styles = list(workspace.of("css", "tcss", "html"))
    rules = [rule for file in styles for rule in rules_of_file(file)]
    variables = variables_of(rules)
    used = Counter(name for file in styles for name, _ in used_variables(file.text))
    for file in workspace.of("javascript", "typescript", "tsx", "python"):
        used.update(re.findall(r"--[\w-]+|\$[\w-]+", file.text))
    for file in styles:
        context.check_cancelled()
        tokens = css_tokens(file)
        yield from _duplicates(file, tokens, variables)
        for token in tokens:
            if (not used[token.name] and styles != [file]) or (
                not used[token.name] and len(tokens) > 1
            ):
                yield UNUSED.at(file, token.line, f"{token.name} is defined and never used.")
            if _in_cycle(token.name, variables):
                yield CYCLE.at(file, token.line, f"{token.name} refers to itself.")
        yield from _undefined(file, variables)
        yield from _off_palette(file, variables)
    for file in workspace:
        if is_token_file(file):
            yield from _token_file(file, workspace)


def _duplicates(
    file: SourceFile, tokens: list[Token], variables: dict[str, str]
) -> Iterator[Finding]:
    colors: list[tuple[Token, Color]] = []
    for token in tokens:
        if "var(" in token.value or token.value.startswith("$"):
            continue  # an alias on purpose
        color = parse_color(resolve(token.value, variables))
        if color is None or color.alpha < 1.0:
            continue
        for earlier, other in colors:
            apart = difference(color, other)
            if apart < JUST_NOTICEABLE:
                how = (
                    "the same colour as"
                    if color == other
                    else f"hardly different (ΔE {apart:.1f}) from"
                )
                text = (
                    f"{token.name} ({color.hex}) is {how} {earlier.name} ({other.hex}): keep one."
                )
                yield NEAR_DUPLICATE.at(file, token.line, text)
                break
        colors.append((token, color))


def _in_cycle(name: str, variables: dict[str, str]) -> bool:
    seen: set[str] = set()
    value = variables.get(name, "")
    while match := re.fullmatch(r"var\(\s*(--[\w-]+)\s*\)|(\$[\w-]+)", value.strip()):
        target = match[1] or match[2]
        if target == name:
            return True
        if target in seen:
            return False
        seen.add(target)
        value = variables.get(target, "")
    return False


def _undefined(file: SourceFile, variables: dict[str, str]) -> Iterator[Finding]:
    said: set[str] = set()
    for name, line in used_variables(file.text):
        if name in variables or name in said:
            continue
        if name.startswith("$") and (file.language != "tcss" or name[1:].split("-")[0] in _TEXTUAL):
            continue
        if name.startswith("--") and re.search(rf"var\(\s*{re.escape(name)}\s*,", file.text):
            continue  # it has a fallback
        said.add(name)
        yield UNDEFINED.at(file, line, f"{name} is used and not defined in these files.")


def _off_palette(file: SourceFile, variables: dict[str, str]) -> Iterator[Finding]:
    palette = {
        name: color
        for name, value in variables.items()
        if (color := parse_color(resolve(value, variables))) is not None
    }
    if len(palette) < 3:
        return  # there is no palette
    for rule in rules_of_file(file):
        for one in rule.declarations:
            if one.name.startswith(("--", "$")) or not _COLOR_PROPERTIES.search(one.name):
                continue
            for written in _FIRST_COLOR.findall(one.value):
                color = parse_color(written)
                if color is None or color.alpha < 1.0 or color.hex in ("#000000", "#ffffff"):
                    continue
                near = min(palette, key=lambda name: difference(color, palette[name]))
                apart = difference(color, palette[near])
                text = f"{written} is not in the palette."
                if apart < JUST_NOTICEABLE:
                    text = f"{written} is {near}: use the token."
                elif apart < RELATED:
                    text = f"{written} is not in the palette; the nearest token is {near}."
                yield OFF_PALETTE.at(file, one.line, text)


def _token_file(file: SourceFile, workspace: Workspace) -> Iterator[Finding]:
    tokens = json_tokens(file)
    names = {token.name for token in tokens}
    colors = [token for token in tokens if parse_color(token.value) is not None]
    yield from _duplicates(file, colors, {})
    for token in tokens:
        for target in re.findall(r"\{([\w.\- ]+)\}", token.value):
            if target not in names and f"{target}.value" not in names:
                text = f"{token.name} refers to {target}, which is no token."
                yield UNDEFINED.at(file, token.line, text)
        if token.value.startswith("#") and parse_color(token.value) is None:
            yield BAD_VALUE.at(file, token.line, f"{token.name}: {token.value:.20} is no colour.")
        if target_cycle(token, tokens):
            yield CYCLE.at(file, token.line, f"{token.name} refers to itself.")


def target_cycle(token: Token, tokens: list[Token]) -> bool:
    """Whether following the references of a token leads back to it."""
    values = {one.name: one.value for one in tokens}
    seen: set[str] = set()
    value = token.value
    while match := re.fullmatch(r"\{([\w.\- ]+)\}", value.strip()):
        if match[1] == token.name:
            return True
        if match[1] in seen:
            return False
        seen.add(match[1])
        value = values.get(match[1], "")
    return False


TOKENS = Detector(
    "design_tokens",
    "Compares design tokens with each other and with the values that style sheets use.",
    detect_tokens,
    (NEAR_DUPLICATE, UNUSED, UNDEFINED, OFF_PALETTE, CYCLE, BAD_VALUE),
)
