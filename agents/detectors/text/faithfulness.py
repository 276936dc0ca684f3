"""`text_against_source`: numbers, names and statements of a text that its source does not support.

Each sentence is compared with the sentences of the source that share its words. What the source does not say
in similar words is reported with a low confidence: a paraphrase by synonyms looks the same.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.text.given import checked_pairs
from agents.text.located import leaves, read_located
from agents.text.numbers import Number, is_among, numbers
from agents.text.proper_names import ProperName, proper_names
from agents.text.relevance import PassageIndex
from agents.text.sentences import Sentence, sentences
from agents.text.words import STOP_WORDS, stem, terms, words
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

CHANGED_NUMBER = Rule("changed-number", Severity.MEDIUM, "number that the source does not have")
CHANGED_NAME = Rule("changed-name", Severity.MEDIUM, "name that the source does not have")
REVERSED = Rule("reversed-claim", Severity.HIGH, "statement that the source negates")
UNSUPPORTED = Rule("unsupported-claim", Severity.MEDIUM, "statement that the source does not make")

_SIMILAR = 0.55
"""Share of a sentence's terms that a source sentence must have for their negations to be compared."""

_SUPPORTED = 0.4
"""Share of a sentence's terms that the source must have."""

_MIN_TERMS = 3
_NEGATIONS = frozenset([
    "not", "no", "never", "without", "cannot", "none", "neither", "nor", "refuse", "fail", "nicht", "kein",
])  # fmt: skip
_SCOPE = 2
"""Words with meaning after a negation that it applies to."""

_PREPOSITIONS = frozenset([
    "at", "in", "on", "of", "for", "by", "with", "until", "from", "during", "before", "after", "because",
])  # fmt: skip

_OPPOSITES = [
    ("increas", "decreas"), ("rise", "fall"), ("grow", "shrink"), ("before", "after"), ("more", "less"),
    ("more", "fewer"), ("above", "below"), ("over", "under"), ("open", "clos"), ("accept", "reject"),
    ("approv", "reject"), ("allow", "forbid"), ("enabl", "disabl"), ("gain", "los"), ("win", "los"),
    ("first", "last"), ("earlier", "later"), ("higher", "lower"), ("faster", "slower"), ("up", "down"),
    ("succeed", "fail"), ("start", "end"), ("always", "never"), ("minimum", "maximum"),
    ("cheaper", "dearer"), ("add", "remov"),
]  # fmt: skip


_OPPOSITE_WORDS = {word for pair in _OPPOSITES for word in pair}
_IGNORED = STOP_WORDS["en"] - _OPPOSITE_WORDS


@dataclass(slots=True)
class SourceText:
    """A source, prepared for comparison."""

    text: str
    sentences: list[Sentence]
    index: PassageIndex
    numbers: list[Number]
    words: frozenset[str]
    terms: frozenset[str]

    @classmethod
    def of(cls, files: Sequence[SourceFile]) -> "SourceText":
        """The joined text of files; JSON and YAML become one sentence a member."""
        text = "\n\n".join(plain_text(file) for file in files)
        found = sentences(text)
        return cls(
            text,
            found,
            PassageIndex([one.text for one in found]),
            numbers(text, spelled=True),
            frozenset(word.text.lower().removesuffix("'s") for word in words(text)),
            frozenset(terms(text)),
        )


def plain_text(file: SourceFile) -> str:
    """The text of a file; of JSON and YAML, a line `key: value` for each member."""
    if file.language not in ("json", "yaml") and not file.text.lstrip().startswith(("{", "[")):
        return file.text
    located = read_located(file.text)
    if located is None or not isinstance(located.value, dict | list):
        return file.text
    lines = []
    for path, value in leaves(located.value):
        names = " ".join(str(part).replace("_", " ") for part in path if isinstance(part, str))
        ended = isinstance(value, str) and value.rstrip().endswith((".", "!", "?"))
        lines.append(str(value) if ended else f"{names}: {value}.")
    return "\n\n".join(lines)


def unsupported_statements(file: SourceFile, source: SourceText) -> Iterator[Finding]:
    """One finding for each sentence of a file that the source does not support, the surest reason first."""
    for sentence in sentences(file.text):
        finding = _check(file, sentence, source)
        if finding is not None:
            yield finding


def _check(file: SourceFile, sentence: Sentence, source: SourceText) -> Finding | None:
    def report(rule: Rule, message: str, confidence: float) -> Finding:
        return rule.at(
            file, sentence.line, message, end_line=sentence.end_line, confidence=confidence
        )

    for number in numbers(sentence.text):
        if number.value is not None and not is_among(number, source.numbers):
            return report(
                CHANGED_NUMBER, f"The source does not contain the number {number.text}.", 0.9
            )
    best = source.index.search(sentence.text, 3)
    own = set(terms(sentence.text))
    name = _unknown_name(sentence, source)
    if name is not None:
        known = [part for part in name.parts if part.lower() in source.words]
        if known and len(name.parts) > 1:
            return report(CHANGED_NAME, f"The source does not name {name.text}.", 0.85)
        return report(UNSUPPORTED, f"The source does not mention {name.text}.", 0.75)
    if sentence.heading or len(own) < _MIN_TERMS - 1:
        return None
    for index, _ in best:
        other = source.sentences[index]
        if _overlap(own, set(terms(other.text))) >= _SIMILAR:
            word = _reversed_word(sentence.text, other.text)
            if word is not None:
                said = " ".join(other.text.split())
                message = f"The source says the opposite about {word!r}: {said:.200}"
                return report(REVERSED, message, 0.7)
    if len(own) >= _MIN_TERMS and _overlap(own, source.terms) < _SUPPORTED:
        missing = ", ".join(sorted(own - source.terms)[:5])
        return report(
            UNSUPPORTED, f"The source does not say this: it has no word like {missing}.", 0.6
        )
    return None


def _overlap(own: set[str], other: set[str] | frozenset[str]) -> float:
    return len(own & other) / len(own) if own else 1.0


def _unknown_name(sentence: Sentence, source: SourceText) -> ProperName | None:
    for name in proper_names(sentence.text):
        if name.begins_sentence or sentence.heading:
            continue
        if any(part.lower().strip("'’") not in source.words for part in name.parts):
            return name
    return None


def _reversed_word(one: str, other: str) -> str | None:
    """The stem of a word that one sentence negates and the other states, or whose opposite the other has."""
    left, right = _polarity(one), _polarity(other)
    for word, negated in left.items():
        if word in right and right[word] != negated:
            return word
    for first, second in _OPPOSITES:
        for low, high in ((first, second), (second, first)):
            if low in left and high in right and low not in right and high not in left:
                return low
    return None


def _polarity(text: str) -> dict[str, bool]:
    """Stems of a sentence, and whether a negation stands shortly before them in the same clause."""
    found: dict[str, bool] = {}
    for clause in re.split(r"[,;:()]|\b(?:but|and|while|whereas)\b", text):
        reach = 0
        for word in words(clause):
            lower = word.text.lower()
            base = stem(lower)
            if lower in _NEGATIONS or base in _NEGATIONS or lower.endswith(("n't", "n’t")):
                reach = _SCOPE
            elif lower not in _IGNORED and len(base) > 1:
                found[base] = found.get(base, False) or reach > 0
                reach = max(0, reach - 1)
            elif lower in _PREPOSITIONS and reach < _SCOPE:
                reach = 0  # `does not work at night` says nothing about the night
    return found


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for output, files in checked_pairs(workspace, context, "text"):
        source = SourceText.of(files)
        for file in output if files else ():
            context.check_cancelled()
            yield from unsupported_statements(file, source)


TEXT_AGAINST_SOURCE = Detector(
    "text_against_source",
    "Numbers, names and statements of a text that its source does not support.",
    _detect,
    (CHANGED_NUMBER, CHANGED_NAME, REVERSED, UNSUPPORTED),
)
