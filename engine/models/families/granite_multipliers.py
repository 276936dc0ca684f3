"""The multipliers of all kinds of Granite: of embeddings, residuals and logits."""

from typing import TypedDict

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.gguf_header import GgufHeader


class Multipliers(TypedDict):
    """Arguments of `ModelHeader.model`."""

    embedding_multiplier: float
    residual_multiplier: float
    logit_multiplier: float


def gguf_multipliers(header: GgufHeader, *, logit_scale: float | None = None) -> Multipliers:
    """The multipliers of a GGUF file; `logit_scale` is for one that does not say, None if it has to."""
    fields = header.fields
    return {
        "embedding_multiplier": fields.number("embedding_scale", default=1.0),
        "residual_multiplier": fields.number("residual_scale", default=1.0),
        "logit_multiplier": 1.0 / fields.number("logit_scale", default=logit_scale),
    }


def checkpoint_multipliers(header: CheckpointHeader) -> Multipliers:
    """The multipliers of a checkpoint."""
    config = header.text
    return {
        "embedding_multiplier": config.number("embedding_multiplier", default=1.0),
        "residual_multiplier": config.number("residual_multiplier", default=1.0),
        "logit_multiplier": 1.0 / config.number("logits_scaling", default=1.0),
    }
