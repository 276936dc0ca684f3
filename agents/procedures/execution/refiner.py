"""`refiner`: the mechanical points of a critique, applied to a text.

Rules: double words and repeated sentences are removed, wordy phrases and filler words shortened, blanks and
punctuation corrected. Numbers, names, code and links stay as they are; a change that would touch one is not
made. What needs judgement stays in `findings`.
"""

import re
from collections import Counter
from collections.abc import Callable

from agents.detectors.text.draft import check_draft
from agents.outputs.text import Text
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import MAX_DOCUMENT_CHARS, bounded, records, source_text
from agents.text.numbers import numbers
from agents.text.proper_names import proper_names
from agents.text.sentences import sentences
from agents.text.words import words
from agents.workspace.source_file import SourceFile

MAX_CHANGE = 0.4
"""Share of the characters that may be removed; beyond it the text is left as it is."""

_WORDY = {
    "in order to": "to", "due to the fact that": "because", "at this point in time": "now",
    "in the event that": "if", "a large number of": "many", "a majority of": "most",
    "for the purpose of": "for", "in spite of the fact that": "although", "with regard to": "about",
    "has the ability to": "can", "is able to": "can", "are able to": "can", "in the near future": "soon",
    "on a regular basis": "regularly", "until such time as": "until", "the reason why is that": "because",
    "it should be noted that ": "", "it is important to note that ": "", "needless to say, ": "",
    "as a matter of fact, ": "", "each and every": "every", "first and foremost": "first",
    "basically ": "", "very unique": "unique", "completely finished": "finished", "end result": "result",
    "past history": "history", "future plans": "plans", "absolutely essential": "essential",
}  # fmt: skip
_PROTECTED = re.compile(
    r"```.*?```|`[^`\n]+`|https?://\S+|\[[^\]\n]*\]\([^)\n]*\)|\"[^\"\n]*\"|“[^”\n]*”", re.DOTALL
)
_DOUBLE = re.compile(
    r"\b(the|a|an|of|to|in|is|and|for|with|on|it|be|are|this)\s+\1\b", re.IGNORECASE
)
_WORDY_PATTERN = re.compile(
    "|".join(
        rf"\b{re.escape(phrase)}" + ("" if phrase.endswith(" ") else r"\b") for phrase in _WORDY
    ),
    re.IGNORECASE,
)
_SPACES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")
_BEFORE_MARK = re.compile(r"(?<=\w)[ \t]+(?=[,.;:](?:\s|$))")


async def run(task: AgentTask, context: ProcedureContext) -> Text:
    """Refine the text of the task."""
    text = source_text(task)
    if not text.strip():
        return Text(cannot_do="There is no text to refine.")
    if len(text) > MAX_DOCUMENT_CHARS:
        return Text(cannot_do=f"The text is longer than {MAX_DOCUMENT_CHARS:,} characters.")
    refined, changes = await context.in_thread(refine, text)
    left = records(list(check_draft(SourceFile("text", refined.encode("utf-8", "replace")))))
    if left:
        context.note(f"{len(left)} points need judgement: a model or a person has to rewrite them.")
    return Text(text=refined, changes=[bounded(one, 300) for one in changes[:200]], findings=left)


def refine(text: str) -> tuple[str, list[str]]:
    """The corrected text, and one sentence for each change; numbers and names are those of the text."""
    changes: list[str] = []
    refined = _without_repeated(text, changes)
    for name, change in _CHANGES:
        refined = _outside_protected(refined, change, name, changes)
    kept = _fingerprint(refined) == _fingerprint(text) or _kept_as_set(text, refined)
    if not kept or len(refined) < (1 - MAX_CHANGE) * len(text):
        return text, []
    return refined, changes


def _outside_protected(
    text: str, change: Callable[[str], str], name: str, changes: list[str]
) -> str:
    """Apply a change between code, links and quotes."""
    parts: list[str] = []
    position = 0
    for match in [*_PROTECTED.finditer(text), None]:
        end = len(text) if match is None else match.start()
        before = text[position:end]
        after = change(before)
        if after != before:
            changes.append(f"{name}: {_difference(before, after)}")
        parts.append(after)
        if match is not None:
            parts.append(match.group())
            position = match.end()
    return "".join(parts)


def _difference(before: str, after: str) -> str:
    """The first words that differ."""
    left, right = before.split(), after.split()
    at = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), len(right))
    return f"{' '.join(left[at : at + 6])!r} → {' '.join(right[at : at + 4])!r}"


def _shorten(text: str) -> str:
    def replace(match: "re.Match[str]") -> str:
        phrase = match.group()
        short = _WORDY[phrase.lower()]
        return short[:1].upper() + short[1:] if phrase[0].isupper() else short

    shortened = _WORDY_PATTERN.sub(replace, text)
    # A removed opening leaves a small letter at the start of its sentence.
    if shortened != text:
        shortened = (
            re.sub(r"(^|[.!?]\s+)([a-z])(?=[a-z]*\s)", lambda m: m[1] + m[2].upper(), shortened)
            if _begins_upper(text)
            else shortened
        )
    return shortened


def _begins_upper(text: str) -> bool:
    stripped = text.lstrip()
    return bool(stripped) and stripped[0].isupper()


_CHANGES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("Double word", lambda text: _DOUBLE.sub(r"\1", text)),
    ("Wordy phrase", _shorten),
    ("Blanks", lambda text: _BEFORE_MARK.sub("", _SPACES.sub(" ", text))),
)


def _without_repeated(text: str, changes: list[str]) -> str:
    """The text without sentences that repeat one of the last three."""
    recent: list[str] = []
    cut: list[tuple[int, int]] = []
    for sentence in sentences(text):
        plain = " ".join(word.text.lower() for word in words(sentence.text))
        if plain in recent and plain.count(" ") >= 2 and not sentence.heading:
            cut.append((sentence.start, sentence.end))
            changes.append(f"Repeated sentence: {sentence.text!r:.120} removed.")
        recent = [*recent[-2:], plain]
    for start, end in reversed(cut):
        head = text[:start].rstrip(" \t") if text[end : end + 1] in ("", "\n") else text[:start]
        tail = text[end:].lstrip(" \t") if head.endswith((" ", "\n")) else text[end:]
        text = head + tail
    return text


def _fingerprint(text: str) -> tuple[Counter[str], Counter[str]]:
    names = Counter(
        part for name in proper_names(text) if not name.begins_sentence for part in name.parts
    )
    return Counter(number.text for number in numbers(text)), names


def _kept_as_set(before: str, after: str) -> bool:
    """Whether no number and no name is lost or new; a removed repetition may lower its count."""
    return [set(part) for part in _fingerprint(before)] == [
        set(part) for part in _fingerprint(after)
    ]
