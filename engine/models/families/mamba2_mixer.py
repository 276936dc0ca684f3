"""Mamba2 mixers as files describe them: their sizes in a GGUF file, and where their weights are stored."""

import math
from dataclasses import dataclass

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.hybrid import MAX_KERNEL, optional_bias
from engine.models.families.model_header import (
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_WIDTH,
    ModelHeader,
    split_rows,
)
from engine.models.spec import Mamba2, TensorRef


def gguf_mamba2(header: GgufHeader) -> Mamba2:
    """The Mamba2 mixer of a GGUF file."""
    fields = header.fields
    heads = fields.integer("ssm.time_step_rank", low=1, high=MAX_HEADS)
    inner = fields.integer("ssm.inner_size", low=1, high=MAX_WIDTH)
    if inner % heads:
        raise fields.wrong("ssm.inner_size", f"a multiple of {heads}, the number of heads")
    return Mamba2(
        kernel=fields.integer("ssm.conv_kernel", low=1, high=MAX_KERNEL),
        num_heads=heads,
        num_groups=fields.integer("ssm.group_count", low=1, high=MAX_HEADS),
        head_dim=inner // heads,
        state_dim=fields.integer("ssm.state_size", low=1, high=MAX_HEAD_DIM),
    )


def require_unlimited_time_steps(header: CheckpointHeader, *keys: str) -> None:
    """Reject a checkpoint whose time steps are cut off at a limit, which `keys` may give.

    transformers applies it to prompts and not to single tokens, so that there is no one result to compute.
    """
    unlimited = (0.0, math.inf)
    for key in keys:
        if header.text.interval(key, default=unlimited) != unlimited:
            raise header.unsupported(key, "0 to infinity: limited time steps are not supported")


@dataclass(frozen=True, slots=True)
class Mamba2Names:
    """Names of a Mamba2's tensors, without that of the layer. Those of biases may be missing in the file."""

    in_proj: str
    conv: str
    time_step_bias: str
    rate_role: str
    rate: str
    skip: str
    norm: str
    o: str


GGUF_MAMBA2 = Mamba2Names(
    in_proj="ssm_in",
    conv="ssm_conv1d",
    time_step_bias="ssm_dt.bias",
    rate_role="rate",
    rate="ssm_a",
    skip="ssm_d",
    norm="ssm_norm.weight",
    o="ssm_out",
)


def checkpoint_mamba2(module: str) -> Mamba2Names:
    """The names in a checkpoint whose layers call the mixer `module`."""
    return Mamba2Names(
        in_proj=f"{module}.in_proj",
        conv=f"{module}.conv1d",
        time_step_bias=f"{module}.dt_bias",
        rate_role="rate_log",
        rate=f"{module}.A_log",
        skip=f"{module}.D",
        norm=f"{module}.norm.weight",
        o=f"{module}.out_proj",
    )


def mamba2_tensors(
    header: ModelHeader, prefix: str, mixer: Mamba2, names: Mamba2Names
) -> dict[str, TensorRef]:
    """The weights of a Mamba2 mixer.

    Args:
        header: the model.
        prefix: the layer's, before the names of its tensors.
        mixer: the mixer.
        names: its tensors.
    """

    def whole(name: str) -> TensorRef:
        return TensorRef(header.require(prefix + name))

    inner = mixer.num_heads * mixer.head_dim
    channels = inner + 2 * mixer.num_groups * mixer.state_dim
    rows = {"z": inner, "conv_in": channels, "time_step": mixer.num_heads}
    tensors = split_rows(header.require(f"{prefix}{names.in_proj}.weight"), rows)
    # The projection has no bias in published models: that of the time step is the only one.
    if f"{prefix}{names.in_proj}.bias" in header.shapes:
        raise header.fields.wrong("mamba_proj_bias", "false: it is not supported")
    return {
        **tensors,
        "conv": whole(f"{names.conv}.weight"),
        **optional_bias(header, prefix, "conv", names.conv),
        "time_step.bias": whole(names.time_step_bias),
        names.rate_role: whole(names.rate),
        "skip": whole(names.skip),
        "state_norm": whole(names.norm),
        "o": whole(f"{names.o}.weight"),
        **optional_bias(header, prefix, "o", names.o),
    }
