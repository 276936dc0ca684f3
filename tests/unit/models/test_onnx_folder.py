"""Folders of optimum and onnxruntime-genai: what is found in them, and what is refused."""

import json
import os

import numpy as np
import pytest

from engine.api.errors import ModelError
from engine.models.generation_config import read_onnx_defaults
from engine.models.onnx_folder import is_onnx, read_onnx_folder
from engine.models.transformers_spec import KvLayer

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

from tests.fakes.tiny_onnx import (  # noqa: E402
    GraphOptions,
    build_graph,
    random_llama,
    write_genai,
    write_graph,
    write_optimum,
)

MODEL = random_llama()


def refusal(path):
    with pytest.raises(ModelError) as caught:
        read_onnx_folder(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def configured(folder, name="config.json", **changes):
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def decoder_changed(folder, **changes):
    path = folder / "genai_config.json"
    config = json.loads(path.read_text())
    config["model"]["decoder"] |= changes
    path.write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    "name", ["model.onnx", "onnx/model.onnx", "decoder_model_merged.onnx", "onnx/model_q4.onnx"]
)
def test_a_folder_of_optimum(tmp_path, name):
    folder = read_onnx_folder(write_optimum(tmp_path, MODEL, name=name))
    assert is_onnx(tmp_path)
    assert folder.graph == tmp_path / name
    assert folder.weight_files == (folder.graph,)
    spec = folder.spec
    assert (spec.architecture, spec.vocab_size, spec.context_length) == ("llama", 272, 128)
    assert spec.hidden_size == 32
    assert spec.kv_layers == (KvLayer(1, 16, 16),) * 2
    assert (spec.kv_dtype, spec.is_single, spec.kv_elements_per_token) == ("f32", False, 64)
    assert folder.weight_format == "F32"
    assert folder.parameters == pytest.approx(sum(w.size for w in MODEL.weights.values()), rel=0.7)


def test_a_folder_of_genai(tmp_path):
    folder = read_onnx_folder(
        write_genai(tmp_path, random_llama(layers=4), GraphOptions("gqa", bits=4))
    )
    assert is_onnx(tmp_path)
    assert folder.weight_files == (tmp_path / "model.onnx", tmp_path / "model.onnx.data")
    assert folder.weight_format == "INT4"
    assert folder.spec.architecture == "llama"
    assert folder.spec.ports.position_ids is None
    assert read_onnx_defaults(tmp_path, folder.sampling).values() == {
        "temperature": 0.6,
        "top_k": 20,
        "top_p": 0.95,
    }


def test_a_search_that_does_not_sample_is_no_default(tmp_path):
    folder = configured(write_genai(tmp_path, MODEL), "genai_config.json", search={"top_k": 50})
    assert read_onnx_defaults(folder, read_onnx_folder(folder).sampling).values() == {}
    (folder / "generation_config.json").write_text('{"top_k": 7}')
    assert read_onnx_defaults(folder, read_onnx_folder(folder).sampling).values() == {"top_k": 7}


def test_names_in_a_genai_config_are_followed(tmp_path):
    options = GraphOptions("gqa", past_name="kv_in_%d_%s", present_name="kv_out_%d_%s")
    folder = decoder_changed(
        write_genai(tmp_path, MODEL, options),
        inputs={"past_key_names": "kv_in_%d_key", "past_value_names": "kv_in_%d_value"},
        outputs={"present_key_names": "kv_out_%d_key", "present_value_names": "kv_out_%d_value"},
    )
    ports = read_onnx_folder(folder).spec.ports
    assert ports.past_keys == ("kv_in_0_key", "kv_in_1_key")
    assert ports.present_values == ("kv_out_0_value", "kv_out_1_value")
    for pattern in ("kv_in_key", "kv_%s", "%d_%d", "100%_%d"):
        decoder_changed(folder, inputs={"past_key_names": pattern})
        assert "must be a name with one %d" in refusal(folder)


def test_a_file_stands_for_the_model_in_whose_folder_it_is(tmp_path):
    write_optimum(tmp_path, MODEL, name="onnx/model.onnx")
    half = write_graph(tmp_path / "onnx/model_fp16.onnx", MODEL, GraphOptions(dtype=np.float16))
    assert is_onnx(half)
    folder = read_onnx_folder(half)
    assert (folder.graph, folder.directory) == (half, tmp_path)
    assert (folder.spec.kv_dtype, folder.weight_format) == ("f16", "F16")
    assert read_onnx_folder(tmp_path).graph == tmp_path / "onnx/model.onnx"


def test_several_files_of_which_none_is_the_usual_one(tmp_path):
    write_optimum(tmp_path, MODEL, name="onnx/model_q4.onnx")
    write_graph(tmp_path / "onnx/model_fp16.onnx", MODEL)
    message = refusal(tmp_path)
    assert "several ONNX files" in message
    assert "onnx/model_fp16.onnx, onnx/model_q4.onnx" in message


def test_safetensors_beside_a_graph_are_the_model(tmp_path):
    write_optimum(tmp_path, MODEL, name="onnx/model.onnx")
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert not is_onnx(tmp_path)
    assert not is_onnx(tmp_path / "model.safetensors")


def test_sizes_that_a_graph_leaves_open_come_from_the_configuration(tmp_path):
    proto = build_graph(MODEL, GraphOptions())
    for value in proto.graph.input:
        if value.name.startswith("past"):
            value.type.tensor_type.shape.dim[1].dim_param = "heads"
            value.type.tensor_type.shape.dim[3].dim_param = "size"
    write_optimum(tmp_path, MODEL)
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    assert read_onnx_folder(tmp_path).spec.kv_layers == (KvLayer(1, 16, 16),) * 2
    configured(tmp_path, num_attention_heads=None, num_key_value_heads=None)
    assert "do not state the heads and sizes" in refusal(tmp_path)


@pytest.mark.parametrize("kind", ["longrope", "su"])
def test_frequencies_that_depend_on_the_length_limit_the_context(tmp_path, kind):
    write_optimum(tmp_path, MODEL)
    configured(tmp_path, rope_scaling={"type": kind}, original_max_position_embeddings=64)
    assert read_onnx_folder(tmp_path).spec.context_length == 64
    configured(tmp_path, rope_scaling={"rope_type": kind, "original_max_position_embeddings": 32})
    assert read_onnx_folder(tmp_path).spec.context_length == 32


INPUTS = {
    "pixel_values": "takes images or sound",
    "encoder_hidden_states": "decoder of an encoder-decoder model",
    "past_key_values.0.encoder.key": "decoder of an encoder-decoder model",
    "past_conv.0": "keeps other state than keys and values",
    "something": "has the input something, which is unknown",
}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_that_cannot_be_filled_are_refused_by_name(tmp_path, name):
    options = GraphOptions(extra_inputs={name: (TensorProto.FLOAT, ["batch", 4])})
    assert INPUTS[name] in refusal(write_optimum(tmp_path, MODEL, options))


def test_a_graph_without_past_says_how_to_export_it(tmp_path):
    message = refusal(write_optimum(tmp_path, MODEL, GraphOptions(past=False)))
    assert "has no past inputs" in message
    assert "text-generation-with-past" in message


def changed_input(folder, name, change):
    path = folder / "model.onnx"
    proto = onnx.load(str(path))
    (value,) = [one for one in (*proto.graph.input, *proto.graph.output) if one.name == name]
    change(value)
    path.write_bytes(proto.SerializeToString())
    return folder


def renamed(name):
    return lambda value: setattr(value, "name", name)


def fixed(dim, size):
    return lambda value: setattr(value.type.tensor_type.shape.dim[dim], "dim_value", size)


def typed(kind):
    return lambda value: setattr(value.type.tensor_type, "elem_type", kind)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("input_ids", renamed("inputs_embeds"), "takes embeddings instead of token ids"),
        ("input_ids", renamed("tokens"), "has no input input_ids"),
        ("input_ids", typed(TensorProto.FLOAT), "must be INT64 or INT32"),
        ("input_ids", fixed(1, 1), "exactly 1 tokens at a time"),
        ("input_ids", fixed(0, 4), "exactly 4 sequences at a time"),
        ("past_key_values.1.key", fixed(2, 2048), "a past of a fixed length"),
        ("past_key_values.1.value", typed(TensorProto.INT8), "keys and values in F32, INT8"),
        ("past_key_values.0.value", renamed("else"), "has no input past_key_values.0.value"),
        ("present.1.key", renamed("else"), "has no output present.1.key"),
        ("logits", renamed("last_hidden_state"), "has no output logits"),
    ],
)
def test_other_interfaces_are_refused(tmp_path, name, change, words):
    folder = write_optimum(tmp_path, MODEL)
    assert words in refusal(changed_input(folder, name, change))


def test_a_fixed_batch_of_one_is_taken(tmp_path):
    assert read_onnx_folder(write_optimum(tmp_path, MODEL, GraphOptions(batch=1))).spec.is_single


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vision": {"filename": "vision.onnx"}}, "sees images or hears"),
        ({"speech": {"filename": "speech.onnx"}}, "sees images or hears"),
        ({"embedding": {"filename": "embedding.onnx"}}, "sees images or hears"),
        ({"encoder": {"filename": "encoder.onnx"}}, "encoder-decoder"),
        ({"custom_ops_library": "ops.so"}, "is code and is never loaded"),
        ({"decoder": None}, "decoder"),
        ({"context_length": 0}, "context_length"),
        ({"type": 5}, "type"),
    ],
)
def test_other_models_of_genai_are_refused(tmp_path, changes, words):
    assert words in refusal(write_genai(tmp_path, MODEL, **changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pipeline": [{}]}, "a graph in several parts"),
        ({"session_options": {"custom_ops_library": "ops.so"}}, "is code and is never loaded"),
        ({"filename": "../model.onnx"}, "outside of its folder"),
        ({"filename": "/etc/passwd"}, "outside of its folder"),
        ({"filename": "none.onnx"}, "has no none.onnx"),
        ({"filename": ""}, "outside of its folder"),
    ],
)
def test_other_decoders_of_genai_are_refused(tmp_path, changes, words):
    folder = write_genai(tmp_path / "model", MODEL)
    write_graph(tmp_path / "model.onnx", MODEL)
    assert words in refusal(decoder_changed(folder, **changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"auto_map": {"AutoModel": "x.Y"}}, "custom code"),
        ({"max_position_embeddings": None}, "max_position_embeddings"),
        ({"model_type": None}, "model_type"),
    ],
)
def test_other_configurations_of_optimum_are_refused(tmp_path, changes, words):
    assert words in refusal(configured(write_optimum(tmp_path, MODEL), **changes))


def test_an_encoder_and_a_decoder_are_refused(tmp_path):
    write_optimum(tmp_path, MODEL, name="encoder_model.onnx")
    write_graph(tmp_path / "decoder_model.onnx", MODEL)
    assert "encoder-decoder" in refusal(tmp_path)


@pytest.mark.parametrize("domain", ["ai.onnx.contrib", "my.ops"])
def test_operators_of_other_libraries_are_refused(tmp_path, domain):
    folder = write_optimum(tmp_path, MODEL)
    proto = onnx.load(str(folder / "model.onnx"))
    proto.graph.node.append(helper.make_node("Strange", [], ["z"], domain=domain))
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    assert f"has the operator Strange of {domain}" in refusal(folder)


def test_graphs_compiled_for_accelerators_are_refused(tmp_path):
    folder = write_optimum(tmp_path, MODEL)
    proto = onnx.load(str(folder / "model.onnx"))
    proto.graph.node.append(helper.make_node("EPContext", [], ["z"], domain="com.microsoft"))
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    assert "compiled for an accelerator" in refusal(folder)


def moved_weights(folder, location):
    """The folder, whose weights are said to be in another file."""
    path = folder / "model.onnx"
    proto = onnx.load(str(path), load_external_data=False)
    for tensor in proto.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
    path.write_bytes(proto.SerializeToString())
    return folder


@pytest.mark.parametrize(
    "location",
    [
        "../w.data",
        "sub/../../w.data",
        "/etc/passwd",
        "..\\w.data",
        "C:w.data",
        "",
        "link.data",
        "deep/w.data",
    ],
)
def test_weights_outside_of_the_folder_are_refused(tmp_path, location):
    folder = write_genai(tmp_path / "model", MODEL)
    data = (folder / "model.onnx.data").read_bytes()
    (tmp_path / "w.data").write_bytes(data)
    os.symlink(tmp_path / "w.data", folder / "link.data")
    os.symlink(tmp_path, folder / "deep")
    assert "outside of its folder" in refusal(moved_weights(folder, location))


def test_links_of_a_download_cache_are_followed(tmp_path):
    folder = write_genai(tmp_path / "model", MODEL)
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    for number, name in enumerate(("model.onnx", "model.onnx.data", "genai_config.json")):
        (folder / name).rename(blobs / str(number))
        os.symlink(blobs / str(number), folder / name)
    assert len(read_onnx_folder(folder).weight_files) == 2


def test_truncated_and_missing_weights_are_refused(tmp_path):
    folder = write_genai(tmp_path, MODEL)
    data = folder / "model.onnx.data"
    data.write_bytes(data.read_bytes()[:-1000])
    assert "is truncated" in refusal(folder)
    data.unlink()
    assert "has no model.onnx.data" in refusal(folder)


def test_a_folder_without_a_graph(tmp_path):
    assert not is_onnx(tmp_path)
    assert not is_onnx(tmp_path / "none")
    write_graph(tmp_path / "model.onnx", MODEL)
    assert "has neither genai_config.json nor config.json" in refusal(tmp_path)
    (tmp_path / "model.onnx").unlink()
    (tmp_path / "config.json").write_text("{}")
    assert "has no ONNX file" in refusal(tmp_path)
