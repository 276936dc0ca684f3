"""`DecoderRunner`: runs pieces of sequences through a graph, several in one call where the graph allows it.

A *piece* is consecutive new tokens of one sequence, whose earlier tokens are in the KV store. Pieces of one
token each form a batch; their pasts differ in length, so the shorter ones are padded. Where padding may
stand depends on the graph (`Padding`), and `engine.executors.onnx.self_check` finds it out when the model
is loaded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from engine.executors.onnx.kv_store import Floats, KvStore
from engine.executors.onnx.session import DecoderSession, Inputs

_ROOM = 128
"""Arrays that are written in place have room for a multiple of so many tokens."""


class Padding(Enum):
    """Which sequences form a batch.

    Attributes:
        LEFT: of any length; padding stands before the past (graphs that append the new tokens).
        RIGHT: of any length; padding stands after it, and new tokens overwrite it (graphs with
            `GroupQueryAttention`, which take the lengths from the mask).
        IN_PLACE: as RIGHT; and such a graph can write new keys and values into the arrays of its past, if
            they have room, so that nothing is copied.
        EQUAL: of equal length only.
        SINGLE: none; one at a time.
    """

    LEFT = auto()
    RIGHT = auto()
    IN_PLACE = auto()
    EQUAL = auto()
    SINGLE = auto()


@dataclass(frozen=True, slots=True)
class Piece:
    """New tokens of a sequence.

    Attributes:
        row: batch index of its row in the step.
        first_flat: the first of its tokens in the step.
        ids: [S] int32, the new tokens.
        past: [P] int64, slots of the tokens before.
        slots: [S] int64, slots of the new tokens.
        keep: number of last positions whose logits are wanted; 0 wants none.
    """

    row: int
    first_flat: int
    ids: NDArray[np.int32]
    past: NDArray[np.int64]
    slots: NDArray[np.int64]
    keep: int


class DecoderRunner:
    """Runs batches of pieces. Keys and values are read from and written to the store."""

    def __init__(
        self, session: DecoderSession, store: KvStore, *, padding: Padding, max_padded: int
    ) -> None:
        """Run pieces with this session and store.

        Args:
            session: the graph.
            store: the KV pool.
            padding: which pieces form a batch.
            max_padded: most tokens of the pasts of a batch together, padding included; a single piece may
                have more.
        """
        self._session = session
        self._store = store
        self._padding = padding
        self._max_padded = max_padded
        self._last: _Present | None = None

    def batches(self, pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
        """The pieces, grouped into batches of pieces with one new token, and others alone."""
        together: list[Piece] = []
        for piece in pieces:
            # Without a past there is nothing that padding could repeat.
            if self._padding is Padding.SINGLE or len(piece.ids) > 1 or not len(piece.past):
                yield [piece]
            else:
                together.append(piece)
        batch: list[Piece] = []
        for piece in sorted(together, key=lambda piece: len(piece.past)):
            if batch and not self._fits(batch, piece):
                yield batch
                batch = []
            batch.append(piece)
        if batch:
            yield batch

    def _fits(self, batch: Sequence[Piece], longest: Piece) -> bool:
        """Whether a piece at least as long as those of a batch can be added to it."""
        if self._padding is Padding.EQUAL and len(longest.past) != len(batch[0].past):
            return False
        return (len(batch) + 1) * (len(longest.past) + 1) <= self._max_padded

    def run(self, batch: Sequence[Piece]) -> Floats:
        """Run a batch, and store the keys and values of its new tokens.

        Returns:
            [B, L, vocab], logits of the last L positions; at least what the pieces want, if the graph gives
            them.

        Raises:
            ExecutorError: ONNX Runtime failed.
        """
        lengths = np.array([len(piece.past) for piece in batch])
        count = len(batch[0].ids)
        past = self._past(batch, lengths, count)
        # Where the past of each sequence begins, and where its new tokens are put.
        if self._is_right:
            width = int(lengths.max())
            begins, starts = np.zeros_like(lengths), lengths
        else:
            width = past[0].shape[2]
            begins, starts = width - lengths, np.full_like(lengths, width)
        columns = np.arange(width + count)
        kept = (columns >= begins[:, None]) & (columns < (begins + lengths + count)[:, None])
        outputs = self._session.run(
            Inputs(
                ids=np.stack([piece.ids for piece in batch]),
                positions=(lengths[:, None] + np.arange(count)).astype(np.int32),
                mask=kept.astype(np.int32),
                past=past,
                keep=max(max(piece.keep for piece in batch), 1),
            ),
            in_place=self._padding is Padding.IN_PLACE,
        )
        rows = np.repeat(np.arange(len(batch)), count)
        fresh = (starts[:, None] + np.arange(count)).ravel()
        slots = np.concatenate([piece.slots for piece in batch])
        self._store.scatter(slots, [array[rows, :, fresh] for array in outputs.present])
        self._last = _Present(
            [np.concatenate([piece.past, piece.slots]) for piece in batch], outputs.present
        )
        return outputs.logits

    def forget(self) -> None:
        """Read the next run's past from the store. To be called when blocks were written or copied."""
        self._last = None

    @property
    def _is_right(self) -> bool:
        """Whether padding stands after the past."""
        return self._padding in (Padding.RIGHT, Padding.IN_PLACE)

    def _past(
        self, batch: Sequence[Piece], lengths: NDArray[np.int64], count: int
    ) -> Sequence[Floats]:
        """Keys and values of a batch's past, in arrays as wide as the longest past, or wider."""
        last, self._last = self._last, None
        width, in_place = int(lengths.max()), self._padding is Padding.IN_PLACE
        if last is not None and last.continues_in(batch, in_place=in_place):
            room = last.arrays[0].shape[2]
            if not in_place or width + count <= room:
                return last.arrays
        del last  # its memory, before as much is taken again
        slots = np.empty((len(batch), width), np.int64)
        for at, piece in enumerate(batch):
            length = len(piece.past)
            begin = 0 if self._is_right else width - length
            # Padding repeats a token of the sequence: its numbers are as finite as the others.
            slots[at] = piece.past[0] if length else 0
            slots[at, begin : begin + length] = piece.past
        room = width
        if in_place:
            room = -(-(width + count) // _ROOM) * _ROOM
        return self._store.gather(slots, room=room)


@dataclass(frozen=True, slots=True)
class _Present:
    """What came out of a run: the past of the next one, if the same sequences go on.

    Attributes:
        slots: per sequence, slots of its tokens.
        arrays: keys and values, as they go into a run.
    """

    slots: Sequence[NDArray[np.int64]]
    arrays: Sequence[Floats]

    def continues_in(self, batch: Sequence[Piece], *, in_place: bool) -> bool:
        """Whether a batch has these sequences, in this order, and nothing else.

        With arrays that are written in place it may have fewer tokens of them: those of refused drafts, at
        the end of a sequence, are overwritten.
        """
        return len(batch) == len(self.slots) and all(
            np.array_equal(piece.past, slots[: len(piece.past)] if in_place else slots)
            for piece, slots in zip(batch, self.slots, strict=True)
        )
