"""`expander`: an outline as sections: titles, points to cover, passages of the sources, length.

The prose of the sections needs a model; this delivers what it is written from.
"""

import re
from dataclasses import dataclass, field

from agents.detectors.text.given import PROSE, given_files
from agents.outputs.sections import Section, Sections
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded, text_input
from agents.text.relevance import PassageIndex, jaccard
from agents.text.sentences import paragraphs
from agents.workspace.workspace import Workspace

DEFAULT_WORDS = 600
_MAX_PASSAGES = 3
_MIN_COVERAGE = 0.3
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_ITEM = re.compile(
    r"^(\s*)(?:[-*+•]|((?:\d{1,3}\.)*\d{1,3})[.)]?|[IVX]{1,5}\.|[a-z]\))\s+(.+?)\s*$"
)
_WORDS = re.compile(r"\b(\d{2,6})[- ]words?\b", re.IGNORECASE)


@dataclass(slots=True)
class Heading:
    """A title of an outline, its depth from 1, and the points below it."""

    title: str
    level: int
    points: list[str] = field(default_factory=list)


async def run(task: AgentTask, context: ProcedureContext) -> Sections:
    """Lay out the sections of an outline."""
    outline = text_input(task.inputs, "outline") or task.document
    if "outline" in task.inputs:
        files = given_files(task.workspace, task.inputs, "outline")
        outline = "\n".join(file.text for file in files)
    headings = parse_outline(outline or task.text)
    if len(headings) < 2:
        return Sections(
            cannot_do="No outline was found: give headings or a list, one point a line."
        )
    match = _WORDS.search(task.text)
    total = int(match[1]) if match else DEFAULT_WORDS
    sections = await context.in_thread(develop, headings, _passages(task.workspace, outline), total)
    bare = [one.title for one in sections if not one.material]
    if len(task.workspace) and bare:
        context.note(f"The files have nothing on: {'; '.join(bare)[:200]}.")
    context.note("The prose of the sections needs a model; titles, points and passages are given.")
    for one, other in _similar(sections):
        context.note(f"{one!r:.80} and {other!r:.80} ask for the same.")
    return Sections(sections=sections)


def parse_outline(text: str) -> list[Heading]:
    """The headings of an outline; deeper list items become points of the heading before them."""
    found: list[Heading] = []
    has_headings = re.search(r"^#{1,6}\s", text, re.MULTILINE) is not None
    for line in text.split("\n")[:2_000]:
        heading, item = _HEADING.match(line[:500]), _ITEM.match(line[:500])
        if heading:
            found.append(Heading(heading[2], len(heading[1])))
        elif item:
            numbered = item[2].count(".") if item[2] else 0
            depth = 1 + len(item[1].expandtabs(2)) // 2 + numbered
            if found and (has_headings or depth > 2 or (depth == 2 and not item[2])):
                found[-1].points.append(item[3])
            else:
                found.append(Heading(item[3], min(6, depth)))
    return found[:300]


def develop(headings: list[Heading], passages: list[str], words: int) -> list[Section]:
    """A section for each heading, with the passages that share its words, each passage once."""
    index = PassageIndex(passages)
    weights = [1 + len(heading.points) for heading in headings]
    used: set[int] = set()
    sections = []
    for heading, weight in zip(headings, weights, strict=True):
        query = " ".join([heading.title, *heading.points])
        chosen = [
            number
            for number, _ in index.search(query, 10)
            if number not in used and index.coverage(query, number) >= _MIN_COVERAGE
        ][:_MAX_PASSAGES]
        used |= set(chosen)
        sections.append(
            Section(
                title=bounded(heading.title, 300),
                level=heading.level,
                points=[bounded(point, 300) for point in heading.points[:50]],
                material=[bounded(passages[number], 4_000) for number in chosen],
                words=round(words * weight / sum(weights)),
            )
        )
    return sections


def _passages(workspace: Workspace, outline: str) -> list[str]:
    files = [file for file in workspace if file.language in PROSE and file.text != outline]
    return [one.text for file in files for one in paragraphs(file.text)][:5_000]


def _similar(sections: list[Section]) -> list[tuple[str, str]]:
    titles = [one.title for one in sections]
    return [
        (one, other)
        for i, one in enumerate(titles[:100])
        for other in titles[i + 1 : 100]
        if one.lower() == other.lower() or jaccard(one, other, size=1) >= 0.8
    ][:5]
