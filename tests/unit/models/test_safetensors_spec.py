import json
import math
import struct

import pytest

from engine.api.errors import ModelError
from engine.files.fields import Fields
from engine.models.safetensors import read_spec, read_tensors, weight_files
from engine.models.safetensors_header import TensorEntry, read_header
from engine.models.spec import Rope, RopeScaling, TensorRef
from tests.fakes.tiny_checkpoint import CLASSES, tiny_config, tiny_tensors, write_checkpoint


def tensors_of(architecture="llama", *, tied=False):
    return {
        name: TensorEntry(array.shape, "F32")
        for name, array in tiny_tensors(architecture, tied=tied).items()
    }


def spec_of(architecture="llama", **changes):
    config = Fields(tiny_config(architecture, **changes), source="config.json")
    return read_spec(config, tensors_of(architecture))


def windows_of(architecture, **changes):
    return tuple(attention.window for attention in spec_of(architecture, **changes).attentions)


@pytest.mark.parametrize("architecture", CLASSES)
def test_shapes_and_flags(architecture):
    spec = spec_of(architecture)
    attention = spec.attentions[0]
    assert (spec.num_layers, spec.hidden_size, attention.head_dim) == (2, 16, 4)
    assert spec.ropes == (Rope(10_000.0, 4, "half"),)
    assert spec.has_key_bias == (architecture == "qwen2")
    assert all(("q_norm" in layer.tensors) == (architecture == "qwen3") for layer in spec.layers)
    assert spec.layers[1].tensors["q"] == TensorRef("model.layers.1.self_attn.q_proj.weight")


def test_llama_biases_follow_the_config():
    config = Fields(tiny_config(attention_bias=True, mlp_bias=True), source="config.json")
    with pytest.raises(ModelError, match=r"has no model\.layers\.0\.self_attn\.q_proj\.bias"):
        read_spec(config, tensors_of())
    biased = tensors_of()
    for name in list(biased):
        if "_proj" in name:
            biased[name.replace("weight", "bias")] = TensorEntry((1,), "F32")
    roles = read_spec(config, biased).layers[1].tensors
    assert {"q.bias", "k.bias", "v.bias", "o.bias", "gate.bias", "up.bias", "down.bias"} <= set(
        roles
    )
    assert "q.bias" not in read_spec(Fields(tiny_config(), source="x"), biased).layers[1].tensors


@pytest.mark.parametrize("tied", [True, False, None])
def test_a_head_in_the_file_is_used_whatever_the_config_says(tied):
    config = Fields(tiny_config(tie_word_embeddings=tied), source="config.json")
    assert not read_spec(config, tensors_of()).tied_embeddings


def test_an_untied_head_must_exist():
    config = Fields(tiny_config(tie_word_embeddings=False), source="config.json")
    tied = Fields(tiny_config(tie_word_embeddings=True), source="config.json")
    assert read_spec(tied, tensors_of(tied=True)).tied_embeddings
    with pytest.raises(ModelError, match=r"lm_head\.weight"):
        read_spec(config, tensors_of(tied=True))


LLAMA3 = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"factor": 4.0, "original_max_position_embeddings": 32}
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0, 2.0], "long_factor": [2.0, 4.0]}


@pytest.mark.parametrize(
    ("settings", "kind", "expected"),
    [
        ({"factor": 2.0}, "linear", RopeScaling("linear", 2.0)),
        (LLAMA3, "llama3", RopeScaling("llama3", 8.0, 64)),
        (YARN, "yarn", RopeScaling("yarn", 4.0, 32)),
        (
            YARN | {"attention_factor": 1.2, "beta_fast": 16.0},
            "yarn",
            RopeScaling("yarn", 4.0, 32, beta_fast=16.0, attention_factor=1.2),
        ),
        (
            YARN | {"mscale": 1.0, "mscale_all_dim": 1.0, "truncate": False},
            "yarn",
            RopeScaling("yarn", 4.0, 32, truncate=False, attention_factor=1.0),
        ),
        (
            LONGROPE | {"original_max_position_embeddings": 32},
            "longrope",
            RopeScaling("longrope", 4.0, 32, short_divisors=(1.0, 2.0), long_divisors=(2.0, 4.0)),
        ),
        ({}, "default", RopeScaling()),
    ],
)
def test_rope_scaling_in_every_spelling(settings, kind, expected):
    oldest = spec_of(rope_scaling=settings | {"type": kind}, rope_theta=5e5)
    old = spec_of(rope_scaling=settings | {"rope_type": kind}, rope_theta=5e5)
    new = spec_of(
        rope_parameters=settings | {"rope_type": kind, "rope_theta": 5e5}, rope_theta=None
    )
    assert oldest.ropes == old.ropes == new.ropes == (Rope(5e5, 4, "half", expected),)


@pytest.mark.parametrize(
    ("architecture", "changes", "windows"),
    [
        ("llama", {"sliding_window": 8}, (0, 0)),
        ("mistral", {"sliding_window": 8}, (8, 8)),
        ("mistral", {"sliding_window": None}, (0, 0)),
    ],
)
def test_sliding_windows_of_mistral_alone(architecture, changes, windows):
    assert windows_of(architecture, **changes) == windows


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"auto_map": {"AutoModel": "evil.Model"}}, "auto_map"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quant_method must be gptq"),
        ({"model_type": "mamba"}, "mamba"),
        ({"model_type": "../../etc"}, "etc"),
        ({"model_type": 7}, "model_type"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "SequenceClassification"),
        ({"hidden_act": "telepathy"}, "hidden_act"),
        ({"hidden_size": -1}, "hidden_size"),
        ({"hidden_size": 1e30}, "hidden_size"),
        ({"hidden_size": [16]}, "hidden_size"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"num_attention_heads": 0}, "num_attention_heads"),
        ({"vocab_size": None}, "vocab_size"),
        ({"rms_norm_eps": "tiny"}, "rms_norm_eps"),
        ({"partial_rotary_factor": 1.5}, "partial_rotary_factor"),
        ({"partial_rotary_factor": 0.3}, "partial_rotary_factor"),
        ({"num_attention_heads": 64}, "head_dim"),
        ({"rope_scaling": "linear"}, "rope_scaling"),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "rope_type"),
        ({"rope_scaling": {"rope_type": "linear"}}, "factor"),
        ({"rope_scaling": {"rope_type": "linear", "factor": -2.0}}, "factor"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "low_freq_factor"),
        (
            {"rope_scaling": YARN | {"rope_type": "yarn", "mscale": 1.0, "mscale_all_dim": -9.0}},
            "mscale",
        ),
        ({"rope_scaling": LONGROPE | {"long_factor": [1.0]}}, "long_factor"),
        ({"rope_scaling": LONGROPE | {"short_factor": [1.0, 0.0]}}, "short_factor"),
    ],
)
def test_hostile_configs_are_refused_in_one_sentence(changes, word):
    with pytest.raises(ModelError, match=word) as caught:
        spec_of(**changes)
    assert "\n" not in str(caught.value)


def test_one_file_and_shards_hold_the_same_tensors(tmp_path):
    single = weight_files(write_checkpoint(tmp_path / "single", tied=False))
    shards = weight_files(write_checkpoint(tmp_path / "shards", tied=False, shards=2))
    assert (len(single), len(shards)) == (1, 2)
    assert read_tensors(single) == read_tensors(shards)


@pytest.mark.parametrize(
    "name", ["../secret.safetensors", "/etc/passwd", "model.bin", "a/b.safetensors"]
)
def test_an_index_cannot_name_files_elsewhere(tmp_path, name):
    directory = write_checkpoint(tmp_path)
    index = {"weight_map": {"x": name}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match="not a safetensors file of this"):
        weight_files(directory)


def test_pickled_checkpoints_are_refused(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelError, match="can run code"):
        weight_files(tmp_path)


def header_file(path, header, *, length=None, data=b""):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw) if length is None else length) + raw + data)
    return path


@pytest.mark.parametrize(
    "header",
    [
        b"not json",
        b"[1]",
        {"x": 1},
        {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}},
        {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 80]}},
        {"x": {"dtype": "F32", "shape": [-2, -1], "data_offsets": [0, 8]}},
        {"x": {"dtype": "F32", "shape": [True, 2], "data_offsets": [0, 8]}},
        {"x": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}},
        {"x": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}},
    ],
)
def test_damaged_headers_are_refused(tmp_path, header):
    path = header_file(tmp_path / "model.safetensors", header, data=bytes(8))
    with pytest.raises(ModelError):
        read_header(path)


@pytest.mark.parametrize("length", [0xFFFF_FFFF_FFFF_FFFF, 1 << 40, 1000])
def test_a_header_length_beyond_the_file_allocates_nothing(tmp_path, length):
    path = header_file(tmp_path / "model.safetensors", {}, length=length)
    with pytest.raises(ModelError, match="truncated"):
        read_header(path)


def test_entries_count_their_elements():
    assert TensorEntry((3, 4), "F32").elements == math.prod((3, 4))
