"""Finds out, when a model is loaded, what its graph can do: batches, logits of all positions, cut prompts.

A few tokens are computed whole, and then in each way that the executor would like to use; a way whose
logits differ is not used. So nothing is derived from the names of a graph's operators.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.api.errors import ExecutorError, ModelError
from engine.executors.onnx.kv_store import KvStore
from engine.executors.onnx.runner import DecoderRunner, Padding, Piece
from engine.executors.onnx.session import DecoderSession
from engine.models.onnx_spec import OnnxSpec

_TOKENS = 8
_FIRST = 5
"""Tokens of the first part of a text that is computed in two."""
_TOLERANCE = {"f32": 2e-3, "f16": 2e-2}
"""Largest difference of logits in a batch, as a share of their range, by type of keys and values."""
_CUT_TOLERANCE = 0.15
"""The same for a prompt in two parts, which graphs that quantize their activations compute differently."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a graph can do.

    Attributes:
        padding: which sequences form a batch.
        gives_all: whether it gives the logits of all positions; else only of the last.
        continues: whether several tokens can follow a past; else only one, and a prompt that does not fit
            into one step is computed token by token from there on.
    """

    padding: Padding
    gives_all: bool
    continues: bool

    def lacks(self) -> list[str]:
        """A sentence for each thing that this graph does not do, though the executor could."""
        sentences = []
        if self.padding is Padding.SINGLE:
            sentences.append(
                "Its graph runs one sequence at a time, so concurrent requests take turns."
            )
        elif self.padding is Padding.EQUAL:
            sentences.append("Its graph batches only sequences of equal length; others take turns.")
        if not self.gives_all:
            sentences.append(
                "Its graph gives only the logits of the last token, so logprobs of prompts and drafts are "
                "computed token by token."
            )
        if not self.continues:
            sentences.append(
                "Its graph takes one token at a time after the first call, so the rest of a long prompt, or "
                "of one whose beginning is cached, is computed token by token."
            )
        return sentences


def check_graph(session: DecoderSession, spec: OnnxSpec) -> Abilities:
    """Find out what a loaded graph can do.

    Raises:
        ModelError: the graph cannot be run, or continuing a text gives other logits than computing it whole.
    """
    probe = _Probe(session, spec)
    family = f"The graph of this {spec.architecture} model"
    try:
        whole = probe.run([_Part(0, 0, _TOKENS)], Padding.SINGLE)[0]
        if len(whole) not in (1, _TOKENS) or whole.shape[-1] < spec.vocab_size:
            raise ModelError(
                f"{family} gives logits of shape {list(whole.shape)} for {_TOKENS} tokens and a vocabulary "
                f"of {spec.vocab_size}."
            )
        continues = probe.continues(whole[-1])
        if not continues and not _alike(whole[-1], probe.continued_singly(), _CUT_TOLERANCE):
            raise ModelError(
                f"{family} computes something else when a text is continued than when it is computed whole: "
                "it does not use its past as decoders do."
            )
    except ExecutorError as error:
        raise ModelError(f"{family} cannot be run: {error}") from error
    return Abilities(probe.find_padding(), len(whole) == _TOKENS, continues)


@dataclass(frozen=True, slots=True)
class _Part:
    """Tokens [start, end) of one of the probe's sequences."""

    sequence: int
    start: int
    end: int


class _Probe:
    """Two sequences in a small store."""

    def __init__(self, session: DecoderSession, spec: OnnxSpec) -> None:
        self._session = session
        self._spec = spec
        self._store = KvStore(spec.kv_layers, num_blocks=2, block_size=_TOKENS, dtype=spec.kv_dtype)
        # Tokens of which none is the beginning or end of a text in any vocabulary that is not tiny.
        ids = (np.arange(2 * _TOKENS, dtype=np.int64) * 7919 + 1013) % spec.vocab_size
        self._ids = ids.astype(np.int32).reshape(2, _TOKENS)

    def run(self, parts: Sequence[_Part], padding: Padding) -> list[NDArray[np.float32]]:
        """The logits of each part, [L, vocab]."""
        runner = DecoderRunner(self._session, self._store, padding=padding, max_padded=1 << 20)
        pieces = [
            Piece(
                row=at,
                first_flat=0,
                ids=self._ids[part.sequence, part.start : part.end],
                past=part.sequence * _TOKENS + np.arange(part.start),
                slots=part.sequence * _TOKENS + np.arange(part.start, part.end),
                keep=part.end - part.start,
            )
            for at, part in enumerate(parts)
        ]
        return [one.astype(np.float32) for one in runner.run(pieces)]

    def continues(self, expected: NDArray[np.float32]) -> bool:
        """Whether the first sequence in two parts, the second of several tokens, ends in these logits."""
        self.run([_Part(0, 0, _FIRST)], Padding.SINGLE)
        try:
            cut = self.run([_Part(0, _FIRST, _TOKENS)], Padding.SINGLE)[0]
        except ExecutorError:
            return False
        return _alike(expected, cut[-1], _CUT_TOLERANCE)

    def continued_singly(self) -> NDArray[np.float32]:
        """The last logits of the first sequence, the end of which is computed token by token."""
        self.run([_Part(0, 0, _FIRST)], Padding.SINGLE)
        for at in range(_FIRST, _TOKENS - 1):
            self.run([_Part(0, at, at + 1)], Padding.SINGLE)
        last: NDArray[np.float32] = self.run([_Part(0, _TOKENS - 1, _TOKENS)], Padding.SINGLE)[0][
            -1
        ]
        return last

    def find_padding(self) -> Padding:
        """The best way to batch two sequences."""
        if self._spec.is_single:
            return Padding.SINGLE
        for padding in (Padding.LEFT, Padding.IN_PLACE, Padding.RIGHT):
            if self._agrees(padding, (3, _TOKENS - 1)):
                return padding
        if self._agrees(Padding.EQUAL, (_TOKENS - 1, _TOKENS - 1)):
            return Padding.EQUAL
        return Padding.SINGLE

    def _agrees(self, padding: Padding, lengths: tuple[int, int]) -> bool:
        """Whether sequences with pasts of these lengths give the same logits together as alone."""
        tolerance = _TOLERANCE[self._spec.kv_dtype]
        steps = min(_TOKENS - length for length in lengths)
        alone: list[list[NDArray[np.float32]]] = []
        try:
            for sequence, length in enumerate(lengths):
                self.run([_Part(sequence, 0, length)], Padding.SINGLE)
                alone.append(
                    [
                        self.run([_Part(sequence, at, at + 1)], Padding.SINGLE)[0]
                        for at in range(length, length + steps)
                    ]
                )
            for step in range(steps):
                parts = [
                    _Part(sequence, length + step, length + step + 1)
                    for sequence, length in enumerate(lengths)
                ]
                together = self.run(parts, padding)
                if not all(
                    _alike(mine[step][-1], batched[-1], tolerance)
                    for mine, batched in zip(alone, together, strict=True)
                ):
                    return False
        except ExecutorError:
            return False
        return True


def _alike(expected: NDArray[np.float32], got: NDArray[np.float32], tolerance: float) -> bool:
    """Whether logits differ by at most a share of their range."""
    if not np.isfinite(expected).all():
        return bool(np.array_equal(np.isfinite(expected), np.isfinite(got)))
    spread = float(expected.max() - expected.min())
    return bool(np.abs(expected - got).max() <= tolerance * max(spread, 1e-6))
