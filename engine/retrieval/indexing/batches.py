"""Batches of chunks that are embedded in one call."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice

from engine.api.embeddings import Embeddings
from engine.retrieval.api.chunk import Chunk
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.indexing.preparing import Prepared, unreadable_reason

BATCH_CHUNKS = 256
"""Chunks of a batch: enough that texts of like length can be computed together."""


@dataclass(slots=True)
class Piece:
    """A document, or some of its chunks.

    Attributes:
        prepared: the document.
        chunks: the chunks; empty if it has none, cannot be read, or is unchanged.
        first: whether this is the first piece of the document.
        more: whether further pieces follow.
        failure: why the document could not be read to its end; the pieces before are to be dropped.
        stored_slots: slots of those chunks whose vector is stored already, by their index.
    """

    prepared: Prepared
    chunks: Sequence[Chunk]
    first: bool
    more: bool
    failure: str | None = None
    stored_slots: dict[int, int] = field(default_factory=dict)

    def texts(self) -> list[str]:
        """The texts that are to be embedded."""
        if not self.stored_slots:
            return [one.embedded_text for one in self.chunks]
        return [
            one.embedded_text for at, one in enumerate(self.chunks) if at not in self.stored_slots
        ]


@dataclass(slots=True)
class Batch:
    """Pieces whose texts are embedded in one call.

    Attributes:
        pieces: the pieces, in the order in which they are stored.
        texts: the texts that are to be embedded.
        future: their vectors; None if there are no texts.
    """

    pieces: list[Piece] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    future: "Future[Embeddings] | None" = None

    def add(self, piece: Piece) -> None:
        """Append a piece."""
        self.pieces.append(piece)
        self.texts += piece.texts()

    @property
    def full(self) -> bool:
        """Whether the batch is to be embedded now."""
        return len(self.texts) >= BATCH_CHUNKS or len(self.pieces) >= BATCH_CHUNKS


def pieces_of(prepared: Prepared) -> Iterator[Piece]:
    """A document in pieces of at most `BATCH_CHUNKS` chunks, of which one is read ahead."""
    pieces = _read_pieces(prepared)
    current = next(pieces)
    for following in pieces:
        current.more = True
        yield current
        current = following
    yield current


def _read_pieces(prepared: Prepared) -> Iterator[Piece]:
    chunks = iter(prepared.chunks or ())
    first = True
    try:
        while (some := list(islice(chunks, BATCH_CHUNKS))) or first:
            yield Piece(prepared, some, first, more=False)
            first = False
    except (Unreadable, OSError) as error:
        yield Piece(prepared, (), first, more=False, failure=unreadable_reason(error))
