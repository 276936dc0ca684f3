"""`TorchExecutor`: the `Executor` for transformers models.

Hot path. One `execute` is one forward pass over the step's flat tokens, [1, T], of all rows. Only
tokens whose successors are sampled or scored go through the output head.
"""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from engine.api.config import EngineConfig
from engine.api.error_text import first_line
from engine.api.errors import ExecutorError, ModelError
from engine.executors.base import ExecutorInfo, StepPlan, StepResult
from engine.executors.torch.attention import PagedStep
from engine.executors.torch.backends import Backend, choose_backend, uses_graphs
from engine.executors.torch.checkpoint import dummy_model, load_checkpoint, weight_bytes
from engine.executors.torch.devices import DTYPES, kv_dtype_of, resolve_device
from engine.executors.torch.hf_config import read_config
from engine.executors.torch.image_check import check_image_attention
from engine.executors.torch.image_features import ImageFeatures
from engine.executors.torch.image_processor import ImageProcessor
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.packed_copy import to_device
from engine.executors.torch.sampler import sample
from engine.executors.torch.sampling_batch import sampling_batch
from engine.executors.torch.scoring import score
from engine.executors.torch.self_check import Unfused, check_attention
from engine.executors.torch.step_layout import StepLayout, build_layout
from engine.executors.torch.step_result import step_result
from engine.models.transformers_spec import TransformersSpec

if TYPE_CHECKING:  # these import triton
    from engine.executors.torch.decode_graphs import DecodeGraphs, Record

_log = logging.getLogger(__name__)


class TorchExecutor:
    """`Executor` based on transformers' attention interface. See `engine.executors.base`."""

    info: ExecutorInfo

    def __init__(
        self,
        model: torch.nn.Module,
        pool: KvPool,
        *,
        backend: Backend,
        info: ExecutorInfo,
        vocab_size: int,
        device: torch.device,
        images: ImageFeatures | None = None,
    ) -> None:
        """Wrap a loaded model; use `load`."""
        self.info = info
        self._model: torch.nn.Module | None = model
        self._pool: KvPool | None = pool
        self._backend = backend
        self._vocab_size = vocab_size
        self._device = device
        self._images = images
        self._graphs: DecodeGraphs | None = None
        self._keeps_logits = bool(model._supports_logits_to_keep())  # type: ignore[operator]

    @classmethod
    def load(
        cls,
        spec: TransformersSpec,
        config: EngineConfig,
        *,
        num_blocks: int,
        max_model_len: int,
        weight_format: str,
        parameters: int,
        progress: Callable[[float], None],
        images: ImageProcessor | None = None,
    ) -> "TorchExecutor":
        """Load the weights, check the attention against transformers' own, allocate the KV pool.

        Args:
            spec: the spec from the model's headers.
            config: model directory, device, types and limits.
            num_blocks: KV blocks in the pool.
            max_model_len: longest sequence.
            weight_format: element type of the stored weights, for display.
            parameters: number of weights.
            progress: called with the fraction done, in (0, 1]; an exception from it aborts the load.
            images: processes the images of a model that sees them; None for any other.

        Raises:
            ModelError: weights or configuration cannot be used, or memory does not suffice.
        """
        device = resolve_device(config.device)
        dtype = DTYPES[spec.compute_dtype]
        kv_dtype = kv_dtype_of(config.kv_dtype, spec.compute_dtype)
        if config.threads is not None:
            torch.set_num_threads(config.threads)
        try:
            hf_config = read_config(config.model)
            progress(0.05)
            if config.dummy_weights:
                model = dummy_model(hf_config, dtype=dtype, device=device)
            else:
                model = load_checkpoint(config.model, hf_config, dtype=dtype, device=device)
            progress(0.9)
            backend = choose_backend(config.attention, device)
            _check(model, spec, images, backend=backend, device=device)
            if backend.fuses:
                _fuse(model, spec, images, backend=backend, device=device)
            pool = KvPool(
                spec.kv_layers,
                num_blocks=num_blocks,
                block_size=config.block_size,
                dtype=kv_dtype,
                device=device,
            )
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise ModelError(f"{config.name} does not fit into memory on {device}.") from error
        info = ExecutorInfo(
            kind="torch",
            dispatch=f"{device.type}-{backend.name}",
            threads=torch.get_num_threads(),
            weight_format=_format_in_memory(weight_format, spec),
            weight_bytes=weight_bytes(model),
            kv_dtype=next(name for name, dtype in DTYPES.items() if dtype is kv_dtype),
            parameters=parameters,
            kv_in_main_memory=device.type == "cpu",
        )
        executor = cls(
            model,
            pool,
            backend=backend,
            info=info,
            vocab_size=spec.vocab_size,
            device=device,
            images=None if images is None else ImageFeatures(images, device),
        )
        if uses_graphs(config):
            executor._record_graphs(config, max_model_len=max_model_len)
        progress(1.0)
        return executor

    def _record_graphs(self, config: EngineConfig, *, max_model_len: int) -> None:
        """Record CUDA graphs.

        Raises:
            ModelError: the setting asks for them, and they cannot be recorded.
        """
        if self._device.type != "cuda" or self._backend.name != "triton":
            raise ModelError("cuda_graphs needs a GPU and attention triton.")
        from engine.executors.torch.decode_graphs import MAX_GRAPH_ROWS, CudaRecorder

        rows = min(config.max_num_seqs, MAX_GRAPH_ROWS)
        try:
            self.use_graphs(max_rows=rows, max_model_len=max_model_len, record=CudaRecorder())
        except ModelError as error:
            if config.cuda_graphs:
                raise
            _log.warning("%s runs without CUDA graphs: %s", config.name, error)

    def use_graphs(self, *, max_rows: int, max_model_len: int, record: "Record") -> None:
        """Record CUDA graphs of decode steps of up to `max_rows` rows, and use them from now on.

        Raises:
            ModelError: the model cannot be recorded.
        """
        from engine.executors.torch.decode_graphs import DecodeGraphs

        model, pool = self._loaded()
        with torch.inference_mode():
            self._graphs = DecodeGraphs(
                lambda ids, positions, step: self._logits(model, ids, positions, step, None),
                pool,
                max_rows=max_rows,
                max_model_len=max_model_len,
                device=self._device,
                record=record,
            )

    def _loaded(self) -> tuple[torch.nn.Module, KvPool]:
        if self._model is None or self._pool is None:
            raise ExecutorError("The executor was closed.")
        return self._model, self._pool

    def execute(self, plan: StepPlan) -> StepResult:
        """Run one step.

        Raises:
            ExecutorError: an index of the plan is out of bounds (nothing was computed), or torch
                failed.
        """
        model, pool = self._loaded()
        layout = build_layout(plan, block_size=pool.block_size)
        self._check(plan, layout.slots, pool.scratch_block * pool.block_size)
        try:
            with torch.inference_mode():
                decoded = None
                if self._graphs is not None and not plan.images:
                    decoded = self._graphs.run(plan, layout)
                if decoded is None:
                    logits, likeliest = self._forward(model, pool, plan, layout), None
                else:
                    logits, likeliest = decoded
                count = len(layout.sampled_rows)
                sampled = scored = entries = None
                if count:
                    batch = sampling_batch(
                        plan, layout.sampled_rows, layout.draft_index, self._device
                    )
                    sampled = sample(logits[:count], batch, likeliest)
                    entries = batch.logprob_entries
                if len(plan.score_tokens):
                    targets, tops = self._long(plan.score_targets), self._long(plan.score_tops)
                    scored = score(logits[count:], targets, tops)
                return step_result(plan, layout, sampled, scored, entries)
        except (RuntimeError, ValueError, IndexError) as error:
            raise ExecutorError(f"torch: {first_line(error)}") from error

    def _forward(
        self, model: torch.nn.Module, pool: KvPool, plan: StepPlan, layout: StepLayout
    ) -> torch.Tensor:
        """[N + P, vocab] float32 logits for the N samples, then for the P scores."""
        tokens = to_device(
            {
                "ids": plan.token_ids.astype(np.int64),
                "positions": plan.positions.astype(np.int64),
                "wanted": np.concatenate([layout.sampled_tokens, plan.score_tokens]).astype(
                    np.int64
                ),
            },
            self._device,
        )
        ids = tokens["ids"].unsqueeze(0)
        embeddings = None
        if plan.images:
            if self._images is None:
                raise ExecutorError("The model sees no images.")
            embeddings = self._images.embed(model, ids, plan.images)
        return self._logits(
            model,
            ids,
            tokens["positions"].unsqueeze(0),
            self._backend.step(pool, layout, self._device),
            tokens["wanted"],
            embeddings,
        )

    def _logits(
        self,
        model: torch.nn.Module,
        ids: torch.Tensor,
        positions: torch.Tensor,
        step: PagedStep,
        sampled: torch.Tensor | None,
        embeddings: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N, vocab] float32 logits of the flat tokens `sampled`; of all tokens if None.

        `embeddings`, [1, T, hidden size], take the place of the ids' own.
        """
        tokens = {"input_ids": ids} if embeddings is None else {"inputs_embeds": embeddings}
        keep = {"logits_to_keep": sampled} if self._keeps_logits and sampled is not None else {}
        output = model(**tokens, position_ids=positions, use_cache=False, paged_step=step, **keep)
        logits: torch.Tensor = output.logits[0]
        if sampled is not None and not self._keeps_logits:
            logits = logits[sampled]
        # Rows beyond the vocabulary are padding of the output head and are never sampled.
        return logits[:, : self._vocab_size].float()

    def _long(self, array: NDArray[np.int32]) -> torch.Tensor:
        """The array as int64 on the device."""
        return torch.from_numpy(array.astype(np.int64)).to(self._device)

    def _check(self, plan: StepPlan, slots: NDArray[np.int64], pool_slots: int) -> None:
        """Raise if an index is out of bounds, which on a GPU would destroy the CUDA context."""
        tokens, ids = len(plan.positions), plan.token_ids
        if len(ids) != tokens or plan.query_start[-1] != tokens:
            raise ExecutorError("The plan's token counts are inconsistent.")
        token_ids = np.concatenate([ids, plan.score_targets]) if len(plan.score_targets) else ids
        if token_ids.min() < 0 or token_ids.max() >= self._vocab_size:
            raise ExecutorError(f"A token id is outside the vocabulary of {self._vocab_size}.")
        at = plan.score_tokens
        if len(at) and (at.min() < 0 or at.max() >= tokens):
            raise ExecutorError("An entry of score_tokens is not a token of the step.")
        if slots.min() < 0 or slots.max() >= pool_slots:
            raise ExecutorError("A block table has an entry outside the KV pool.")

    def copy_blocks(self, sources: NDArray[np.int32], targets: NDArray[np.int32]) -> None:
        """Copy KV blocks in all layers, in order; on a GPU, ordered before the next step's kernels.

        Raises:
            ExecutorError: the lists differ in length or a block is outside the pool; nothing was
                copied.
        """
        _, pool = self._loaded()
        blocks = np.concatenate([sources, targets])
        if len(sources) != len(targets) or ((blocks < 0) | (blocks >= pool.scratch_block)).any():
            raise ExecutorError("Blocks to copy must be pairs of blocks inside the KV pool.")
        pool.copy_blocks(sources.tolist(), targets.tolist())

    @property
    def images_computed(self) -> int:
        """How often the vision tower has run in steps."""
        return 0 if self._images is None else self._images.computed

    @property
    def block_bytes(self) -> int:
        """Bytes of a KV block, summed over layers."""
        return self._loaded()[1].block_bytes

    def read_blocks(self, blocks: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
        """Copy KV blocks into main memory, [n, block_bytes]; done on return.

        Raises:
            ExecutorError: the shapes differ, a block is outside the pool, or torch failed.
        """
        pool = self._check_blocks(blocks, out)
        try:
            pool.read_blocks(blocks, out)
        except RuntimeError as error:
            raise ExecutorError(f"torch: {first_line(error)}") from error

    def write_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> None:
        """Copy KV blocks into the pool; on a GPU, ordered before the next step's kernels.

        Raises:
            ExecutorError: the shapes differ, a block is outside the pool, or torch failed.
        """
        pool = self._check_blocks(blocks, data)
        try:
            pool.write_blocks(blocks, data)
        except RuntimeError as error:
            raise ExecutorError(f"torch: {first_line(error)}") from error

    def _check_blocks(self, blocks: NDArray[np.int32], data: NDArray[np.uint8]) -> KvPool:
        _, pool = self._loaded()
        if data.shape != (len(blocks), pool.block_bytes):
            raise ExecutorError(
                f"The array has shape {data.shape}; it must be ({len(blocks)}, {pool.block_bytes})."
            )
        if ((blocks < 0) | (blocks >= pool.scratch_block)).any():
            raise ExecutorError("Blocks to copy must be inside the KV pool.")
        return pool

    def close(self) -> None:
        """Free weights and KV storage. Idempotent."""
        self._model = self._pool = self._graphs = self._images = None
        if self._device.type == "cuda":
            torch.cuda.empty_cache()


def _check(
    model: torch.nn.Module,
    spec: TransformersSpec,
    images: ImageProcessor | None,
    *,
    backend: Backend,
    device: torch.device,
    unfused: Unfused = nullcontext,
) -> None:
    """Compare the loaded model with transformers' own computation, of text and of an image.

    Raises:
        ModelError: they differ.
    """
    check_attention(model, spec, backend=backend, device=device, unfused=unfused)
    if images is not None:
        check_image_attention(model, spec, images, backend=backend, device=device, unfused=unfused)


def _fuse(
    model: torch.nn.Module,
    spec: TransformersSpec,
    images: ImageProcessor | None,
    *,
    backend: Backend,
    device: torch.device,
) -> None:
    """Fuse kernels of the model, unless that fails or the model then computes something else."""
    from engine.executors.torch.fusion import fuse

    fusions = None
    try:
        fusions = fuse(model)
        _check(model, spec, images, backend=backend, device=device, unfused=fusions.undone)
    except Exception as error:  # the model works without, only slower
        if fusions is not None:
            fusions.undo()
        _log.warning(
            "A %r model runs without fused kernels: %s", spec.architecture, first_line(error)
        )
    if device.type == "cuda":
        torch.cuda.empty_cache()  # what the merged projections were copied from


def _format_in_memory(stored: str, spec: TransformersSpec) -> str:
    """Format of the weights in memory: the compute type, unless a quantiser keeps them smaller."""
    compute_format = spec.compute_dtype.upper()
    if stored == "dummy":
        return f"dummy {compute_format}"
    return compute_format if stored in ("F32", "F16", "BF16") else stored
