"""The detector `scale`: type sizes and spacing tokens beside the steps that the rest of a design keeps."""

import re
from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.design.style_sheet import rules_of_file
from agents.detectors.design.tokens import is_token_file, json_tokens
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_LOW, _MEDIUM = Severity.LOW, Severity.MEDIUM
OFF_TYPE = Rule("off-scale-type", _LOW, "Type size beside the scale")
OFF_STEP = Rule("off-scale-spacing", _LOW, "Spacing token beside the scale")
TINY_TEXT = Rule("tiny-text", _MEDIUM, "Text too small to read", reference="WCAG 1.4.4")
MIN_TEXT_PX = 9.0
_SIZE = re.compile(r"^(\d*\.?\d+)(px|pt|rem|em)$")
_PIXELS = {"px": 1.0, "pt": 4 / 3, "rem": 16.0, "em": 16.0}
_SPACE = re.compile(
    r"(?i)(^|[._-])(space|spacing|gap|gutter|margin|padding|inset|stack)s?([._-]|$)"
)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace.of("css", "html"):
        context.check_cancelled()
        yield from _type_sizes(file)
    for file in workspace:
        if is_token_file(file):
            yield from _spacing_tokens(file)


def _type_sizes(file: SourceFile) -> Iterator[Finding]:
    for rule in rules_of_file(file):
        for one in rule.declarations:
            size = _SIZE.match(one.value) if one.name == "font-size" else None
            if size is None:
                continue
            pixels = float(size[1]) * _PIXELS[size[2]]
            if 0 < pixels < MIN_TEXT_PX and size[2] != "em":
                yield TINY_TEXT.at(
                    file, one.line, f"{one.value} is too small to read: use at least 12px."
                )
            elif size[2] == "px" and (pixels * 2) % 1:
                yield OFF_TYPE.at(
                    file, one.line, f"{one.value} is on no step of a type scale: use whole pixels."
                )


def _spacing_tokens(file: SourceFile) -> Iterator[Finding]:
    """Spacing tokens that are no multiple of the step that most of them keep."""
    values = [
        (token, float(match[1]))
        for token in json_tokens(file)
        if _SPACE.search(token.name)
        and (match := re.match(r"^(\d+(?:\.\d+)?)(?:px)?$", str(token.value).strip()))
    ]
    for step in (8, 4, 5):
        off = [(token, value) for token, value in values if value % step]
        if len(values) >= 4 and len(off) * 3 <= len(values):
            for token, value in off:
                text = f"{token.name} is {value:g}, while the others are multiples of {step}."
                yield OFF_STEP.at(file, token.line, text)
            return


SCALE = Detector(
    "scale",
    "Finds type sizes and spacing tokens beside the scale, and text too small to read.",
    _detect,
    (OFF_TYPE, OFF_STEP, TINY_TEXT),
)
