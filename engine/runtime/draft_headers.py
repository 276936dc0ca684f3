"""`DraftHeaders`: a draft model whose headers were read, checked against the model it is to draft for."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.api.config import EngineConfig
from engine.api.errors import ModelError
from engine.executors.draft_model import CATCH_UP_TOKENS, SLOTS, slot_blocks
from engine.executors.memory_plan import MemoryPlan
from engine.executors.native_settings import native_kv_dtype
from engine.models.onnx_spec import OnnxSpec
from engine.models.spec import ModelSpec
from engine.models.transformers_spec import TransformersSpec

if TYPE_CHECKING:
    from engine.executors.open_model import OpenModel
    from engine.text.tokenizer import Tokenizer

_OTHERS: dict[type, str] = {TransformersSpec: "torch", OnnxSpec: "ONNX"}
"""Executors that neither take nor are a draft model, by the class of the model's spec."""


@dataclass(frozen=True, slots=True)
class DraftHeaders:
    """A draft model, not loaded yet.

    Attributes:
        model: its headers, vocabulary and paths.
        config: the settings that it is loaded with.
        max_len: maximum number of tokens of a request that it drafts for.
        num_blocks: blocks of its KV pool, which holds a whole context for each slot.
        memory: memory of its weights, of its work buffers, and of a block.
    """

    model: "OpenModel"
    config: EngineConfig
    max_len: int
    num_blocks: int
    memory: MemoryPlan


def read_draft_headers(
    config: EngineConfig,
    opener: Callable[[EngineConfig], "OpenModel"],
    *,
    target: "OpenModel",
    max_model_len: int,
) -> DraftHeaders:
    """Read the draft model of a configuration.

    Args:
        config: the settings of the engine, with a draft model.
        opener: reads headers and vocabulary.
        target: the model that it is to draft for.
        max_model_len: maximum number of tokens of a request of that model.

    Raises:
        ModelError: the draft model is unusable, or cannot draft for the target.
    """
    path = config.draft_model
    if path is None:
        raise AssertionError("no draft model is configured")
    if config.speculation is False:
        raise ModelError("A draft model (--draft-model) has no use without speculation.")
    if not isinstance(target.spec, ModelSpec):
        raise ModelError(
            f"{config.name} runs in the {_OTHERS[type(target.spec)]} executor, which takes no draft model "
            "(--draft-model)."
        )
    own = replace(config, model=path, name=path.stem, draft_model=None, weights="stored")
    model = opener(own)
    spec = model.spec
    if not isinstance(spec, ModelSpec):
        raise ModelError(
            f"{model.name} cannot be a draft model: it needs the {_OTHERS[type(spec)]} executor, and draft "
            "models run natively."
        )
    _check_vocabulary(model, target, config.name)
    max_len = min(max_model_len, spec.context_length)
    draft = replace(
        own,
        name=model.name,
        kv_dtype=native_kv_dtype("auto", spec, model.weight_format, own.weights),
        max_model_len=max_len,
        max_num_seqs=SLOTS,
        max_num_batched_tokens=SLOTS * CATCH_UP_TOKENS,
        window_blocks=0,
    )
    memory = model.plan_memory(draft, kv_dtype=draft.kv_dtype, max_model_len=max_len)
    if memory.state_bytes:
        raise ModelError(
            f"{model.name} cannot be a draft model: it has recurrent layers, whose state cannot go back."
        )
    return DraftHeaders(
        model, draft, max_len, SLOTS * slot_blocks(max_len, config.block_size), memory
    )


def with_draft(memory: MemoryPlan, draft: DraftHeaders) -> MemoryPlan:
    """The memory of a model and of its draft model, whose KV pool counts as work buffers."""
    drafts = draft.memory
    return replace(
        memory,
        weight_bytes=memory.weight_bytes + drafts.weight_bytes,
        active_bytes=None
        if memory.active_bytes is None
        else memory.active_bytes + drafts.weight_bytes,
        work_bytes=memory.work_bytes + drafts.work_bytes + draft.num_blocks * drafts.block_bytes,
    )


def _check_vocabulary(model: "OpenModel", target: "OpenModel", name: str) -> None:
    """Raise `ModelError` unless both models have the same tokens with the same ids."""
    drafting, verifying = model.spec.vocab_size, target.spec.vocab_size
    if drafting != verifying:
        raise ModelError(
            f"{model.name} cannot draft for {name}: it has {drafting:,} tokens, and {name} has "
            f"{verifying:,}."
        )
    differing = _differing_token(model.tokenizer, target.tokenizer, verifying)
    if differing is not None:
        raise ModelError(
            f"{model.name} cannot draft for {name}: token {differing} is not the same in both."
        )


def _differing_token(one: "Tokenizer", other: "Tokenizer", size: int) -> int | None:
    """The first id that does not stand for the same token in both vocabularies."""
    if one.fingerprint == other.fingerprint:
        return None
    for token in range(size):
        if one.token_bytes(token) != other.token_bytes(token):
            return token
    special = one.special_ids ^ other.special_ids
    return min(special) if special else None
