"""`check_attention`: compares the paged attention with transformers' own when a model is loaded.

Wrong attention raises no error: an architecture with unusual rules (shared keys, other masks, an
index that drops tokens) would produce fluent but wrong text. So the loaded model computes the logits
of a few tokens twice: in one pass with transformers' eager attention, and in two chunks, together
with a second row, with the paged attention.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch

from engine.api.error_text import first_line
from engine.api.errors import ModelError
from engine.executors.base import SAMPLING_DTYPE, StepPlan
from engine.executors.torch.attention import IMPLEMENTATION
from engine.executors.torch.backends import Backend
from engine.executors.torch.hf_config import attention_setting
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.step_layout import build_layout
from engine.models.transformers_spec import TransformersSpec

Unfused = Callable[[], AbstractContextManager[None]]

_TOKENS = 11
_CHUNK = 5
CHECK_BLOCK = 4
TOLERANCE = {torch.float32: 0.01, torch.float16: 0.1, torch.bfloat16: 0.2}
"""Maximum relative error, in the norm of the logits, that is attributed to rounding."""


def check_attention(
    model: torch.nn.Module,
    spec: TransformersSpec,
    *,
    backend: Backend,
    device: torch.device,
    unfused: Unfused = nullcontext,
) -> None:
    """Compare the logits of a loaded model under both attention implementations.

    Args:
        model: the model.
        spec: its spec.
        backend: the paged attention.
        device: the device of the model.
        unfused: a context in which all of the model's modules are transformers' own, for the reference.

    Raises:
        ModelError: the logits differ, or one of the two passes fails.
    """
    generator = np.random.default_rng(0)
    length = min(_TOKENS, spec.context_length)
    tokens = generator.integers(0, spec.vocab_size, length)
    dtype = next(model.parameters()).dtype
    try:
        with torch.inference_mode():
            with unfused():
                expected = _eager_logits(model, tokens, device)
            got = _paged_logits(model, spec, tokens, backend=backend, device=device, dtype=dtype)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise ModelError(
            f"A {spec.architecture!r} model cannot run with the paged attention: "
            f"{first_line(error)}."
        ) from error
    error_share = float((got - expected).norm() / expected.norm().clamp_min(1e-30))
    if not error_share <= TOLERANCE.get(dtype, 0.2):
        raise ModelError(
            f"A {spec.architecture!r} model is not supported: its logits with the paged attention "
            f"differ from transformers' by {error_share:.0%} of their norm."
        )


@contextmanager
def eager_attention(model: Any) -> Iterator[None]:
    """A context in which the language model uses transformers' eager attention."""
    model.set_attn_implementation(attention_setting(model.config, "eager"))
    try:
        yield
    finally:
        model.set_attn_implementation(attention_setting(model.config, IMPLEMENTATION))


def _eager_logits(model: torch.nn.Module, tokens: np.ndarray, device: torch.device) -> torch.Tensor:
    """[n, vocab] logits with transformers' eager attention."""
    ids = torch.from_numpy(tokens).to(device).unsqueeze(0)
    with eager_attention(model):
        logits: torch.Tensor = model(input_ids=ids, use_cache=False).logits[0].float()
    return logits


def _paged_logits(
    model: torch.nn.Module,
    spec: TransformersSpec,
    tokens: np.ndarray,
    *,
    backend: Backend,
    device: torch.device,
    dtype: torch.dtype,
) -> torch.Tensor:
    """[n, vocab] logits with the paged attention, in two chunks, together with a second row."""
    blocks = -(-len(tokens) // CHECK_BLOCK)
    pool = KvPool(
        spec.kv_layers, num_blocks=2 * blocks, block_size=CHECK_BLOCK, dtype=dtype, device=device
    )
    tables = np.arange(2 * blocks, dtype=np.int32)[::-1].reshape(2, blocks).copy()
    other = tokens[::-1]
    parts = []
    for start, end in ((0, min(_CHUNK, len(tokens))), (min(_CHUNK, len(tokens)), len(tokens))):
        if start == end:
            continue
        plan = chunk_plan(tokens[start:end], other[start:end], start, tables)
        step = backend.step(pool, build_layout(plan, block_size=CHECK_BLOCK), device)
        output = model(
            input_ids=torch.from_numpy(plan.token_ids.astype(np.int64)).to(device)[None],
            position_ids=torch.from_numpy(plan.positions.astype(np.int64)).to(device)[None],
            use_cache=False,
            paged_step=step,
        )
        parts.append(output.logits[0, end - start :].float())
    return torch.cat(parts)


def chunk_plan(tokens: np.ndarray, other: np.ndarray, start: int, tables: np.ndarray) -> StepPlan:
    """One chunk of both rows; the checked row is second, so that its flat tokens do not start at 0."""
    count = len(tokens)
    positions = np.arange(start, start + count, dtype=np.int32)
    nothing = np.zeros(0, np.int32)
    return StepPlan(
        rows=np.array([0, 1], np.int32),
        query_start=np.array([0, count, 2 * count], np.int32),
        token_ids=np.concatenate([other, tokens]).astype(np.int32),
        positions=np.concatenate([positions, positions]),
        needs_logits=np.zeros(2, np.uint8),
        block_tables=tables,
        token_table=np.zeros((2, 1), np.int32),
        num_tokens=np.zeros(2, np.int32),
        penalty_start=np.zeros(2, np.int32),
        sampling=np.zeros(2, SAMPLING_DTYPE),
        bias_rows=nothing,
        bias_ids=nothing,
        bias_values=nothing.astype(np.float32),
    )
