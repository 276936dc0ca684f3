"""`closest_quotes`: what is shown behind, or in place of, an answer that no passage supports."""

from dataclasses import dataclass

from engine.retrieval.answering.support import Support, SupportJudge
from engine.retrieval.answering.verification import Citation, Quote

NOT_SUPPORTED = "No passage supports this answer. The closest ones say:"
ONLY_QUOTES = "The closest passages say:"
"""In place of an answer of a small model, which is not shown where no passage supports it."""
_MAX_QUOTES = 2


@dataclass(frozen=True, slots=True)
class ClosestQuotes:
    """The closest sentences of the passages.

    Attributes:
        text: a remark and the sentences, quoted and cited.
        citations: their sources, by number.
    """

    text: str
    citations: tuple[Citation, ...]


def closest_quotes(judge: SupportJudge, query: str, *, behind_answer: bool) -> ClosestQuotes:
    """The sentences of the judge's chain; without one, those of its sources that are closest to the query.

    Args:
        judge: has the sources.
        query: what was searched for.
        behind_answer: whether an answer that nothing supports was shown before.
    """
    numbers = {source.n: source for source in judge.sources}
    citations: list[Citation] = []
    lines: list[str] = []
    chained = [Support(one.n, one.start, one.end, 0.0) for one in judge.chain]
    for support in chained or judge.closest(query):
        source = numbers[support.n]
        text = source.text[support.start : support.end]
        line = f"“{' '.join(text.split())}”"
        if len(lines) == max(_MAX_QUOTES, len(chained)) or any(
            one.startswith(line) for one in lines
        ):
            continue  # neighbouring chunks overlap
        citations.append(Citation(source, (Quote.of(source, support, text),)))
        lines.append(f"{line} [{source.n}]")
    ordered = tuple(sorted(citations, key=lambda one: one.n))
    remark = NOT_SUPPORTED if behind_answer else ONLY_QUOTES
    return ClosestQuotes("\n".join([remark, *lines]), ordered)
