"""`answer_against_sources`: wrong citations and quotes, and sources that repeat each other."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.text.faithfulness import SourceText, unsupported_statements
from agents.detectors.text.given import checked_pairs
from agents.text.relevance import jaccard
from agents.text.sentences import Sentence, sentences
from agents.text.words import terms, words
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

WRONG_QUOTE = Rule("wrong-quote", Severity.MEDIUM, "quote that its source does not contain")
MISSING_CITATION = Rule(
    "missing-citation", Severity.MEDIUM, "citation of a source that does not exist"
)
DUPLICATE_SOURCE = Rule("duplicate-source", Severity.MEDIUM, "source that repeats another")
DATE_CONFLICT = Rule("date-conflict", Severity.MEDIUM, "source older than what it is cited for")
NOT_IN_CITED = Rule(
    "not-in-cited-source", Severity.MEDIUM, "statement that its cited source does not make"
)

_LINK = re.compile(r"\[([^\]\n]{0,200})\]\(([^)\s]{1,300})\)")
_QUOTE = re.compile('"([^"\\n]{8,400})"|“([^”\\n]{8,400})”|„([^“\\n]{8,400})“|«([^»\\n]{8,400})»')
_YEAR = re.compile(r"(?<![\d.,/-])(1[89]\d\d|20\d\d)(?![\d/-]|[.,]\d)")
_FORECAST = re.compile(
    r"\b(?:will|would|shall|expect\w*|forecast\w*|plan\w*|predict\w*|project(?:s|ed|ion)|future|"
    r"estimate\w*|target\w*|(?:by|until) \d{4})\b",
    re.IGNORECASE,
)
_SAME = 0.85
"""Share of common runs of three words from which two sources count as one."""

_MIN_TERMS = 8
_MIN_QUOTED_WORDS = 3
_MAX_SOURCES = 400


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for output, sources in checked_pairs(workspace, context, "answer"):
        yield from duplicate_sources(sources)
        for file in output:
            context.check_cancelled()
            yield from check_citations(file, sources, workspace)


def duplicate_sources(sources: Sequence[SourceFile]) -> Iterator[Finding]:
    """Each source that says the same as an earlier one."""
    kept: list[SourceFile] = []
    for source in sources[:_MAX_SOURCES]:
        same = next((one for one in kept if _is_same(one.text, source.text)), None)
        if same is None:
            kept.append(source)
            continue
        last = len(source.text.rstrip().split("\n"))
        message = f"The text repeats {same.path}: it is no second source."
        yield DUPLICATE_SOURCE.at(source, 1, message, end_line=last)


def _is_same(one: str, other: str) -> bool:
    if one.split() == other.split():
        return bool(one.strip())
    short = min(len(one), len(other))
    if short < 0.6 * max(len(one), len(other)) or len(terms(one)) < _MIN_TERMS:
        return False
    return jaccard(one, other) >= _SAME


def check_citations(
    file: SourceFile, sources: Sequence[SourceFile], workspace: Workspace
) -> Iterator[Finding]:
    """The wrong citations and quotes of an answer, at most one finding a sentence."""
    by_path = {source.path: source for source in sources}
    for sentence in sentences(file.text):
        finding = _check(file, sentence, by_path, workspace)
        if finding is not None:
            yield finding


def _check(
    file: SourceFile, sentence: Sentence, sources: Mapping[str, SourceFile], workspace: Workspace
) -> Finding | None:
    cited: list[SourceFile] = []
    for match in _LINK.finditer(sentence.text):
        target = match[2].partition("#")[0]
        if not target or re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        source = _resolve(file.path, target, sources, workspace)
        if source is None:
            return _at(MISSING_CITATION, file, sentence, f"There is no source {target:.120}.")
        cited.append(source)
    wrong = _wrong_quote(sentence.text, cited or list(sources.values()))
    if wrong:
        where = cited[0].path if cited else "any source"
        return _at(WRONG_QUOTE, file, sentence, f"{wrong!r:.200} does not stand in {where}.")
    for source in cited:
        conflict = _date_conflict(sentence.text, source)
        if conflict:
            return _at(DATE_CONFLICT, file, sentence, conflict, confidence=0.7)
    if cited:
        plain = SourceFile(file.path, _LINK.sub("", sentence.text).encode("utf-8", "replace"))
        for finding in unsupported_statements(plain, SourceText.of(cited)):
            if finding.confidence >= 0.85:
                return _at(NOT_IN_CITED, file, sentence, finding.message, confidence=0.75)
    return None


def _at(
    rule: Rule, file: SourceFile, sentence: Sentence, message: str, *, confidence: float = 0.9
) -> Finding:
    return rule.at(file, sentence.line, message, end_line=sentence.end_line, confidence=confidence)


def _resolve(
    path: str, target: str, sources: Mapping[str, SourceFile], workspace: Workspace
) -> SourceFile | None:
    """The source that a link names: beside the answer, from the root, or by its name alone."""
    parts: list[str] = []
    for part in (PurePosixPath(path).parent / target).parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    for candidate in ("/".join(parts), target.removeprefix("./")):
        found = sources.get(candidate) or workspace.get(candidate)
        if found is not None:
            return found
    name = PurePosixPath(target).name
    same = [source for source in sources.values() if PurePosixPath(source.path).name == name]
    return same[0] if len(same) == 1 else None


def _wrong_quote(text: str, sources: Sequence[SourceFile]) -> str:
    for match in _QUOTE.finditer(text):
        quote = next(group for group in match.groups() if group is not None)
        if len(words(quote)) < _MIN_QUOTED_WORDS or not sources:
            continue
        pieces = [_plain(piece) for piece in re.split(r"\s*(?:\[?…\]?|\[?\.\.\.\]?)\s*", quote)]
        if not any(all(piece in _plain(one.text) for piece in pieces) for one in sources):
            return quote
    return ""


def _date_conflict(sentence: str, source: SourceFile) -> str:
    """Why a source cannot report what it is cited for; empty if it can."""
    heading = next((one for one in sentences(source.text) if one.heading), None)
    published = _YEAR.findall(heading.text) if heading else []
    if not published or _FORECAST.search(sentence):
        return ""
    year = max(int(one) for one in published)
    later = [int(one) for one in _YEAR.findall(_LINK.sub("", sentence)) if int(one) > year]
    if not later:
        return ""
    return f"{source.path} is of {year} and cannot report on {later[0]}."


def _plain(text: str) -> str:
    text = text.replace("’", "'").replace("–", "-").casefold()
    return " ".join(text.split()).strip(" .,;:")


ANSWER_AGAINST_SOURCES = Detector(
    "answer_against_sources",
    "Citations that do not exist, quotes that differ, and sources that repeat each other.",
    _detect,
    (WRONG_QUOTE, MISSING_CITATION, DUPLICATE_SOURCE, DATE_CONFLICT, NOT_IN_CITED),
)
