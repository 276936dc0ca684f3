"""Rows of texts side by side: equal lines beside each other, different words highlighted.

The first text is the reference: a word of another text is different if the reference does not have it
at this place, and a word of the reference if one of the others does not have it. Differences are bold
and underlined, so that they can be told without colour; the place where the texts part is reversed.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from rich.cells import cell_len, chop_cells

from app.text.safe_text import safe_line, safe_text
from app.tui.glyphs import Glyphs
from app.tui.numbers import duration
from app.tui.view.spans import Line, Span, cut, justify, width
from app.tui.view.word_diff import equal_blocks, split_words
from app.tui.view.wrapping import TAB

DIFFERENT = "bold underline $warning"
PARTS = "bold reverse $warning"


@dataclass(frozen=True, slots=True)
class CompareColumn:
    """One text of a comparison.

    Attributes:
        node_id: the message, or the last one of the branch.
        title: who wrote it, such as the model's name.
        sibling: place among its siblings, such as `2/3`; empty if it has none.
        tokens: number of generated tokens; None if not generated.
        ttft_us: microseconds to the first token.
        running: whether the answer is being generated.
    """

    node_id: str
    title: str
    text: str
    sibling: str = ""
    tokens: int | None = None
    perplexity: float | None = None
    ttft_us: int | None = None
    running: bool = False


@dataclass(frozen=True, slots=True)
class Parting:
    """Where texts part.

    Attributes:
        number: of the first different token or word, from 1; None if there is no difference.
        unit: `token` if all texts have token ids of one tokenizer, else `word`.
        offsets: characters before it, by text.
    """

    number: int | None
    unit: str
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AlignedRows:
    """Equally many rows for every text.

    Attributes:
        columns: rows by text.
        differences: rows in which a difference begins, ascending.
        parting: the row at which the texts part; None if they are equal.
    """

    columns: tuple[tuple[Line, ...], ...]
    differences: tuple[int, ...]
    parting: int | None

    @property
    def height(self) -> int:
        """Number of rows."""
        return len(self.columns[0])


def part_at_token(answers: Sequence[tuple[Sequence[int], Sequence[str]]]) -> Parting:
    """Where answers of one tokenizer part, given the ids and the texts of their tokens."""
    count = _common([ids for ids, _ in answers])
    whole = all(len(ids) == count for ids, _ in answers)
    offsets = tuple(len(safe_text("".join(texts[:count]))) for _, texts in answers)
    return Parting(None if whole else count + 1, "token", offsets)


def part_at_word(texts: Sequence[str]) -> Parting:
    """Where any texts part; spaces between words are ignored."""
    words = [split_words(safe_text(text)) for text in texts]
    count = _common([[word.strip(" \t") for word in one] for one in words])
    whole = all(len(one) == count for one in words)
    offsets = tuple(sum(map(len, one[:count])) for one in words)
    return Parting(None if whole else count + 1, "word", offsets)


def _common(lists: Sequence[Sequence[object]]) -> int:
    count = 0
    for first, *others in zip(*lists, strict=False):
        if any(other != first for other in others):
            break
        count += 1
    return count


def align_rows(texts: Sequence[str], parting: Parting, cells: int) -> AlignedRows:
    """The texts in columns of `cells`; lines that all of them have are beside each other.

    Costs two runs of `equal_blocks` per text and O(words).
    """
    words = [split_words(safe_text(text).replace("\t", TAB)) for text in texts]
    matches = [_matches(words[0], other) for other in words[1:]]
    different = [
        [any(index not in match for match in matches) for index in range(len(words[0]))],
        *(
            [index not in found for index in range(len(other))]
            for other, found in zip(words[1:], (set(one.values()) for one in matches), strict=True)
        ),
    ]
    parts = [
        _word_at(one, offset) if parting.number is not None else None
        for one, offset in zip(words, parting.offsets, strict=True)
    ]
    columns: list[list[Line]] = [[] for _ in words]
    differences: set[int] = set()
    parting_rows: list[int] = []
    starts = [0] * len(words)
    for ends in _sections(words, matches):
        wrapped = [
            _wrap(
                words[i][start:end], different[i][start:end], _within(parts[i], start, end), cells
            )
            for i, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]
        top, height = len(columns[0]), max(len(one.rows) for one in wrapped)
        for column, one in zip(columns, wrapped, strict=True):
            column += [*one.rows, *[()] * (height - len(one.rows))]
            differences.update(top + row for row in one.differences)
            if one.parting is not None:
                parting_rows.append(top + one.parting)
        starts = ends
    parting_row = None
    if parting.number is not None:
        parting_row = min(parting_rows, default=max(0, len(columns[0]) - 1))
        differences.add(parting_row)
    return AlignedRows(tuple(map(tuple, columns)), tuple(sorted(differences)), parting_row)


def _matches(reference: list[str], other: list[str]) -> dict[int, int]:
    """Index in `other` by index in the reference, of equal words."""
    return {
        block.start_a + i: block.start_b + i
        for block in equal_blocks(reference, other)
        for i in range(block.size)
    }


def _sections(words: list[list[str]], matches: list[dict[int, int]]) -> list[list[int]]:
    """The ends of sections by text: after each line break that all texts have, and the ends."""
    sections = [
        [index + 1, *(match[index] + 1 for match in matches)]
        for index, word in enumerate(words[0])
        if word == "\n" and all(index in match for match in matches)
    ]
    return [*sections, [len(one) for one in words]]


def _word_at(words: list[str], offset: int) -> int:
    """The index of the word that holds a character; after the last one, the number of words."""
    ends = list(accumulate(map(len, words)))
    return bisect_right(ends, offset)


def _within(index: int | None, start: int, end: int) -> int | None:
    return index - start if index is not None and start <= index < end else None


@dataclass(slots=True)
class _Wrapped:
    rows: list[Line]
    differences: list[int]
    parting: int | None = None


def _wrap(words: list[str], different: list[bool], parts: int | None, cells: int) -> _Wrapped:
    """Rows of the words. A line break at the end begins no further row."""
    done = _Wrapped([], [])
    row: list[Span] = []
    used = 0
    indented = True  # at the start of a line, spaces are indentation

    def end_row() -> None:
        nonlocal row, used
        done.rows.append(tuple(row))
        row, used = [], 0

    before = False
    for index, word in enumerate(words):
        style = PARTS if index == parts else DIFFERENT if different[index] else ""
        if word == "\n":
            if different[index] and not before:
                done.differences.append(len(done.rows))
            end_row()
            indented, before = True, different[index]
            continue
        text = word.lstrip(" ")
        gap = len(word) - len(text) if row or indented else 0
        if used + gap + cell_len(text) > cells and row:
            end_row()
            gap = 0
        gap = min(gap, max(0, cells - 1)) if not row else gap
        pieces = chop_cells(text, max(1, cells - used - gap)) if text else [""]
        if index == parts:
            done.parting = len(done.rows)
        if different[index] and not before:
            done.differences.append(len(done.rows))
        for number, piece in enumerate(pieces):
            if number:
                end_row()
                gap = 0
            _add(row, " " * gap, style if before and different[index] else "")
            _add(row, piece, style)
            used += gap + cell_len(piece)
        indented, before = False, different[index]
    if row or not words:
        end_row()
    return done


def _add(row: list[Span], text: str, style: str) -> None:
    if not text:
        return
    if row and row[-1].style == style:
        row[-1] = Span(row[-1].text + text, style)
    else:
        row.append(Span(text, style))


def build_column_head(
    column: CompareColumn,
    number: int,
    glyphs: Glyphs,
    cells: int,
    *,
    selected: bool,
    open: bool,  # noqa: A002
) -> list[Line]:
    """Two rows: number, author and place among the siblings; figures."""
    mark = f"{glyphs.current} " if open else ""
    title = (
        Span(f"{number} {mark}", "bold $accent" if selected else "$accent"),
        Span(safe_line(column.title), "bold"),
    )
    parts = [f"{glyphs.busy} running"] if column.running else []
    if column.tokens is not None:
        parts.append(f"{column.tokens} tokens")
    if column.perplexity is not None:
        parts.append(f"ppl {column.perplexity:.2f}")
    if column.ttft_us is not None:
        parts.append(f"TTFT {duration(column.ttft_us / 1e6)}")
    figures = Span(f" {glyphs.separator} ".join(parts), "$muted")
    place = (Span(column.sibling, "$muted"),) if column.sibling else ()
    return [justify(title, place, cells), cut((figures,), cells)]


def build_compare_head(
    parting: Parting,
    rows: AlignedRows,
    current: int | None,
    top: int,
    cells: int,
    *,
    running: bool = False,
) -> Line:
    """Where the texts part (`running`: so far), the current difference, and the row."""
    if parting.number is None:
        left = [Span("the same text so far" if running else "the same text", "bold")]
    else:
        left = [Span(f"part at {parting.unit} {parting.number}", "bold $warning")]
        if rows.differences:
            place = "" if current is None else f"{current + 1} of "
            left.append(Span(f"  difference {place}{len(rows.differences)}", "$muted"))
    right = [Span(f"row {top + 1} of {rows.height}", "$muted")]
    line = justify(left, right, cells)
    return line if width(line) <= cells else cut(line, cells)
