"""`split`: cuts a document into chunks that the embedding model reads whole.

Contract:
- a chunk has at most `max_tokens` tokens, special tokens and the headings of its table included, by the
  tokenizer itself;
- its span, decoded, is its text; every character that is not white space lies in a chunk;
- a chunk begins at a heading where one is near, else at a break, a paragraph, a sentence, a line, a word, and
  inside a word only if that word alone is longer than a chunk.

Words are counted once (`TokenCounter`) and chunks are cut by sums of counts, in time linear in the text.
"""

from bisect import bisect_right

import tokenizers

from engine.retrieval.api.chunk import Chunk
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.chunking.boundaries import find_boundaries
from engine.retrieval.chunking.cutter import Cutter
from engine.retrieval.chunking.line_numbers import LineNumbers
from engine.retrieval.chunking.sections import Sections
from engine.retrieval.chunking.table_headings import TableHeadings
from engine.retrieval.chunking.token_counter import TokenCounter
from engine.retrieval.parsing.byte_offsets import ByteOffsets

MIN_TOKENS = 16
"""The smallest budget of a chunk, special tokens not included."""


def split(
    document: ParsedDocument,
    tokenizer: tokenizers.Tokenizer | TokenCounter,
    *,
    max_tokens: int = 256,
    overlap_tokens: int = 32,
) -> list[Chunk]:
    """The chunks of a document, in order.

    Args:
        document: what a parser returned.
        tokenizer: the embedding model's, without padding and truncation; or a counter of it, which keeps
            the counts of words and so is faster for many documents.
        max_tokens: the longest chunk, special tokens included.
        overlap_tokens: how much of the end of a chunk the next one repeats, at most. Nothing is repeated
            where a chunk begins at a heading or a break.

    Raises:
        ValueError: `max_tokens` leaves less than `MIN_TOKENS`, or the overlap is not below half of it.
    """
    counter = tokenizer if isinstance(tokenizer, TokenCounter) else TokenCounter(tokenizer)
    budget = max_tokens - counter.special_tokens
    if budget < MIN_TOKENS:
        least = MIN_TOKENS + counter.special_tokens
        raise ValueError(f"max_tokens is {max_tokens}; it must be at least {least}.")
    if not 0 <= overlap_tokens < budget // 2:
        most = budget // 2 - 1
        raise ValueError(f"overlap_tokens is {overlap_tokens}; it must be from 0 to {most}.")
    return _chunks(document, counter, budget, overlap_tokens)


def _chunks(
    document: ParsedDocument, counter: TokenCounter, budget: int, overlap: int
) -> list[Chunk]:
    text = document.text
    offsets = ByteOffsets(text, document.encoding, document.start)
    headings = [(offsets.character(one.start), one.level, one.title) for one in document.headings]
    breaks = [offsets.character(one) for one in document.breaks]
    boundaries = find_boundaries(
        text,
        [start for start, _, _ in headings],
        breaks,
        is_code=document.language is not None,
    )
    sections = Sections(headings, len(text))
    rows = [(offsets.character(one.start), one.header) for one in document.table_rows]
    most = min(budget // 2, budget - 2 * overlap - 1)
    tables = TableHeadings(text, rows, breaks, sections, counter, most)
    cutter = Cutter(text, counter, boundaries, budget, overlap, tables)
    spans = cutter.spans()
    parents = sections.read_in_place(spans, cutter.tokens_between, budget)
    lines, pages = LineNumbers(text), [offsets.character(one) for one in document.pages]
    starts, ends = (
        offsets.bytes(one.start for one in spans),
        offsets.bytes(one.end for one in spans),
    )
    section_starts = offsets.bytes(start for start, _ in parents)
    section_ends = offsets.bytes(end for _, end in parents)
    table_paths = [tables.path(one.start) for one in spans]
    return [
        Chunk(
            text=text[span.start : span.end],
            start=starts[index],
            end=ends[index],
            tokens=span.tokens,
            heading_path=table_paths[index] or sections.titles_around(span.start, span.end),
            section_start=section_starts[index],
            section_end=section_ends[index],
            page=max(bisect_right(pages, span.start), 1) if pages else None,
            line=lines.line(span.start),
            in_table=bool(table_paths[index]),
        )
        for index, span in enumerate(spans)
    ]
