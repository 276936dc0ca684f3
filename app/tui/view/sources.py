"""Rows of the sources pane: the collections, their documents, and the passages of the last answer."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from app.runtime.attachment import Attachment
from app.runtime.source_views import CollectionView, DocumentView, IndexJob
from app.runtime.stored_passages import StoredCitation, StoredPassage
from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs, gauge
from app.tui.numbers import compact, duration, size
from app.tui.view.spans import Line, Span, cut, justify

MAX_DOCUMENTS = 500
"""Documents of a collection that are listed; those that cannot be read come first."""
_NAME_CELLS = 24
_GAUGE_CELLS = 20
_DOING = {"adding": "adding to", "refreshing": "refreshing", "removing": "removing from"}
_NONE_YET = (
    "No collections yet. Answers can be taken from your own documents:",
    "",
    "  /sources create notes         makes a collection",
    "  /sources add notes FOLDER     fills it while you go on",
    "  @notes and a question         is answered from it, with citations that open",
)

Prefix = Literal["cached", "partly", "not cached", ""]


class _Column(NamedTuple):
    """A column of the passages; numbers are aligned to the right."""

    title: str
    cells: int
    value: Callable[[StoredPassage, Prefix], str]
    number: bool = False

    def place(self, text: str) -> str:
        """The text in the column's cells, of which the last ones are a gap."""
        room = self.cells - 2
        return f"{text:>{room}}  " if self.number else f"{text:<{room}}  "


_NUMBER_CELLS, _WORD_CELLS = 5, 9
_FIXED_CELLS = 2 + _NUMBER_CELLS + _WORD_CELLS
_DOCUMENT_CELLS = 30
_COLUMNS = (
    _Column("rank", 6, lambda one, prefix: str(one.rank), number=True),
    _Column("score", 8, lambda one, prefix: f"{one.score:.3f}", number=True),
    _Column("tokens", 8, lambda one, prefix: str(one.tokens), number=True),
    _Column("prefix", 12, lambda one, prefix: prefix or "-"),
    _Column("bytes", 16, lambda one, prefix: f"{one.start}-{one.end}"),
)
_DISPENSABLE = ("bytes", "score", "tokens", "rank")
"""Columns in the order in which they are left out."""


class RowId(NamedTuple):
    """What a row that can be selected stands for.

    Attributes:
        kind: the kind of the row.
        key: the name of a collection, the path of a document, or the number of a passage.
        collection: of a document.
    """

    kind: Literal["collection", "document", "passage"]
    key: str
    collection: str = ""


@dataclass(frozen=True, slots=True)
class SourcesState:
    """What the pane shows.

    Attributes:
        collections: None until they are read.
        attached: what is attached to the open branch, by the name of the collection.
        watched: names of those that are refreshed when their files change.
        documents: those of the collections that are unfolded; None until they are read.
        job: what is being done to a collection.
        problem: why the collections cannot be shown; empty if they can.
        passages: those of the last answer.
        citations: its citations after their check; None before it.
        cited: the numbers that the answer cites.
        prefixes: whether each passage is in the prefix cache, by number.
    """

    collections: Sequence[CollectionView] | None = None
    attached: Mapping[str, Attachment] = field(default_factory=dict)
    watched: Collection[str] = ()
    documents: Mapping[str, Sequence[DocumentView] | None] = field(default_factory=dict)
    job: IndexJob | None = None
    problem: str = ""
    passages: Sequence[StoredPassage] = ()
    citations: Sequence[StoredCitation] | None = None
    cited: frozenset[int] = frozenset()
    prefixes: Mapping[int, Prefix] = field(default_factory=dict)


def build_sources(
    state: SourcesState, cursor: RowId | None, glyphs: Glyphs, cells: int
) -> tuple[list[Line], list[RowId | None]]:
    """The pane's rows, and what each stands for (None for a row that cannot be selected)."""
    rows: list[tuple[RowId | None, Line]] = [(None, _head(state, glyphs, cells)), (None, ())]
    if state.job is not None:
        rows += [(None, build_job(state.job, glyphs, cells)), (None, ())]
    if state.problem:
        rows.append((None, cut((Span(f"{glyphs.failed} {state.problem}", "$error"),), cells)))
    elif state.collections is None:
        rows.append((None, (Span(f"{glyphs.queued} reading", "$faint"),)))
    elif not state.collections:
        rows += [(None, cut((Span(text, "$muted"),), cells)) for text in _NONE_YET]
    else:
        rows += _collections(state, state.collections, glyphs)
    if state.passages:
        rows += [(None, ()), *_passages(state, cells)]
    lines = [_selectable(one, line, cursor, glyphs, cells) for one, line in rows]
    return lines, [one for one, _ in rows]


def _selectable(
    row: RowId | None, line: Line, cursor: RowId | None, glyphs: Glyphs, cells: int
) -> Line:
    if row is None:
        return cut(line, cells)
    mark = Span(f"{glyphs.bar_selected} " if row == cursor else "  ", "$accent")
    return cut((mark, *line), cells)


def _head(state: SourcesState, glyphs: Glyphs, cells: int) -> Line:
    attached = ", ".join(one.words for one in state.attached.values())
    about = f"  attached to this branch: {safe_line(attached)}" if attached else "  none attached"
    return justify([Span("Sources", "bold $primary"), Span(about, "$muted")], [], cells)


def build_job(job: IndexJob, glyphs: Glyphs, cells: int) -> Line:
    """What is being done to a collection, with a gauge and the time left."""
    if job.doing == "removing" or (job.doing == "refreshing" and not job.total):
        return cut((Span(f"{glyphs.busy} {_DOING[job.doing]} {job.name}", "$warning"),), cells)
    full, empty = gauge(glyphs, job.done / job.total if job.total else 0.0, _GAUGE_CELLS)
    bar = (Span(full, "$secondary"), Span(empty, "$panel"))
    if job.doing == "downloading":
        facts = f"  {size(job.done)} of {size(job.total)}" if job.total else ""
        name = Span("downloading the embedding model  ", "$warning")
        return cut((name, *bar, Span(facts, "$muted")), cells)
    facts = f"  {job.done}/{job.total} files  {compact(job.chunks)} passages"
    if job.chunks_per_s:
        facts += f"  {job.chunks_per_s:.0f}/s"
    if job.seconds_left is not None:
        facts += f"  {duration(max(0.0, job.seconds_left))} left"
    failed = f"  {job.failed} cannot be read" if job.failed else ""
    name = Span(f"{_DOING[job.doing]} {job.name}  ", "$warning")
    return cut((name, *bar, Span(facts, "$muted"), Span(failed, "$error")), cells)


def build_job_hint(job: IndexJob | None, watched: Collection[str] = ()) -> str:
    """The same in the status bar, such as `adding 3/40`, else what is watched; empty if nothing is."""
    if job is None:
        first = next(iter(watched), "")
        return f"watching {first if len(watched) == 1 else len(watched)}" if watched else ""
    counted = job.total and job.doing in ("adding", "refreshing")
    return f"{job.doing} {job.done}/{job.total}" if counted else job.doing


def _collections(
    state: SourcesState, collections: Sequence[CollectionView], glyphs: Glyphs
) -> list[tuple[RowId | None, Line]]:
    title = (
        f"  {'collection':<{_NAME_CELLS + 2}} {'documents':>9} {'passages':>9} {'unreadable':>11}"
    )
    rows: list[tuple[RowId | None, Line]] = [(None, (Span(title, "$faint"),))]
    known = {one.name for one in collections}
    for one in collections:
        attached = one.name in state.attached
        glyph = Span(
            f"{glyphs.dot if attached else glyphs.ring} ", "$success" if attached else "$faint"
        )
        facts = f" {one.documents:>9} {compact(one.chunks):>9}"
        failed = Span(f" {one.failed or '':>11}", "$error")
        words = Span("  attached" if attached else "", "$success")
        watched = Span("  watched" if one.name in state.watched else "", "$secondary")
        label = Span(f"{one.name:<{_NAME_CELLS}}", "bold")
        rows.append(
            (
                RowId("collection", one.name),
                (glyph, label, Span(facts), failed, words, watched),
            )
        )
        if one.name in state.documents:
            rows += _documents(one.name, state.documents[one.name], glyphs)
    for name in state.attached:
        if name not in known:
            text = f"{name} is attached but no longer exists: space detaches it"
            lost = (Span(f"{glyphs.failed} {safe_line(text)}", "$error"),)
            rows.append((RowId("collection", name), lost))
    return rows


def _documents(
    name: str, documents: Sequence[DocumentView] | None, glyphs: Glyphs
) -> list[tuple[RowId | None, Line]]:
    if documents is None:
        return [(None, (Span(f"    {glyphs.queued} reading", "$faint"),))]
    rows: list[tuple[RowId | None, Line]] = []
    for one in documents[:MAX_DOCUMENTS]:
        path = safe_line(one.path)
        attributes = Span(f"  {safe_line(one.attributes)}", "$faint")
        line: Line = (Span(f"  {compact(one.chunks):>6}  ", "$muted"), Span(path), attributes)
        if one.problem:
            line = (
                Span(f"  {glyphs.failed:>6}  ", "$error"),
                Span(f"{path}  "),
                Span(safe_line(one.problem), "$error"),
            )
        rows.append((RowId("document", one.path, name), line))
    hidden = len(documents) - MAX_DOCUMENTS
    if hidden > 0:
        rows.append((None, (Span(f"    {hidden} more", "$faint"),)))
    return rows or [(None, (Span("    empty", "$faint"),))]


def _passages(state: SourcesState, cells: int) -> list[tuple[RowId | None, Line]]:
    """The passages; on a narrow pane some columns are left out, so that the document has room."""
    columns = list(_COLUMNS)
    for title in _DISPENSABLE:
        if _FIXED_CELLS + sum(one.cells for one in columns) <= cells - _DOCUMENT_CELLS:
            break
        columns = [one for one in columns if one.title != title]
    titles = "".join(one.place(one.title) for one in columns)
    rows: list[tuple[RowId | None, Line]] = [
        (None, (Span("Passages of the last answer", "bold $primary"),)),
        (None, (Span(f"  {'':<{_NUMBER_CELLS + _WORD_CELLS}}{titles}document", "$faint"),)),
    ]
    for one in state.passages:
        word, style = _verdict(one.n, state)
        prefix = state.prefixes.get(one.n, "")
        line = (
            Span(f"{f'[{one.n}]':<{_NUMBER_CELLS}}", "bold $accent" if word else "$muted"),
            Span(f"{word:<{_WORD_CELLS}}", style),
            *(
                Span(
                    column.place(column.value(one, prefix)),
                    "$success" if column.title == "prefix" and prefix == "cached" else "$muted",
                )
                for column in columns
            ),
            Span(place_of(one)),
        )
        rows.append((RowId("passage", str(one.n)), line))
    return rows


def _verdict(n: int, state: SourcesState) -> tuple[str, str]:
    """The word for what became of a passage in the answer, and its style."""
    own = [one.supported for one in state.citations or () if one.n == n]
    if own and not any(own):
        return "dropped", "$warning"
    if n not in state.cited:
        return "", ""
    return "cited", "$muted" if state.citations is None else "bold $success"


def place_of(passage: StoredPassage) -> str:
    """`guide.md:12  Install > Linux`: where a passage is, and the name that led to it, for one line."""
    name = safe_line(Path(passage.file).name)
    where = f"{name} p. {passage.page}" if passage.page is not None else f"{name}:{passage.line}"
    headings = " > ".join(map(safe_line, passage.headings))
    via = f"via {safe_line(passage.bridge)}" if passage.bridge else ""
    return "  ".join(filter(None, (where, via, headings)))
