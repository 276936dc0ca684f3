"""`researcher`: passages of the files, and of pages that the task names, that answer a question, quoted.

BM25 over paragraphs finds passages; of each, the sentence nearest to the question is quoted. Passages that
repeat an earlier one are left out. Disagreeing numbers and old sources are noted.
"""

import re
from dataclasses import dataclass

from agents.detectors.text.citations import duplicate_sources
from agents.detectors.text.given import PROSE, given_files
from agents.outputs.answer import Answer, Citation
from agents.procedures.execution.web_sources import URL, web_sources
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded, records
from agents.text.dates import dates
from agents.text.relevance import PassageIndex, cosine, tfidf_vectors
from agents.text.sentences import Paragraph, Sentence, line_at, line_starts, paragraphs, sentences
from agents.text.words import terms
from agents.workspace.source_file import SourceFile

MAX_QUOTES = 6
_CANDIDATES = 24
_MIN_COVERAGE = 0.3
_SAME = 0.85
_MAX_PASSAGES = 50_000
_YEAR = re.compile(r"(?<![\d.,/-])(1[89]\d\d|20\d\d)(?![\d/-]|[.,]\d)")
_ASKING = """
find search research look gather what which who when where why how tell explain sources information about
"""
_QUESTION = frozenset(terms(_ASKING))


@dataclass(frozen=True, slots=True)
class _Passage:
    file: SourceFile
    paragraph: Paragraph


async def run(task: AgentTask, context: ProcedureContext) -> Answer:
    """Answer from the files, and from the pages that the task names."""
    sources = (
        given_files(task.workspace, task.inputs, "source", task.document)
        or [file for file in task.workspace if file.language in PROSE]
        or list(task.workspace)
    )
    sources = [*sources, *await web_sources(task.text, context)]
    if not sources:
        return Answer(cannot_do="There are no sources: name files or give a document.")
    question = URL.sub(" ", task.text)
    if not set(terms(question)) - _QUESTION:
        return Answer(cannot_do="The question has no word to look for.")
    answer, notes = await context.in_thread(research, question, sources)
    for note in notes:
        context.note(note)
    return answer


def research(question: str, sources: list[SourceFile]) -> tuple[Answer, list[str]]:
    """The answer with citations, and notes on what the sources disagree about."""
    doubled = list(duplicate_sources(sources))
    left_out = {finding.file for finding in doubled}
    passages = [
        _Passage(file, one)
        for file in sources
        if file.path not in left_out
        for one in paragraphs(file.text)
    ][:_MAX_PASSAGES]
    wanted = " ".join(
        term for term in question.split() if terms(term) and terms(term)[0] not in _QUESTION
    )
    index = PassageIndex([one.paragraph.text for one in passages])
    hits = [
        (number, score)
        for number, score in index.search(wanted, _CANDIDATES)
        if index.coverage(wanted, number) >= _MIN_COVERAGE
    ]
    if not hits:
        reason = "The sources have no passage on the question."
        return Answer(cannot_do=reason, findings=records(doubled)), []
    citations: list[Citation] = []
    chosen: list[str] = []
    for number, _ in hits:
        quoted = _best_sentence(passages[number], wanted)
        if quoted is None or _repeats(quoted[0], chosen):
            continue
        text, line, end_line = quoted
        chosen.append(text)
        citations.append(
            Citation(
                file=bounded(passages[number].file.path, 300),
                line=line,
                end_line=end_line,
                quote=bounded(text, 300),
            )
        )
        if len(citations) == MAX_QUOTES:
            break
    lines = [f"{one.quote} [{number}]" for number, one in enumerate(citations, start=1)]
    answer = Answer(
        text=bounded(" ".join(lines), 4_000), citations=citations, findings=records(doubled)
    )
    return answer, _notes(citations, sources)


def _best_sentence(passage: _Passage, question: str) -> tuple[str, int, int] | None:
    """The sentence of a passage nearest to the question, with its lines in the file."""
    text = passage.paragraph.text
    found = [one for one in sentences(text) if not one.heading] or _whole(text)
    wanted = set(terms(question))
    best = max(found, key=lambda one: len(wanted & set(terms(one.text))), default=None)
    if best is None or not wanted & set(terms(best.text)):
        return None
    first = passage.paragraph.line - 1
    return " ".join(best.text.split()), first + best.line, first + best.end_line


def _whole(text: str) -> list[Sentence]:
    """A passage without prose, such as code, as one sentence a line."""
    starts = line_starts(text)
    return [
        Sentence(line.strip(), starts[i], line_at(starts, starts[i]), i + 1, 0)
        for i, line in enumerate(text.split("\n"))
        if line.strip()
    ]


def _repeats(text: str, chosen: list[str]) -> bool:
    vectors = tfidf_vectors([text, *chosen])
    return any(text == one for one in chosen) or any(
        cosine(vectors[0], other) >= _SAME for other in vectors[1:]
    )


def _notes(citations: list[Citation], sources: list[SourceFile]) -> list[str]:
    notes = []
    if len({one.file for one in citations}) == 1 and len(sources) > 1:
        notes.append(f"All quotes are from {citations[0].file}: no second source confirms them.")
    years = {int(year) for one in citations for year in _YEAR.findall(one.quote)}
    years |= {
        date.readings[0][0] for one in citations for date in dates(one.quote) if date.readings[0][0]
    }
    if years and max(years) - min(years) > 5:
        notes.append(f"The quotes speak of {min(years)} to {max(years)}: check which is current.")
    return notes
