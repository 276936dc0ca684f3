"""Settings of quantised checkpoints: what is supported, and what is refused by name."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.api.errors import ModelError, UnsupportedByNativeError
from engine.files.fields import Fields
from engine.models.quantization import Quantization, read_quantization
from engine.models.safetensors_header import TensorEntry
from tests.fakes.quantized_matrix import (
    Tensors,
    awq_tensors,
    gptq_tensors,
    packed_tensors,
    quantize,
)

GPTQ = {
    "quant_method": "gptq",
    "bits": 4,
    "group_size": 128,
    "desc_act": False,
    "sym": True,
    "checkpoint_format": "gptq",
    "pack_dtype": "int32",
    "damp_percent": 0.05,
    "lm_head": False,
    "true_sequential": True,
    "meta": {"quantizer": ["gptqmodel:7.7.0"]},
}
AWQ = {
    "quant_method": "awq",
    "bits": 4,
    "group_size": 64,
    "zero_point": True,
    "version": "gemm",
    "modules_to_not_convert": ["lm_head"],
}
WEIGHTS = {
    "num_bits": 4,
    "type": "int",
    "symmetric": True,
    "strategy": "group",
    "group_size": 32,
    "actorder": None,
    "dynamic": False,
    "observer": "minmax",
    "observer_kwargs": {},
}


def compressed(weights: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    group = {
        "targets": ["Linear"],
        "weights": WEIGHTS | (weights or {}),
        "input_activations": None,
        "output_activations": None,
    }
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "quantization_status": "compressed",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
        "kv_cache_scheme": None,
        "sparsity_config": {},
        "transform_config": {},
    } | changes


def read(settings: dict[str, Any], key: str = "quantization_config") -> Quantization:
    found = read_quantization(Fields({key: settings}, source="config.json"))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("settings", "scheme", "title"),
    [
        (GPTQ, "gptq", "GPTQ 4-bit, groups of 128"),
        (GPTQ | {"desc_act": True}, "gptq", "GPTQ 4-bit, groups of 128, act-order"),
        (GPTQ | {"checkpoint_format": "gptq_v2"}, "gptq_v2", "GPTQ 4-bit, groups of 128"),
        (GPTQ | {"bits": 8, "group_size": -1}, "gptq", "GPTQ 8-bit, one per output"),
        ({"quant_method": "gptq", "bits": 4}, "gptq", "GPTQ 4-bit, groups of 128"),
        (AWQ, "awq", "AWQ 4-bit, groups of 64"),
        (AWQ | {"version": "GEMM"}, "awq", "AWQ 4-bit, groups of 64"),
        (
            {"quant_method": "awq", "w_bit": 4, "q_group_size": 128, "zero_point": True},
            "awq",
            "AWQ 4-bit, groups of 128",
        ),
        (compressed(), "pack-quantized", "compressed-tensors 4-bit, groups of 32"),
        (
            compressed({"num_bits": 8, "strategy": "channel", "group_size": None}),
            "pack-quantized",
            "compressed-tensors 8-bit, one per output",
        ),
        (
            compressed({"actorder": "group"}),
            "pack-quantized",
            "compressed-tensors 4-bit, groups of 32, act-order",
        ),
        (
            compressed({"actorder": "weight"}),
            "pack-quantized",
            "compressed-tensors 4-bit, groups of 32",
        ),
        (
            {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
            "mxfp4",
            "MXFP4 4-bit, groups of 32",
        ),
    ],
)
def test_settings_are_read_and_named(settings, scheme, title):
    found = read(settings)
    assert (found.scheme, found.title) == (scheme, title)


def test_several_groups_are_named_once_each():
    wide = compressed({"num_bits": 8})["config_groups"]["group_0"]
    narrow = compressed()["config_groups"]["group_0"]
    groups = {"group_0": narrow, "group_1": wide, "group_2": narrow}
    found = read(compressed(config_groups=groups))
    assert found.title == "compressed-tensors 4-bit, groups of 32 and 8-bit, groups of 32"


def test_the_older_key_of_compressed_tensors():
    settings = {key: value for key, value in compressed().items() if key != "quant_method"}
    assert read(settings, "compression_config").scheme == "pack-quantized"


def test_a_model_without_settings_is_not_quantised():
    assert read_quantization(Fields({"quantization_config": None}, source="config.json")) is None


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"quant_method": "fp8"}, ["quant_method", "'fp8'", "or compressed-tensors or mxfp4"]),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, ["'bitsandbytes'"]),
        (GPTQ | {"bits": 2}, ["bits must be 4 or 8, not 2"]),
        (GPTQ | {"bits": 3}, ["bits must be 4 or 8, not 3"]),
        (GPTQ | {"checkpoint_format": "marlin"}, ["checkpoint_format", "'marlin'"]),
        (GPTQ | {"is_marlin_format": True}, ["is_marlin_format", "True"]),
        (GPTQ | {"pack_dtype": "int16"}, ["pack_dtype", "'int16'"]),
        (GPTQ | {"dynamic": {"+:.*down.*": {"bits": 3}}}, ["dynamic", "bits", "not 3"]),
        (AWQ | {"bits": 8}, ["bits must be 4, not 8"]),
        (AWQ | {"version": "gemv"}, ["version must be gemm, not 'gemv'"]),
        (AWQ | {"version": "marlin"}, ["version", "'marlin'"]),
        (AWQ | {"zero_point": False}, ["zero_point must be true, not False"]),
        (compressed(format="float-quantized"), ["format", "'float-quantized'"]),
        (compressed(format="nvfp4-pack-quantized"), ["format", "'nvfp4-pack-quantized'"]),
        (compressed(format="marlin-24"), ["format", "'marlin-24'"]),
        (compressed({"num_bits": 3}), ["num_bits must be 4 or 8, not 3"]),
        (compressed({"type": "float"}), ["type must be int, not 'float'"]),
        (compressed({"strategy": "tensor"}), ["strategy", "'tensor'"]),
        (compressed({"dynamic": True}), ["dynamic", "True"]),
        (compressed(quantization_status="frozen"), ["quantization_status", "'frozen'"]),
        (compressed(kv_cache_scheme={"num_bits": 8}), ["kv_cache_scheme must be null"]),
        (compressed(transform_config={"R1": {}}), ["transform_config must be null"]),
        (
            compressed(sparsity_config={"format": "sparse-24-bitmask"}),
            ["sparsity_config", "format"],
        ),
    ],
)
def test_what_is_not_supported_is_refused_by_name(settings, parts):
    with pytest.raises(UnsupportedByNativeError) as caught:
        read(settings)
    message = str(caught.value)
    assert message.startswith("config.json: quantization_config")
    assert all(part in message for part in parts), message


def test_quantised_activations_are_refused():
    groups = compressed()["config_groups"]
    groups["group_0"]["input_activations"] = {"num_bits": 8, "dynamic": True}
    with pytest.raises(UnsupportedByNativeError, match="input_activations must be null"):
        read(compressed(config_groups=groups))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"quant_method": 4},
        {"quant_method": "gptq"},
        GPTQ | {"bits": "four"},
        GPTQ | {"group_size": 0},
        GPTQ | {"desc_act": "yes"},
        compressed(config_groups={}),
        compressed(config_groups={"group_0": {"targets": ["Linear"]}}),
        compressed({"strategy": "group", "group_size": None}),
    ],
)
def test_damaged_settings_are_refused(settings):
    with pytest.raises(ModelError):
        read(settings)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
KEYS = sorted({*GPTQ, *AWQ, *compressed(), *WEIGHTS, "w_bit", "dynamic", "format"})


@given(
    base=st.sampled_from([GPTQ, AWQ, compressed(), {}]),
    changes=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3),
    weights=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3),
)
def test_any_settings_are_read_or_refused_in_a_sentence(base, changes, weights):
    settings = dict(base)
    if "config_groups" in settings:
        settings = compressed(weights)
    try:
        said = read(settings | changes).title
    except ModelError as error:
        said = str(error)
    assert said
    assert "\n" not in said


def entries(tensors: Tensors, stem: str = "model.layers.0.mlp.up_proj") -> dict[str, TensorEntry]:
    kinds = {np.dtype(np.int32): "I32", np.dtype(np.int64): "I64", np.dtype(np.float16): "F16"}
    return {
        f"{stem}.{name}": TensorEntry(values.shape, kinds[values.dtype])
        for name, values in tensors.items()
    }


MATRIX = np.random.default_rng(1).normal(size=(16, 96)).astype(np.float32)


@pytest.mark.parametrize(
    ("settings", "tensors"),
    [
        (GPTQ, gptq_tensors(quantize(MATRIX, group_size=32))),
        (GPTQ | {"bits": 8}, gptq_tensors(quantize(MATRIX, bits=8, group_size=48))),
        (AWQ, awq_tensors(quantize(MATRIX, group_size=32))),
        (compressed(), packed_tensors(quantize(MATRIX, group_size=32), symmetric=False)),
        (
            compressed({"num_bits": 8, "strategy": "channel"}),
            packed_tensors(quantize(MATRIX, bits=8), symmetric=True),
        ),
    ],
)
def test_a_modules_tensors_are_one_matrix(settings, tensors):
    found = read(settings)
    bias = {"model.layers.0.mlp.up_proj.bias": TensorEntry((16,), "F16")}
    matrices = found.matrices(entries(tensors) | bias)
    assert matrices == bias | {
        "model.layers.0.mlp.up_proj.weight": TensorEntry((16, 96), found.title)
    }


def test_shapes_that_do_not_fit_are_refused():
    tensors = entries(gptq_tensors(quantize(MATRIX, group_size=32)))
    for name in ("qweight", "scales", "qzeros"):
        wrong = tensors | {f"model.layers.0.mlp.up_proj.{name}": TensorEntry((5, 7), "I32")}
        with pytest.raises(ModelError, match=r"do not fit"):
            read(GPTQ).matrices(wrong)


BLOCKS = {
    "mlp.experts.down_proj_blocks": TensorEntry((4, 96, 2, 16), "U8"),
    "mlp.experts.down_proj_scales": TensorEntry((4, 96, 2), "U8"),
}


def test_blocks_and_scales_are_a_stack_of_matrices():
    bias = {"mlp.experts.down_proj_bias": TensorEntry((4, 96), "BF16")}
    found = read({"quant_method": "mxfp4"})
    stack = {"mlp.experts.down_proj": TensorEntry((4, 96, 64), found.title)}
    assert found.matrices(BLOCKS | bias) == bias | stack


@pytest.mark.parametrize(
    "changes",
    [
        {"mlp.experts.down_proj_blocks": TensorEntry((4, 96, 2, 32), "U8")},
        {"mlp.experts.down_proj_scales": TensorEntry((4, 96, 1), "U8")},
        {"mlp.experts.down_proj_scales": TensorEntry((), "U8")},
    ],
)
def test_blocks_that_do_not_fit_their_scales_are_refused(changes):
    with pytest.raises(ModelError, match="down_proj_blocks and _scales do not fit"):
        read({"quant_method": "mxfp4"}).matrices(BLOCKS | changes)


def test_a_checkpoint_without_quantised_tensors_is_refused():
    with pytest.raises(ModelError, match=r"GPTQ 4-bit, groups of 128.*no \*\.qweight"):
        read(GPTQ).matrices({"model.norm.weight": TensorEntry((4,), "F16")})
