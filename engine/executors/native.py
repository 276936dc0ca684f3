"""`NativeExecutor`: the CPU executor, with one call into the Rust core per step."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine import _core
from engine.api.config import EngineConfig
from engine.api.errors import ExecutorError, ModelError
from engine.executors import expert_file
from engine.executors.base import (
    MAX_DRAFT_TOKENS,
    MAX_LOGPROB_TOKEN_IDS,
    ExecutorInfo,
    StepPlan,
    StepResult,
)
from engine.executors.native_settings import reject_torch_settings
from engine.executors.weight_cache import PackedLocation, open_weight_cache
from engine.executors.weight_saver import WeightSaver
from engine.models.spec import ModelSpec


class NativeExecutor:
    """`Executor` on the CPU, in Rust. See `engine.executors.base` for the contract."""

    info: ExecutorInfo

    def __init__(
        self,
        core: _core.NativeExecutor,
        max_rows: int,
        max_tokens: int,
        saver: WeightSaver | None = None,
    ) -> None:
        """Wrap a loaded core; use `load`.

        Args:
            core: the loaded core.
            max_rows: maximum number of rows in a step.
            max_tokens: maximum number of tokens in a step.
            saver: saves the packed weights; closed with the executor.
        """
        facts = core.info
        self.info = ExecutorInfo(
            kind="native",
            dispatch=str(facts["dispatch"]),
            threads=int(facts["threads"]),
            weight_format=str(facts["weight_format"]),
            weight_bytes=int(facts["weight_bytes"]),
            kv_dtype=str(facts["kv_dtype"]),
            parameters=int(facts["parameters"]),
        )
        self._core = core
        self._saver = saver
        self._results = StepResult.empty(
            max_rows,
            drafts=MAX_DRAFT_TOKENS,
            scores=max_tokens,
            logprob_ids=max_rows * MAX_LOGPROB_TOKEN_IDS,
        )
        self._views = self._results  # views of its first rows, as the last step needed them
        self._last: tuple[StepPlan, _core.StepArrays, StepResult] | None = None

    @classmethod
    def load(
        cls,
        spec: ModelSpec,
        paths: Sequence[Path],
        config: EngineConfig,
        *,
        num_blocks: int,
        max_model_len: int,
        progress: Callable[[float], None],
    ) -> Self:
        """Map or pack the weights and allocate the KV pool. Releases the GIL.

        Weights that were packed and are not in the weight cache yet are saved there in the background; those
        of a model with experts are packed into it (`engine.executors.expert_file`).

        Args:
            spec: the model's shapes.
            paths: its weight files.
            config: threads, dispatch level, KV type (not `auto`), block size, step limits, state slots,
                window blocks and weight cache.
            num_blocks: KV blocks in the pool.
            max_model_len: longest sequence, at most the spec's context length.
            progress: called with the fraction done, in (0, 1], after each layer.

        Raises:
            ModelError: files, spec or configuration cannot be used, or memory does not suffice.
        """
        reject_torch_settings(config)
        try:
            cache = open_weight_cache(config)
            location: PackedLocation | None = None
            into_file = False
            if cache is not None:
                location = cache.location(config.model, paths, settled=spec.has_experts)
                if spec.has_experts and location is not None:
                    into_file = expert_file.make_room(spec, paths, config, cache, location)
            if config.needs_weight_cache and not into_file:
                raise ModelError(
                    f"{config.name} is larger than memory, and its files are being changed."
                )
            core = _core.NativeExecutor(
                spec.to_json(),
                list(paths),
                num_blocks=num_blocks,
                block_size=config.block_size,
                weights=config.weights,
                kv_dtype=config.kv_dtype,
                threads=config.threads,
                dispatch=config.dispatch,
                max_rows=config.max_num_seqs,
                max_batched_tokens=config.max_num_batched_tokens,
                max_model_len=max_model_len,
                state_slots=config.state_slots or 0,
                window_blocks=config.window_blocks or 0,
                packed_weights=location,
                packs_into_file=into_file,
                progress=progress,
            )
        except OSError as error:
            advice = "free disk space there"
            if not config.needs_weight_cache:
                advice += ", or set --weight-cache-bytes to 0: they are packed in memory then"
            raise ModelError(f"{str(error).rstrip('.')}: {advice}.") from error
        except (ValueError, MemoryError, RuntimeError) as error:
            raise ModelError(str(error)) from error
        saver = None if cache is None else WeightSaver.after_loading(core, cache)
        return cls(core, config.max_num_seqs, config.max_num_batched_tokens, saver)

    def execute(self, plan: StepPlan) -> StepResult:
        """Run one step. The result's arrays are views that the next step overwrites.

        If the same plan object is executed again, with its arrays updated in place, the array
        arguments are reused, which saves most of the Python cost.

        Raises:
            ExecutorError: the plan is inconsistent or exceeds a limit (nothing was computed), or a
                compute thread failed.
        """
        last = self._last
        try:
            if last is None or last[0] is not plan:
                result = self._result_views(
                    len(plan.rows), len(plan.score_tokens), len(plan.logprob_ids)
                )
                last = self._last = plan, _step_arrays(plan, result), result
            self._core.execute(last[1])
        except _core.StepEntryError as error:
            message, entry = error.args
            raise ExecutorError(message, entry=entry) from error
        except (ValueError, TypeError, RuntimeError) as error:
            raise ExecutorError(str(error)) from error
        return last[2]

    @contextmanager
    def yield_core(self) -> Iterator[None]:
        """See `CoreYielder.yield_core`."""
        try:
            core = self._core.yield_core()
        except RuntimeError:  # closed on the engine's thread, which changes its model
            yield
            return
        try:
            yield
        finally:
            core.release()

    def copy_blocks(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Copy KV blocks in all layers, in order.

        Raises:
            ExecutorError: a block is outside the pool; nothing was copied.
        """
        with _raising_executor_errors():
            self._core.copy_blocks(sources, targets)

    @property
    def block_bytes(self) -> int:
        """Bytes of a KV block, summed over layers."""
        return self._core.block_bytes

    def read_blocks(self, blocks: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """Copy KV blocks to `out`, [n, block_bytes]. Releases the GIL.

        Raises:
            ExecutorError: the shapes differ or a block is outside the pool; nothing was copied.
        """
        with _raising_executor_errors():
            self._core.read_blocks(blocks, out)

    def write_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy `data`, [n, block_bytes], to KV blocks. Releases the GIL.

        Raises:
            ExecutorError: the shapes differ or a block is outside the pool; nothing was copied.
        """
        with _raising_executor_errors():
            self._core.write_blocks(blocks, data)

    @property
    def window_block_bytes(self) -> int:
        """Bytes of a window block; 0 if all layers keep every token."""
        return self._core.window_block_bytes

    def copy_window_blocks(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Copy window blocks in all layers that have them, in order.

        Raises:
            ExecutorError: a block is outside the pool; nothing was copied.
        """
        with _raising_executor_errors():
            self._core.copy_window_blocks(sources, targets)

    def read_window_blocks(self, blocks: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """Copy window blocks to `out`, [n, window_block_bytes]. Releases the GIL.

        Raises:
            ExecutorError: the shapes differ or a block is outside the pool; nothing was copied.
        """
        with _raising_executor_errors():
            self._core.read_window_blocks(blocks, out)

    def write_window_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy `data`, [n, window_block_bytes], to window blocks. Releases the GIL.

        Raises:
            ExecutorError: the shapes differ or a block is outside the pool; nothing was copied.
        """
        with _raising_executor_errors():
            self._core.write_window_blocks(blocks, data)

    @property
    def state_bytes(self) -> int:
        """Bytes of a recurrent state, summed over layers; 0 for a model without."""
        return self._core.state_bytes

    def copy_states(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Copy state slots in all layers, in order.

        Raises:
            ExecutorError: a slot is outside the pool; nothing was copied.
        """
        with _raising_executor_errors():
            self._core.copy_states(sources, targets)

    def read_states(self, slots: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """Copy state slots to `out`, [n, state_bytes]. Releases the GIL.

        Raises:
            ExecutorError: the shapes differ or a slot is outside the pool; nothing was copied.
        """
        with _raising_executor_errors():
            self._core.read_states(slots, out)

    def write_states(self, slots: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy `data`, [n, state_bytes], to state slots. Releases the GIL.

        Raises:
            ExecutorError: the shapes differ or a slot is outside the pool; nothing was copied.
        """
        with _raising_executor_errors():
            self._core.write_states(slots, data)

    def time_phases(self, enabled: bool) -> None:
        """Turn the timing of the phases of a step on or off; it costs a few microseconds per step."""
        self._core.time_phases(enabled)

    def take_phase_seconds(self) -> dict[str, float]:
        """Seconds spent in each phase since the last call, in the order of a step.

        Values are means over the workers; `wait` is the time at barriers. Their sum is the total
        duration of the steps.
        """
        return self._core.take_phase_seconds()

    def _result_views(self, count: int, scores: int, logprob_ids: int) -> StepResult:
        whole, last = self._results, self._views
        lengths = len(last.sampled), len(last.score_logprobs), len(last.token_id_logprobs)
        if lengths == (count, scores, logprob_ids):
            return last
        self._views = StepResult(
            sampled=whole.sampled[:count],
            logprobs=whole.logprobs[:count],
            top_ids=whole.top_ids[:count],
            top_logprobs=whole.top_logprobs[:count],
            token_id_logprobs=whole.token_id_logprobs[:logprob_ids],
            failed=whole.failed[:count],
            accepted=whole.accepted[:count],
            draft_logprobs=whole.draft_logprobs,
            draft_top_ids=whole.draft_top_ids,
            draft_top_logprobs=whole.draft_top_logprobs,
            score_logprobs=whole.score_logprobs[:scores],
            score_ranks=whole.score_ranks[:scores],
            score_top_ids=whole.score_top_ids[:scores],
            score_top_logprobs=whole.score_top_logprobs[:scores],
        )
        return self._views

    def close(self) -> None:
        """Free weights and KV storage and stop the compute threads. Idempotent.

        Waits some seconds for weights that are being saved.
        """
        self._core.close()
        if self._saver is not None:
            self._saver.close()


@contextmanager
def _raising_executor_errors() -> Iterator[None]:
    """Raise what the core refuses as an `ExecutorError`."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError) as error:
        raise ExecutorError(str(error)) from error


def _step_arrays(plan: StepPlan, result: StepResult) -> _core.StepArrays:
    """The arrays of a plan and its result as arguments of the core; order as in `engine/_core.pyi`."""
    return _core.StepArrays(
        plan.rows,
        plan.query_start,
        plan.token_ids,
        plan.positions,
        plan.needs_logits,
        plan.block_tables,
        plan.token_table,
        plan.num_tokens,
        plan.penalty_start,
        plan.sampling.view(np.uint8),
        plan.bias_rows,
        plan.bias_ids,
        plan.bias_values,
        plan.logprob_rows,
        plan.logprob_ids,
        plan.breaker_heads,
        plan.breaker_tails,
        plan.mask_rows,
        plan.mask_bits,
        plan.num_draft_tokens,
        plan.score_tokens,
        plan.score_targets,
        plan.score_tops,
        plan.state_slots,
        plan.window_blocks,
        result.sampled,
        result.logprobs,
        result.top_ids,
        result.top_logprobs,
        result.token_id_logprobs,
        result.failed,
        result.accepted,
        result.draft_logprobs,
        result.draft_top_ids,
        result.draft_top_logprobs,
        result.score_logprobs,
        result.score_ranks,
        result.score_top_ids,
        result.score_top_logprobs,
    )
