"""Finds the roles of a graph's inputs and outputs by their names and shapes, and refuses what it cannot fill.

Optimum's exporter and transformers.js name past inputs `past_key_values.N.key`, onnxruntime-genai names
them in its configuration; an input without a role would have to be guessed, so its model is refused by the
input's name.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.api.errors import ModelError
from engine.models.onnx_header import ELEMENT_NAMES, OnnxHeader, ValueInfo
from engine.models.onnx_spec import GraphPorts, OnnxKvDtype, Port
from engine.models.transformers_spec import KvLayer

_KV_DTYPES: Mapping[int, OnnxKvDtype] = {1: "f32", 10: "f16"}
_INTEGERS = {6: 32, 7: 64}
"""Bits of the element types of integer inputs."""
_BOOLEAN = 9
_MAX_LAYERS = 4096
_STATES = re.compile(r"conv|ssm|recurrent|state", re.IGNORECASE)
_VISION = re.compile(r"pixel|image|vision|audio|patch|grid_thw", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PortNames:
    """How a configuration names inputs and outputs; `%d` stands for the index of a layer."""

    input_ids: str = "input_ids"
    attention_mask: str = "attention_mask"
    position_ids: str = "position_ids"
    past_key: str = "past_key_values.%d.key"
    past_value: str = "past_key_values.%d.value"
    logits: str = "logits"
    present_key: str = "present.%d.key"
    present_value: str = "present.%d.value"


@dataclass(frozen=True, slots=True)
class Interface:
    """The ports of a graph, and what their shapes say.

    Attributes:
        ports: the names.
        kv_layers: shapes of keys and values.
        kv_dtype: element type of keys and values.
        is_single: whether the graph takes one sequence at a time.
        vocab_size: width of the logits; None if it is not stated.
    """

    ports: GraphPorts
    kv_layers: tuple[KvLayer, ...]
    kv_dtype: OnnxKvDtype
    is_single: bool
    vocab_size: int | None


def read_interface(
    header: OnnxHeader, names: PortNames, *, source: str, fallback: KvLayer | None
) -> Interface:
    """The interface of a decoder's graph.

    Args:
        header: the graph.
        names: the names that its configuration gives.
        source: the file, for messages.
        fallback: shapes of keys and values where the graph leaves them open; None if they are unknown.

    Raises:
        ModelError: an input has no role, or one that is needed is missing or of a wrong type or shape.
    """
    inputs = {one.name: one for one in header.inputs}
    outputs = {one.name: one for one in header.outputs}
    _refuse_other_kinds(inputs, names, source)
    layers = _layers(names.past_key, inputs)
    if not layers:
        raise ModelError(
            f"{source} has no past inputs ({names.past_key % 0}, …) and would compute the whole text again "
            "for every token: export it with its past (optimum: --task text-generation-with-past)."
        )
    keys = tuple(names.past_key % layer for layer in layers)
    values = tuple(names.past_value % layer for layer in layers)
    ports = GraphPorts(
        input_ids=_integer(inputs, names.input_ids, 2, source),
        attention_mask=_optional(inputs, names.attention_mask, 2, source),
        position_ids=_optional(inputs, names.position_ids, 2, source),
        logits_to_keep=_optional(inputs, "num_logits_to_keep", None, source),
        uses_past=_flag(inputs, "use_cache_branch", source),
        past_keys=keys,
        past_values=values,
        logits=names.logits,
        present_keys=_presents(names.present_key, layers, outputs, source),
        present_values=_presents(names.present_value, layers, outputs, source),
    )
    if names.logits not in outputs:
        raise ModelError(f"{source} has no output {names.logits}: it is no language model.")
    for value in values:
        if value not in inputs:
            raise ModelError(f"{source} has no input {value}, the counterpart of its keys.")
    _refuse_unknown(inputs, ports, source)
    dtypes = {inputs[name].dtype for name in (*keys, *values)}
    kv_dtype = _KV_DTYPES.get(dtypes.pop()) if len(dtypes) == 1 else None
    if kv_dtype is None:
        kinds = {inputs[name].dtype for name in (*keys, *values)}
        named = ", ".join(sorted(ELEMENT_NAMES.get(kind, f"type {kind}") for kind in kinds))
        raise ModelError(f"{source} keeps keys and values in {named}; F32 and F16 are supported.")
    width = outputs[names.logits].dims[-1:]
    return Interface(
        ports,
        tuple(
            _layer(inputs[key], inputs[value], fallback, source)
            for key, value in zip(keys, values, strict=True)
        ),
        kv_dtype,
        _is_single(inputs[names.input_ids], source),
        width[0] if width and isinstance(width[0], int) and width[0] > 0 else None,
    )


def _refuse_other_kinds(inputs: Mapping[str, ValueInfo], names: PortNames, source: str) -> None:
    """Refuse graphs of models that are no plain decoders, by what they are."""
    for name in inputs:
        if "encoder_hidden_states" in name or ".encoder." in name:
            raise ModelError(
                f"{source} is the decoder of an encoder-decoder model, which is not supported."
            )
        if _VISION.search(name):
            raise ModelError(f"{source} takes images or sound ({name}), which is not supported.")
    if names.input_ids in inputs:
        return
    if "inputs_embeds" in inputs:
        raise ModelError(
            f"{source} takes embeddings instead of token ids: it is a part of a model that sees images "
            "or hears, which is not supported."
        )
    raise ModelError(f"{source} has no input {names.input_ids}: it is no language model.")


def _layers(pattern: str, inputs: Iterable[str]) -> list[int]:
    """Indices of the layers that have an input of this pattern, ascending; some may be missing."""
    before, after = pattern.split("%d")
    matcher = re.compile(re.escape(before) + r"(\d{1,4})" + re.escape(after))
    found = (matcher.fullmatch(name) for name in inputs)
    return sorted(int(match[1]) for match in found if match and int(match[1]) < _MAX_LAYERS)


def _integer(inputs: Mapping[str, ValueInfo], name: str, rank: int | None, source: str) -> Port:
    info = inputs[name]
    if info.dtype not in _INTEGERS:
        raise ModelError(
            f"{source}: the input {name} must be INT64 or INT32, not "
            f"{ELEMENT_NAMES.get(info.dtype, 'another type')}."
        )
    if rank is not None and len(info.dims) != rank:
        raise ModelError(
            f"{source}: the input {name} has {len(info.dims)} dimensions instead of {rank}, "
            "which is not supported."
        )
    return Port(name, _INTEGERS[info.dtype], len(info.dims))


def _optional(
    inputs: Mapping[str, ValueInfo], name: str, rank: int | None, source: str
) -> Port | None:
    return _integer(inputs, name, rank, source) if name in inputs else None


def _flag(inputs: Mapping[str, ValueInfo], name: str, source: str) -> str | None:
    if name not in inputs:
        return None
    if inputs[name].dtype != _BOOLEAN:
        raise ModelError(f"{source}: the input {name} must be BOOL.")
    return name


def _presents(
    pattern: str, layers: Iterable[int], outputs: Mapping[str, ValueInfo], source: str
) -> tuple[str, ...]:
    names = tuple(pattern % layer for layer in layers)
    for name in names:
        if name not in outputs:
            raise ModelError(f"{source} has no output {name}, which its past inputs need.")
    return names


def _refuse_unknown(inputs: Mapping[str, ValueInfo], ports: GraphPorts, source: str) -> None:
    single = (
        ports.input_ids,
        ports.attention_mask,
        ports.position_ids,
        ports.logits_to_keep,
    )
    known: set[str | None] = {port.name for port in single if port is not None}
    known |= {ports.uses_past, *ports.past_keys, *ports.past_values}
    for name in inputs:
        if name in known:
            continue
        if _STATES.search(name):
            raise ModelError(
                f"{source} keeps other state than keys and values ({name}): recurrent models are not "
                "supported."
            )
        raise ModelError(f"{source} has the input {name[:80]}, which is unknown.")


def _layer(key: ValueInfo, value: ValueInfo, fallback: KvLayer | None, source: str) -> KvLayer:
    for info in (key, value):
        if len(info.dims) != 4:
            raise ModelError(
                f"{source}: {info.name} has {len(info.dims)} dimensions, not batch, heads, tokens and "
                "size; it is not supported."
            )
        if isinstance(info.dims[2], int):
            raise ModelError(
                f"{source} has a past of a fixed length, {info.dims[2]} tokens, as graphs for accelerators "
                "have; it is not supported."
            )
    heads, key_dim, value_dim = key.dims[1], key.dims[3], value.dims[3]
    if value.dims[1] != heads:
        raise ModelError(f"{source}: {key.name} and {value.name} differ in their heads.")
    if not isinstance(heads, int):
        heads = 0 if fallback is None else fallback.num_kv_heads
    if not isinstance(key_dim, int):
        key_dim = 0 if fallback is None else fallback.key_dim
    if not isinstance(value_dim, int):
        value_dim = 0 if fallback is None else fallback.value_dim
    if not all(0 < size <= 1 << 16 for size in (heads, key_dim, value_dim)):
        raise ModelError(
            f"{source} and its configuration do not state the heads and sizes of {key.name}."
        )
    return KvLayer(heads, key_dim, value_dim)


def _is_single(info: ValueInfo, source: str) -> bool:
    """Whether the batch is fixed to one sequence."""
    batch, tokens = info.dims
    if isinstance(tokens, int):
        raise ModelError(
            f"{source} takes exactly {tokens} tokens at a time, as graphs for accelerators do; it is not "
            "supported."
        )
    if isinstance(batch, int) and batch != 1:
        raise ModelError(
            f"{source} takes exactly {batch} sequences at a time; it is not supported."
        )
    return isinstance(batch, int)
