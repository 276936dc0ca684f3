"""Chooses what of the found passages the model reads: as much as fits, the best first.

Small chunks are found, larger sections are read: after the passages themselves, the best of them grow to the
section around them while there is room. Passages that overlap or touch are joined, so that nothing is read or
cited twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.retrieval.answering.citation_grammar import MAX_SOURCES
from engine.retrieval.answering.numbered_passage import NumberedPassage
from engine.retrieval.answering.read_text import passage_read_text, read_text
from engine.retrieval.api.passage import Passage

CountTokens = Callable[[str], int]
"""Length of a text in tokens of the model that reads it."""

LABEL_TOKENS = 32
"""Room for the head of a passage and the marks before its lines, beside one token per line."""


def fit_sources(
    passages: Sequence[Passage],
    count_tokens: CountTokens,
    *,
    budget: int,
    section: Callable[[Passage], str] | None = None,
    section_tokens: int = 512,
) -> list[NumberedPassage]:
    """Sources for a prompt, in the order of the passages, numbered from 1.

    Args:
        passages: what was found, best first.
        count_tokens: the model's tokenizer.
        budget: tokens that all of them together may take.
        section: returns the text of the section around a passage; None reads passages as they were found.
        section_tokens: the longest section that is read in place of a passage.

    Returns:
        As many passages as fit; none if even the best is too long.
    """
    chosen: list[NumberedPassage] = []
    left = budget
    for passage in passages[:MAX_SOURCES]:
        cost = _cost(passage_read_text(passage), count_tokens)
        if cost <= left:
            chosen.append(NumberedPassage.of(0, passage))
            left -= cost
    if section is not None:
        chosen = _grown(chosen, count_tokens, left, section, section_tokens)
    return [replace(source, n=n) for n, source in enumerate(_joined(chosen), start=1)]


def in_cached_order(passages: Sequence[Passage], previous: Sequence[int]) -> list[Passage]:
    """The passages so that the longest beginning of an earlier prompt comes first again.

    Args:
        passages: what was found now, best first.
        previous: chunk ids of the earlier prompt's passages, in its order. Its KV is reused up to the first
            of them that is missing now, so only the ones before that keep their places.
    """
    found = {passage.chunk_id: passage for passage in passages}
    kept: list[Passage] = []
    for chunk_id in previous:
        if chunk_id not in found:
            break
        kept.append(found.pop(chunk_id))
    return [*kept, *found.values()]


def _grown(
    chosen: list[NumberedPassage],
    count_tokens: CountTokens,
    left: int,
    section: Callable[[Passage], str],
    section_tokens: int,
) -> list[NumberedPassage]:
    for source in list(chosen):
        if source not in chosen or not _has_more(source.passage):
            continue
        passage = source.passage
        within = [
            one
            for one in chosen
            if one.passage.document_id == passage.document_id
            and passage.section_start <= one.start
            and one.end <= passage.section_end
        ]
        # A section of that many bytes cannot have so few tokens; its text is not worth reading.
        if passage.section_end - passage.section_start > 16 * section_tokens:
            continue
        text = section(passage)
        header = "" if passage.header in text.splitlines() else passage.header
        grown = NumberedPassage(
            0, passage, text, passage.section_start, passage.section_end, header
        )
        cost = _cost(read_text(grown), count_tokens)
        spare = left + sum(_cost(read_text(one), count_tokens) for one in within)
        if cost > min(section_tokens, spare):
            continue
        left = spare - cost
        chosen = [
            grown if one is source else one for one in chosen if one is source or one not in within
        ]
    return chosen


def _joined(chosen: Sequence[NumberedPassage]) -> list[NumberedPassage]:
    """The sources with those that overlap or touch joined, in the place and with the passage of the best."""
    joined: list[NumberedPassage] = []
    for source in chosen:
        meeting = [one for one in joined if _meet(one, source)]
        at = joined.index(meeting[0]) if meeting else len(joined)
        joined = [one for one in joined if one not in meeting]
        for one in reversed(meeting):
            source = _union(one, source)
        joined.insert(at, source)
    return joined


def _meet(one: NumberedPassage, other: NumberedPassage) -> bool:
    """Whether two sources are neighbouring or common bytes of one document, in UTF-8."""
    first, last = sorted((one, other), key=lambda each: each.start)
    same = (one.passage.document_id, one.passage.file) == (
        other.passage.document_id,
        other.passage.file,
    )
    if not same or last.start > first.end or not (_is_exact(one) and _is_exact(other)):
        return False
    common = first.text.encode()[last.start - first.start :]
    return last.text.encode()[: len(common)] == common[: last.end - last.start]


def _is_exact(source: NumberedPassage) -> bool:
    return len(source.text.encode()) == source.end - source.start


def _union(best: NumberedPassage, other: NumberedPassage) -> NumberedPassage:
    """Two sources that meet as one, under the passage of the first."""
    first, last = sorted((best, other), key=lambda one: (one.start, -one.end))
    rest = last.text.encode()[first.end - last.start :] if last.end > first.end else b""
    text = first.text + rest.decode()
    end = max(first.end, last.end)
    return NumberedPassage(best.n, best.passage, text, first.start, end, first.header)


def _has_more(passage: Passage) -> bool:
    return (passage.section_start, passage.section_end) != (passage.start, passage.end)


def _cost(text: str, count_tokens: CountTokens) -> int:
    return count_tokens(text) + text.count("\n") + LABEL_TOKENS
