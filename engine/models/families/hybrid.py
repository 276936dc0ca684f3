"""What the readers of models share of which only some layers attend."""

from collections.abc import Collection
from dataclasses import dataclass

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.model_header import ModelHeader, split_rows
from engine.models.spec import Mamba2, TensorRef

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


def optional_bias(header: ModelHeader, prefix: str, role: str, name: str) -> dict[str, TensorRef]:
    """The bias of a role, if the file has one."""
    bias = f"{prefix}{name}.bias"
    return {f"{role}.bias": TensorRef(bias)} if bias in header.shapes else {}
