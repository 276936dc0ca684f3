"""`check_image_attention`: compares the logits after an image with transformers' own when a model is loaded.

A model may attend within an image in both directions or give its tokens positions in three dimensions.
Neither raises an error under causal attention over counted positions; the logits after the image differ.
So the loaded model computes a prompt with one image twice: in one pass with transformers' eager attention,
and with the paged attention in two chunks that cut the image in two.
"""

import inspect
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from engine.api.error_text import first_line
from engine.api.errors import ModelError
from engine.executors.torch.backends import Backend
from engine.executors.torch.image_features import embed_image, on_device
from engine.executors.torch.image_processor import ImageProcessor, ProcessedImage
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.self_check import (
    CHECK_BLOCK,
    TOLERANCE,
    Unfused,
    chunk_plan,
    eager_attention,
)
from engine.executors.torch.step_layout import build_layout
from engine.models.transformers_spec import TransformersSpec

_SIZE = (64, 48)
_BEFORE, _AFTER = 2, 3
"""Tokens of text around the image. The logits of those after it are compared."""


def check_image_attention(
    model: Any,
    spec: TransformersSpec,
    processor: ImageProcessor,
    *,
    backend: Backend,
    device: torch.device,
    unfused: Unfused = nullcontext,
) -> None:
    """Compare the logits after an image under both attention implementations, as `check_attention`.

    Raises:
        ModelError: they differ, one of the two passes fails, or an image does not fit into the context.
    """
    refused = f"A {spec.architecture!r} model is not supported"
    try:
        processed = processor.process_pixels(_noise())
        tokens = _prompt(processed, spec.vocab_size)
        if len(tokens) > spec.context_length:
            raise ModelError(f"{refused}: an image takes more tokens than its context has.")
        with torch.inference_mode():
            with unfused():
                expected = _eager_logits(model, tokens, processed, device)
            got = _paged_logits(model, spec, tokens, processed, backend=backend, device=device)
    except (torch.OutOfMemoryError, ModelError):
        raise
    except Exception as error:
        raise ModelError(f"{refused}: its images fail: {first_line(error)}.") from error
    difference = float((got - expected).norm() / expected.norm().clamp_min(1e-30))
    if not difference <= TOLERANCE.get(model.dtype, 0.2):
        raise ModelError(
            f"{refused}: after an image its logits with the paged attention differ from "
            f"transformers' by {difference:.0%} of their norm."
        )


def _noise() -> Any:
    from PIL import Image as PilImage

    width, height = _SIZE
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return PilImage.fromarray(pixels)


def _prompt(processed: ProcessedImage, vocab_size: int) -> np.ndarray:
    """[n] int64: some tokens, an image, and some more; none of the text tokens is one of the image's."""
    text = np.random.default_rng(0).permutation(min(vocab_size, 4096))
    text = text[~np.isin(text, processed.token_ids)][: _BEFORE + _AFTER]
    return np.concatenate([text[:_BEFORE], processed.token_ids, text[_BEFORE:]]).astype(np.int64)


def _eager_logits(
    model: Any, tokens: np.ndarray, processed: ProcessedImage, device: torch.device
) -> torch.Tensor:
    """[`_AFTER`, vocab] logits with transformers' eager attention, images merged by the model."""
    inputs = {
        name: on_device(value, device, model.dtype) for name, value in processed.inputs.items()
    }
    ids = torch.from_numpy(tokens).to(device)[None]
    # Which tokens are an image's is asked for by models that compute these differently.
    taken = inspect.signature(model.forward).parameters
    inputs |= {
        name: (ids == model.config.image_token_id).long()
        for name in ("token_type_ids", "mm_token_type_ids")
        if name in taken
    }
    with eager_attention(model):
        output = model(
            input_ids=ids,
            use_cache=False,
            **inputs,
            **_last_logits(model, _AFTER),
        )
    logits: torch.Tensor = output.logits[0, -_AFTER:].float()
    return logits


def _paged_logits(
    model: Any,
    spec: TransformersSpec,
    tokens: np.ndarray,
    processed: ProcessedImage,
    *,
    backend: Backend,
    device: torch.device,
) -> torch.Tensor:
    """[`_AFTER`, vocab] logits with the paged attention, the image cut in two, beside a row of text."""
    blocks = -(-len(tokens) // CHECK_BLOCK)
    pool = KvPool(
        spec.kv_layers,
        num_blocks=2 * blocks,
        block_size=CHECK_BLOCK,
        dtype=model.dtype,
        device=device,
    )
    tables = np.arange(2 * blocks, dtype=np.int32)[::-1].reshape(2, blocks).copy()
    embed = model.get_input_embeddings()
    features = embed_image(model, processed, device)
    text = torch.from_numpy(tokens).to(device)
    other = np.full_like(tokens, tokens[0])
    before, after = _BEFORE, _BEFORE + len(features)
    whole = torch.cat([embed(text[:before]), features, embed(text[after:])])
    middle = before + len(features) // 2
    logits = whole
    for start, end in ((0, middle), (middle, len(tokens))):
        plan = chunk_plan(tokens[start:end], other[start:end], start, tables)
        embeddings = torch.cat(
            [embed(torch.from_numpy(other[start:end]).to(device)), whole[start:end]]
        )
        logits = model(
            inputs_embeds=embeddings[None],
            position_ids=torch.from_numpy(plan.positions.astype(np.int64)).to(device)[None],
            use_cache=False,
            paged_step=backend.step(pool, build_layout(plan, block_size=CHECK_BLOCK), device),
            **_last_logits(model, _AFTER),
        ).logits
    return logits[0, -_AFTER:].float()


def _last_logits(model: Any, count: int) -> dict[str, int]:
    """Arguments that let the model compute the last logits only, if it can."""
    return {"logits_to_keep": count} if model._supports_logits_to_keep() else {}
