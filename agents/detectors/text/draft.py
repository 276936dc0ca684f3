"""`draft_quality`: weaknesses of prose that can be counted.

Repeated sentences and words, vague claims, unsupported superlatives, claims without a witness, long
sentences, unwritten parts, and numbers that contradict each other.
"""

import re
from collections.abc import Iterator, Sequence

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.text.given import prose_files
from agents.text.numbers import numbers
from agents.text.sentences import Sentence, sentences
from agents.text.words import terms, words
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

REPETITION = Rule("repetition", Severity.LOW, "sentence or word that stands twice")
VAGUE = Rule("vague-claim", Severity.LOW, "sentence that says nothing that can be checked")
LONG = Rule("long-sentence", Severity.LOW, "sentence that is too long to be read at once")
UNWRITTEN = Rule("placeholder-text", Severity.MEDIUM, "part that is not written")
SUPERLATIVE = Rule(
    "unsupported-superlative", Severity.LOW, "superlative without a figure or source"
)
UNATTRIBUTED = Rule("unattributed-claim", Severity.LOW, "claim of unnamed witnesses")
CONTRADICTION = Rule("contradictory-numbers", Severity.MEDIUM, "two numbers for one thing")

MAX_WORDS = 36
_NEAR = 3
_MIN_REPEATED_WORDS = 4
_MIN_FAR_WORDS = 8
_VAGUE = frozenset(
    ["very", "many", "quite", "lot", "lots", "various", "some", "somehow", "somewhat", "several", "things",
     "thing", "stuff", "really", "basically", "generally", "often", "probably", "maybe", "perhaps",
     "ways", "nice", "better", "good", "improved", "numerous", "etc", "much", "fairly", "rather",
     "significant", "significantly", "considerable", "considerably", "appropriate"]
)  # fmt: skip
_UNWRITTEN = re.compile(
    r"^\s*(?:[-*+>]\s+|\d+[.)]\s+)?(?:\*\*|_)?(?:TODO|TBD|FIXME|XXX|T\.B\.D\.|N/?A yet|\?\?\?+)(?:\*\*|_)?"
    r"(?:\s*$|\s*[:.(\u2013-])"
    r"|\blorem ipsum\b|\[(?:insert|add|your|todo|tbd)\b[^\]\n]{0,60}\](?!\()"
    r"|^\s*(?:to be (?:written|done|completed|added|determined)|coming soon|placeholder)\.?\s*$",
    re.IGNORECASE,
)
_SUPERLATIVE = re.compile(
    r"\b(?:the best (?:\w+ )?(?:in the world|on the market|available|solution|choice)|"
    r"the most (?:advanced|powerful|secure|reliable|innovative)|world[- ]class|"
    r"revolutionary|unparalleled|unrivall?ed|unmatched|state[- ]of[- ]the[- ]art|perfect(?:ly)? secure|"
    r"never fails|always works|guaranteed|cutting[- ]edge|best[- ]in[- ]class|game[- ]chang\w+)\b",
    re.IGNORECASE,
)
_UNATTRIBUTED = re.compile(
    r"\b(?:studies (?:show|have shown|suggest)|experts (?:say|agree|believe)|research (?:shows|suggests)|"
    r"it is (?:well[- ]known|widely (?:known|believed|accepted))|everyone knows|"
    r"many (?:people )?(?:say|believe))\b",
    re.IGNORECASE,
)
_SUPPORT = re.compile(r"\]\(|\[\^?\d|https?://|\(\d{4}\)|et al")
_NOT_PROSE = re.compile(r"^\s*(?:\||#|<|!\[|\[[^\]]*\]:)")
_TWICE = re.compile(
    r"\b(the|a|an|of|to|in|is|and|for|with|on|it|be|are|this)\s+\1\b", re.IGNORECASE
)
_COUNT = re.compile(
    r"\b(?:has|have|had|contains?|consists? of|comprises?|includes?|offers?|supports?|lasts?|takes?|costs?"
    r"|weighs?)\s+(?:a total of |about |exactly |only )?$"
)


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in prose_files(workspace, context):
        context.check_cancelled()
        yield from check_draft(file)


def check_draft(file: SourceFile) -> Iterator[Finding]:
    """The weaknesses of a text."""
    prose = [one for one in sentences(file.text) if not _NOT_PROSE.match(one.text)]
    yield from _unwritten(file)
    yield from _repeated(file, prose)
    yield from _contradictions(file, prose)
    for sentence in prose:
        if not sentence.heading:
            yield from _weak(file, sentence)


def _unwritten(file: SourceFile) -> Iterator[Finding]:
    fenced = False
    for number, line in enumerate(file.lines, start=1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and len(line) < 2_000 and _UNWRITTEN.search(re.sub("`[^`]*`", "", line)):
            yield UNWRITTEN.at(file, number, "This part is not written yet.")


def _repeated(file: SourceFile, prose: Sequence[Sentence]) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for position, sentence in enumerate(prose):
        plain = " ".join(word.text.lower() for word in words(sentence.text))
        count = plain.count(" ") + 1
        earlier = seen.get(plain)
        seen[plain] = position
        twice = _TWICE.search(sentence.text)
        if earlier is not None and not sentence.heading:
            near = position - earlier <= _NEAR and count >= _MIN_REPEATED_WORDS
            if near or (
                count >= _MIN_FAR_WORDS and sentence.text.rstrip().endswith((".", "!", "?", "。"))
            ):
                line = prose[earlier].line
                yield REPETITION.at(
                    file, sentence.line, f"The sentence stands in line {line} already."
                )
        elif twice and "`" not in sentence.text:
            line = sentence.line + sentence.text.count("\n", 0, twice.start())
            yield REPETITION.at(file, line, f"The word {twice[1]!r} stands twice.")


def _weak(file: SourceFile, sentence: Sentence) -> Iterator[Finding]:
    text = sentence.text

    def report(rule: Rule, message: str, confidence: float) -> Finding:
        return rule.at(
            file, sentence.line, message, end_line=sentence.end_line, confidence=confidence
        )

    all_words = words(re.sub(r"`[^`\n]*`|\]\([^)]*\)|https?://\S+", " ", text))
    vague = [word.text for word in all_words if word.text.lower() in _VAGUE]
    specific = numbers(text) or "`" in text or _SUPPORT.search(text)
    if len(vague) >= 2 and len(vague) * 5 >= len(all_words) and not specific:
        shown = ", ".join(dict.fromkeys(vague[:4]))
        yield report(VAGUE, f"Nothing here can be checked: {shown}. Name what, and how much.", 0.8)
    count = len(all_words)
    listed = text.count(",") * 4 > count
    # A colon or semicolon lets the reader pause: the longest part between them counts.
    if count >= MAX_WORDS and not listed and _longest_part(text) >= MAX_WORDS:
        yield report(LONG, f"The sentence has {count} words: split it.", 0.8)
    match = _SUPERLATIVE.search(text)
    if match and not specific:
        yield report(SUPERLATIVE, f"{match.group()!r} has no figure and no source.", 0.7)
    match = _UNATTRIBUTED.search(text)
    if match and not _SUPPORT.search(text):
        yield report(UNATTRIBUTED, f"{match.group()!r}: name the source.", 0.7)


def _longest_part(text: str) -> int:
    return max(len(words(part)) for part in re.split(r"[;:]\s", text))


def _contradictions(file: SourceFile, prose: Sequence[Sentence]) -> Iterator[Finding]:
    """Sentences of the same subject and object with different numbers: `The kit has 3 lamps`, `… 4 lamps`."""
    stated: dict[tuple[str, ...], tuple[str, int]] = {}
    for sentence in prose:
        for number in numbers(sentence.text, spelled=True):
            before = sentence.text[: number.start]
            verb = _COUNT.search(before)
            following = words(sentence.text[number.end :])[:1]
            subject = terms(before[: verb.start()])[-2:] if verb else []
            if not verb or not following or not subject or number.value is None:
                continue
            key = (*subject, "|", *terms(following[0].text), verb.group().strip().split()[0])
            earlier = stated.setdefault(key, (str(number.value), sentence.line))
            if earlier[0] != str(number.value):
                message = f"Line {earlier[1]} says {earlier[0]}, this line {number.text}."
                yield CONTRADICTION.at(file, sentence.line, message, confidence=0.7)


DRAFT_QUALITY = Detector(
    "draft_quality",
    "Repetition, vague or unsupported claims, long sentences, unwritten parts, contradictory numbers.",
    _detect,
    (REPETITION, VAGUE, LONG, UNWRITTEN, SUPERLATIVE, UNATTRIBUTED, CONTRADICTION),
)
