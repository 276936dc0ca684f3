"""What the readers of models share of which only some layers attend."""

from collections.abc import Collection

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.model_header import ModelHeader
from engine.models.spec import TensorRef

MAX_KERNEL = 8
"""Longest convolution of the native executor."""


def recurrent_layers(
    header: CheckpointHeader, *, recurrent: Collection[str], key: str = "layer_types"
) -> tuple[bool, ...]:
    """Which layers of a checkpoint have a recurrent mixer; the others attend."""
    kinds, count = header.text.texts(key), header.num_layers
    known = {*recurrent, "full_attention", "attention"}
    if len(kinds) != count or not known.issuperset(kinds):
        raise header.text.wrong(key, f"one of {', '.join(sorted(known))} for {count} layers")
    return tuple(kind in recurrent for kind in kinds)


def optional_bias(header: ModelHeader, prefix: str, role: str, name: str) -> dict[str, TensorRef]:
    """The bias of a role, if the file has one."""
    bias = f"{prefix}{name}.bias"
    return {f"{role}.bias": TensorRef(bias)} if bias in header.shapes else {}
