"""`translation_against_source`: what a translation must keep, and lines that were not translated.

Kept are placeholders, numbers, code, links, addresses and tags. Line by line where both texts have the same
number of lines, member by member in JSON and YAML, otherwise paragraph by paragraph or as a whole.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.text.given import checked_pairs
from agents.text.language import language_of_text
from agents.text.located import Located, leaves, read_located
from agents.text.numbers import Number, numbers
from agents.text.sentences import paragraphs
from agents.text.words import words
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

PLACEHOLDER = Rule("placeholder-changed", Severity.HIGH, "placeholder that the translation changed")
NUMBER = Rule("number-changed", Severity.MEDIUM, "number that the translation changed")
CODE = Rule("code-changed", Severity.HIGH, "code that the translation changed")
LINK = Rule("link-changed", Severity.MEDIUM, "link or address that the translation changed")
MARKUP = Rule("markup-changed", Severity.MEDIUM, "tag that the translation changed")
UNTRANSLATED = Rule("untranslated", Severity.MEDIUM, "text left in the source language")
MISSING = Rule("missing-translation", Severity.HIGH, "text that has no translation")
LENGTH = Rule("length-ratio", Severity.LOW, "translation of an unlikely length")

_PLACEHOLDER = re.compile(
    r"\{\{\s*[^{}\n]*?\s*\}\}|\$?\{[^\s{}]*\}|%\([^()\s]+\)[#0\- +]*\d*(?:\.\d+)?[sdifgxr]"
    r"|%(?:\d+\$)?[#0+]*\d*(?:\.\d+)?[sdifgxr@](?![\w%])|\{\s*\w+\s*,\s*(?:plural|select|number|date|time)"
)
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_LINK = re.compile(r"https?://[^\s)>\]\"']+|[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_TAG = re.compile(r"</?[A-Za-z][\w-]*[^<>]{0,200}>")
_SPELLED = 12
"""A number up to this may be written as a word in the translation."""

_MIN_WORDS = 4
_MIN_CHARS = 60
_RATIOS = (0.3, 3.5)
_CJK_RATIOS = (0.12, 8.0)
_CJK = frozenset({"zh", "ja", "ko"})


@dataclass(frozen=True, slots=True)
class _Pair:
    """A piece of the source and its translation, with the line of the latter."""

    source: str
    target: str
    line: int


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for output, files in checked_pairs(workspace, context, "translation"):
        for target, source in zip(output, files, strict=False):
            context.check_cancelled()
            yield from check_translation(source, target)


def check_translation(source: SourceFile, target: SourceFile) -> Iterator[Finding]:
    """What a translation did not keep, at its lines."""
    from_language, to_language = language_of_text(source.text), language_of_text(target.text)
    for pair in _pairs(source.text, target.text):
        if pair.source.strip() and not pair.target.strip():
            yield MISSING.at(
                target, pair.line, f"There is no translation of {pair.source.strip()!r:.200}."
            )
            continue
        yield from _kept(target, pair)
        yield from _translated(target, pair, from_language, to_language)


def _kept(file: SourceFile, pair: _Pair) -> Iterator[Finding]:
    source, target = pair.source, pair.target
    for rule, pattern, what in (
        (CODE, _CODE, "code"),
        (LINK, _LINK, "link or address"),
        (PLACEHOLDER, _PLACEHOLDER, "placeholder"),
        (MARKUP, _TAG, "tag"),
    ):
        before, after = Counter(pattern.findall(source)), Counter(pattern.findall(target))
        lost, added = list((before - after).elements()), list((after - before).elements())
        if lost or (added and rule is not CODE):
            detail = f"{lost[0]!r:.80} is missing" if lost else f"{added[0]!r:.80} was added"
            instead = f", {added[0]!r:.80} stands instead" if lost and added else ""
            yield rule.at(file, pair.line, f"The {what} {detail}{instead}.", confidence=0.9)
        source, target = pattern.sub(" ", source), pattern.sub(" ", target)
    yield from _numbers_kept(file, pair.line, source, target)


def _numbers_kept(file: SourceFile, line: int, source: str, target: str) -> Iterator[Finding]:
    before, after = numbers(source), numbers(target)
    added = _without(after, before)
    lost = [n for n in _without(before, after) if n.value is None or n.value > _SPELLED]
    if lost:
        instead = f"; {added[0].text} stands instead" if added else ""
        yield NUMBER.at(file, line, f"The number {lost[0].text} is missing{instead}.")
    elif added and added[0].value is not None and added[0].value > _SPELLED:
        yield NUMBER.at(file, line, f"The source does not have the number {added[0].text}.")


def _without(some: list[Number], others: list[Number]) -> list[Number]:
    """The numbers that agree with none of the others, each of which is used once."""
    free = list(others)
    rest = []
    for number in some:
        match = next((other for other in free if number.agrees(other)), None)
        if match is None:
            rest.append(number)
        else:
            free.remove(match)
    return rest


def _translated(
    file: SourceFile, pair: _Pair, from_language: str | None, to_language: str | None
) -> Iterator[Finding]:
    plain = _LINK.sub(" ", _CODE.sub(" ", pair.target))
    lowered = [word.text for word in words(plain) if word.text.islower()]
    same = " ".join(pair.source.split()) == " ".join(pair.target.split())
    if len(words(plain)) >= _MIN_WORDS and from_language != to_language:
        left = language_of_text(plain)
        if (same and len(lowered) >= 2) or (left is not None and left == from_language):
            yield UNTRANSLATED.at(
                file, pair.line, "The text is still in the language of the source."
            )
            return
    if len(pair.source) >= _MIN_CHARS:
        low, high = _CJK_RATIOS if _CJK & {from_language, to_language} else _RATIOS
        ratio = len(pair.target) / len(pair.source)
        if not low <= ratio <= high:
            message = f"The translation has {ratio:.0%} of the length of the source."
            yield LENGTH.at(file, pair.line, message, confidence=0.6)


def _pairs(source: str, target: str) -> list[_Pair]:
    """Pieces that correspond to each other."""
    structured = read_located(source), read_located(target)
    if all(one is not None and isinstance(one.value, dict | list) for one in structured):
        return _member_pairs(*structured)
    before, after = source.rstrip().split("\n"), target.rstrip().split("\n")
    blank = [not line.strip() for line in before] == [not line.strip() for line in after]
    if len(before) == len(after) and blank and "```" not in source:
        lines = zip(before, after, strict=True)
        return [_Pair(one, other, i) for i, (one, other) in enumerate(lines, start=1)]
    left, right = paragraphs(source), paragraphs(target)
    if len(left) == len(right):
        return [_Pair(a.text, b.text, b.line) for a, b in zip(left, right, strict=True)]
    return [_Pair(source, target, 1)]


def _member_pairs(source: Located | None, target: Located | None) -> list[_Pair]:
    if source is None or target is None:
        return []
    translated = dict(leaves(target.value))
    return [
        _Pair(value, str(translated.get(path, "")), target.line(path))
        for path, value in leaves(source.value)
        if isinstance(value, str)
    ]


TRANSLATION_AGAINST_SOURCE = Detector(
    "translation_against_source",
    "Placeholders, numbers, code, links and tags that a translation changed, and text left untranslated.",
    _detect,
    (PLACEHOLDER, NUMBER, CODE, LINK, MARKUP, UNTRANSLATED, MISSING, LENGTH),
)
