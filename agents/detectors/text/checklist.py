"""`checklist_coverage`: items of a checklist that a text does not cover."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.text.conventions import pairs_by_name
from agents.detectors.text.given import given_files, named_inputs
from agents.text.dates import dates
from agents.text.sentences import Sentence, sentences
from agents.text.words import terms
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

MISSING_PART = Rule("missing-part", Severity.MEDIUM, "item of the checklist that is not covered")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.+?)\s*$")
_COVERED = 0.6
"""Share of an item's terms that one sentence or heading must have."""

_MAX_ITEMS = 200
_FILLER = frozenset(
    ["must", "contain", "includ", "giv", "given", "nam", "stat", "list", "text", "section"]
)
_KINDS = (
    (re.compile(r"\bversions?\b", re.IGNORECASE), re.compile(r"\bv?\d+\.\d+(?:\.\d+)?\b")),
    (re.compile(r"\be-?mail\b", re.IGNORECASE), re.compile(r"[\w.+-]{1,64}@[\w-]+\.\w+")),
    (re.compile(r"\b(?:link|url)\b", re.IGNORECASE), re.compile(r"https?://\S")),
)
_DATE = re.compile(r"\bdates?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a checklist, and the line of the text that covers it, or 0."""

    text: str
    line: int


def checklist_items(text: str) -> list[str]:
    """The list items of a checklist, or its lines if it has none; headings are left out."""
    lines = text.split("\n")
    items = [match[1] for line in lines if (match := _ITEM.match(line[:500]))]
    plain = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return (items or plain)[:_MAX_ITEMS]


def check_items(items: Sequence[str], text: str) -> list[Item]:
    """Where a text covers each item: by a heading or sentence with most of its words, or by its kind."""
    found = sentences(text)
    having = [(one, set(terms(one.text))) for one in found]
    return [Item(item, _line_of(item, having)) for item in items]


def _line_of(item: str, having: Sequence[tuple[Sentence, set[str]]]) -> int:
    wanted = set(terms(item.replace("_", " "))) - _FILLER
    if not wanted:
        return 1
    if len(wanted) <= 2:  # an item of one word may be covered by what it names: a date, a version
        if _DATE.search(item):
            return next((one.line for one, _ in having if dates(one.text)), 0)
        kind = next((pattern for name, pattern in _KINDS if name.search(item)), None)
        if kind is not None:
            return next((one.line for one, _ in having if kind.search(one.text)), 0)
    covering = [(len(wanted & own) / len(wanted), one) for one, own in having]
    best = max(covering, key=lambda pair: (pair[0], pair[1].heading), default=None)
    return best[1].line if best is not None and best[0] >= _COVERED else 0


def checklist_name(inputs: Mapping[str, Any]) -> str:
    """The name of the input that holds the checklist."""
    return next((name for name in ("checklist", "requirements") if name in inputs), "source")


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    inputs = named_inputs(workspace, context.inputs, context.task)
    output = given_files(workspace, inputs, "output", context.document)
    lists = given_files(workspace, inputs, checklist_name(inputs))
    if not output and not lists:
        for drafts, named in pairs_by_name(workspace, "checklist"):
            wanted = [item for file in named for item in checklist_items(file.text)]
            for file in drafts:
                yield from missing_items(file, wanted)
        return
    items = [item for file in lists if not _is_data(file) for item in checklist_items(file.text)]
    for file in output:
        if _is_data(file):
            continue
        context.check_cancelled()
        yield from missing_items(file, items)


def _is_data(file: SourceFile) -> bool:
    """Whether a file holds data, which is compared with a schema instead."""
    return file.language in ("json", "yaml", "toml") or file.text.lstrip().startswith(("{", "["))


def missing_items(file: SourceFile, items: Sequence[str]) -> Iterator[Finding]:
    """One finding at the first line that names all items which the text lacks."""
    missing = [item.text for item in check_items(items, file.text) if not item.line]
    if missing:
        shown = "; ".join(f"{item:.80}" for item in missing[:8])
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        yield MISSING_PART.at(file, 1, f"The text does not cover: {shown}{more}.", confidence=0.8)


CHECKLIST_COVERAGE = Detector(
    "checklist_coverage",
    "Items of a checklist that a text does not cover.",
    _detect,
    (MISSING_PART,),
)
