"""`OnnxExecutor`: the `Executor` for decoder graphs in ONNX.

The graph keeps no state between calls: its keys and values are inputs and outputs. They are stored in
blocks here, so prefix hits, forks, preemption and the swap tier work as in the other executors. Each call
gathers the keys and values of its sequences from their blocks, and stores those of the new tokens.
"""

import logging
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine._core import RowSampler
from engine.api.config import EngineConfig
from engine.api.errors import ExecutorError, ModelError
from engine.executors.base import ExecutorInfo, StepPlan, StepResult
from engine.executors.onnx.kv_store import Floats, KvStore
from engine.executors.onnx.runner import DecoderRunner, Padding, Piece
from engine.executors.onnx.sampling import StepSampler
from engine.executors.onnx.self_check import Abilities, check_graph
from engine.executors.onnx.session import DecoderSession
from engine.models.onnx_spec import OnnxSpec

_log = logging.getLogger(__name__)

_DISPATCH = {
    Padding.LEFT: "cpu",
    Padding.RIGHT: "cpu",
    Padding.IN_PLACE: "cpu",
    Padding.EQUAL: "cpu, batches of equal length",
    Padding.SINGLE: "cpu, one sequence at a time",
}
"""What the screen and the log call the way in which a graph is run."""


class OnnxExecutor:
    """`Executor` with ONNX Runtime. See `engine.executors.base`.

    Attributes:
        abilities: what its graph can do.
        store: keys and values; None after it was closed.
    """

    info: ExecutorInfo
    abilities: Abilities

    def __init__(
        self,
        runner: DecoderRunner,
        store: KvStore,
        *,
        abilities: Abilities,
        info: ExecutorInfo,
        vocab_size: int,
    ) -> None:
        """Wrap a loaded model; use `load`."""
        self.info = info
        self._runner: DecoderRunner | None = runner
        self.store: KvStore | None = store
        self.abilities = abilities
        self._vocab_size = vocab_size
        self._sampler = RowSampler(vocab_size)

    @classmethod
    def load(
        cls,
        spec: OnnxSpec,
        graph: Path,
        config: EngineConfig,
        *,
        num_blocks: int,
        max_model_len: int,
        weight_format: str,
        weight_bytes: int,
        parameters: int,
        progress: Callable[[float], None],
    ) -> Self:
        """Load the graph, find out what it can do, and allocate the KV store.

        Args:
            spec: the spec from the model's headers.
            graph: the ONNX file.
            config: threads and block size.
            num_blocks: KV blocks in the store.
            max_model_len: longest sequence.
            weight_format: type of most weights, for display.
            weight_bytes: bytes of the weights, for display.
            parameters: number of weights.
            progress: called with the fraction done, in (0, 1]; an exception from it aborts the load.

        Raises:
            ModelError: the graph cannot be used, or memory does not suffice.
        """
        progress(0.05)
        try:
            session, abilities = _load_session(spec, graph, config)
            progress(0.9)
            store = KvStore(
                spec.kv_layers,
                num_blocks=num_blocks,
                block_size=config.block_size,
                dtype=spec.kv_dtype,
            )
        except MemoryError as error:
            raise ModelError(f"{config.name} does not fit into memory.") from error
        info = ExecutorInfo(
            kind="onnx",
            dispatch=_DISPATCH[abilities.padding],
            threads=session.threads,
            weight_format=weight_format,
            weight_bytes=weight_bytes,
            kv_dtype=spec.kv_dtype,
            parameters=parameters,
        )
        for lack in abilities.lacks():
            _log.info("%s: %s", config.name, lack)
        runner = DecoderRunner(session, store, padding=abilities.padding, max_padded=max_model_len)
        progress(1.0)
        return cls(runner, store, abilities=abilities, info=info, vocab_size=spec.vocab_size)

    def _loaded(self) -> tuple[DecoderRunner, KvStore]:
        if self._runner is None or self.store is None:
            raise ExecutorError("The executor was closed.")
        return self._runner, self.store

    def execute(self, plan: StepPlan) -> StepResult:
        """Run one step.

        Raises:
            ExecutorError: an index of the plan is out of bounds (nothing was computed), or ONNX Runtime
                failed.
        """
        runner, store = self._loaded()
        step = _Step(plan, store, self._vocab_size)
        sampler = StepSampler(self._sampler, plan)
        for wave in step.waves(self.abilities):
            for batch in runner.batches(wave):
                logits = runner.run(batch)
                for piece, own in zip(batch, logits, strict=True):
                    step.take(piece, own, sampler)
        return sampler.result

    def copy_blocks(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Copy KV blocks in all layers, in order.

        Raises:
            ExecutorError: the lists differ in length or a block is outside the store; nothing was copied.
        """
        runner, store = self._loaded()
        blocks = np.concatenate([sources, targets])
        if len(sources) != len(targets) or ((blocks < 0) | (blocks >= store.num_blocks)).any():
            raise ExecutorError("Blocks to copy must be pairs of blocks inside the KV pool.")
        runner.forget()
        store.copy_blocks(sources, targets)

    @property
    def block_bytes(self) -> int:
        """Bytes of a KV block, summed over layers."""
        return self._loaded()[1].block_bytes

    def read_blocks(self, blocks: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """Copy KV blocks to `out`, [n, block_bytes].

        Raises:
            ExecutorError: the shapes differ or a block is outside the store; nothing was copied.
        """
        self._check_blocks(blocks, out).read_blocks(blocks, out)

    def write_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy `data`, [n, block_bytes], to KV blocks.

        Raises:
            ExecutorError: the shapes differ or a block is outside the store; nothing was copied.
        """
        store = self._check_blocks(blocks, data)
        self._loaded()[0].forget()
        store.write_blocks(blocks, data)

    def _check_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> KvStore:
        _, store = self._loaded()
        if data.shape != (len(blocks), store.block_bytes):
            raise ExecutorError(
                f"The array has shape {data.shape}; it must be ({len(blocks)}, {store.block_bytes})."
            )
        if ((blocks < 0) | (blocks >= store.num_blocks)).any():
            raise ExecutorError("Blocks to copy must be inside the KV pool.")
        return store

    def close(self) -> None:
        """Free weights and KV storage. Idempotent."""
        self._runner = self.store = None


def _load_session(
    spec: OnnxSpec, graph: Path, config: EngineConfig
) -> tuple[DecoderSession, Abilities]:
    """Load a graph, and find out what it can do; if it cannot be run, once more without reuse of memory.

    Raises:
        ModelError: it cannot be used either way.
    """
    session = DecoderSession.load(graph, spec.ports, threads=config.threads)
    try:
        return session, check_graph(session, spec)
    except ModelError as error:
        reason = str(error)  # not the error, whose traceback holds the session
    del session  # its weights, before they are read again
    session = DecoderSession.load(graph, spec.ports, threads=config.threads, reuses_memory=False)
    abilities = check_graph(session, spec)
    _log.warning("%s takes more memory for activations: %s", config.name, reason)
    return session, abilities


class _Step:
    """The pieces of a step, and where their logits go."""

    def __init__(self, plan: StepPlan, store: KvStore, vocab_size: int) -> None:
        """Check the plan.

        Raises:
            ExecutorError: an index is out of bounds.
        """
        self._plan = plan
        self._vocab_size = vocab_size
        tokens = len(plan.token_ids)
        if len(plan.positions) != tokens or plan.query_start[-1] != tokens:
            raise ExecutorError("The plan's token counts are inconsistent.")
        if plan.images:
            raise ExecutorError("The model sees no images.")
        if tokens and (plan.token_ids.min() < 0 or plan.token_ids.max() >= vocab_size):
            raise ExecutorError(f"A token id is outside the vocabulary of {vocab_size}.")
        at = plan.score_tokens
        if len(at) and (at.min() < 0 or at.max() >= tokens):
            raise ExecutorError("An entry of score_tokens is not a token of the step.")
        self._slots = [self._slots_of(index, store) for index in range(len(plan.rows))]
        drafts = plan.num_draft_tokens
        num_drafts = drafts if drafts.size else np.zeros(len(plan.rows), np.int32)
        # The first flat token of each row after which it samples; none for a row that does not.
        last = plan.query_start[1:]
        self._first_sample = np.where(plan.needs_logits, last - 1 - num_drafts, last)
        self._scores_in_order = np.argsort(at, kind="stable")
        self._score_tokens = at[self._scores_in_order]
        self._sampled = [
            np.empty((int(end - first), vocab_size), np.float32)
            for first, end in zip(self._first_sample, last, strict=True)
        ]

    def _slots_of(self, index: int, store: KvStore) -> NDArray[np.int64]:
        """Slots of a row's tokens, from its first to the last of its run."""
        plan, size = self._plan, store.block_size
        length = int(plan.positions[plan.query_start[index + 1] - 1]) + 1
        table = plan.block_tables[plan.rows[index], : -(-length // size)].astype(np.int64)
        if (table < 0).any() or (table >= store.num_blocks).any():
            raise ExecutorError("A block table has an entry outside the KV pool.", entry=index)
        slots: NDArray[np.int64] = (table[:, None] * size + np.arange(size)).ravel()[:length]
        return slots

    def waves(self, abilities: Abilities) -> Iterator[list[Piece]]:
        """Pieces that can run in any order, wave by wave; a row has at most one in each.

        A run is one piece if the graph can compute it in one call. A graph that gives only the last logits
        gets pieces that end where logits are wanted; one that takes one token after a past, pieces of one
        token.
        """
        starts = self._plan.query_start.tolist()
        runs = [
            self._pieces(index, start, end, abilities)
            for index, (start, end) in enumerate(pairwise(starts))
        ]
        for nth in range(max(map(len, runs))):
            yield [pieces[nth] for pieces in runs if nth < len(pieces)]

    def _pieces(self, index: int, start: int, end: int, abilities: Abilities) -> list[Piece]:
        wanted = self._wanted(start, end, index)
        ends = {end}
        if not abilities.gives_all:
            ends |= {flat + 1 for flat in wanted}
        if not abilities.continues:
            first = min(ends) if self._plan.positions[start] == 0 else start + 1
            ends |= set(range(first, end))
        cuts = sorted(ends)
        return [
            self._piece(
                index,
                before,
                after,
                keep=max(0, after - next((flat for flat in wanted if flat >= before), after)),
            )
            for before, after in zip([start, *cuts], cuts, strict=False)
        ]

    def _wanted(self, start: int, end: int, index: int) -> list[int]:
        """Flat tokens of a run whose logits are wanted, ascending."""
        low, high = np.searchsorted(self._score_tokens, (start, end))
        scored = set(self._score_tokens[low:high].tolist())
        return sorted(scored | set(range(int(self._first_sample[index]), end)))

    def _piece(self, index: int, start: int, end: int, *, keep: int) -> Piece:
        plan, slots = self._plan, self._slots[index]
        first = int(plan.positions[start])
        return Piece(
            row=index,
            first_flat=start,
            ids=plan.token_ids[start:end],
            past=slots[:first],
            slots=slots[first : first + end - start],
            keep=keep,
        )

    def take(self, piece: Piece, logits: Floats, sampler: StepSampler) -> None:
        """Use the logits of a piece's last positions, [L, vocab]: score, and sample at the end of its row."""
        start, end = piece.first_flat, piece.first_flat + len(piece.ids)
        offset = end - len(logits)
        low, high = np.searchsorted(self._score_tokens, (start, end)).tolist()
        for nth in range(low, high):
            row = logits[int(self._score_tokens[nth]) - offset]
            sampler.score(int(self._scores_in_order[nth]), self._as_floats(row))
        first, last = int(self._first_sample[piece.row]), int(self._plan.query_start[piece.row + 1])
        samples = self._sampled[piece.row]
        for flat in range(max(first, start), min(last, end)):
            samples[flat - first] = self._as_floats(logits[flat - offset])
        if end == last and len(samples):
            sampler.sample(piece.row, samples)

    def _as_floats(self, logits: Floats) -> NDArray[np.float32]:
        """Logits without the padding of the output head, in float32."""
        return np.ascontiguousarray(logits[: self._vocab_size], np.float32)
