"""The choice of the ONNX executor for a model, and the errors for missing packages and wrong settings."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from engine.api.config import EngineConfig
from engine.api.errors import ModelError
from engine.executors.onnx import installed
from engine.executors.open_model import open_model
from engine.models.onnx_spec import OnnxSpec
from engine.models.spec import ModelSpec
from engine.models.store import ModelStore
from engine.runtime.loading import open_from_disk, open_with_headers
from tests.fakes.tiny_checkpoint import write_checkpoint
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.fakes.tiny_onnx import random_llama, write_genai, write_graph, write_optimum

MODEL = random_llama()


def settings(path, **changes):
    return replace(EngineConfig(path, "tiny"), **changes)


def refusal(path, **changes):
    with pytest.raises(ModelError) as caught:
        open_with_headers(settings(path, **changes), open_from_disk)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def folder(tmp_path):
    return write_optimum(tmp_path / "model", MODEL)


def test_a_folder_in_onnx_needs_no_setting(folder, tmp_path):
    assert isinstance(open_model(folder).spec, OnnxSpec)
    assert isinstance(open_model(folder / "model.onnx").spec, OnnxSpec)
    assert isinstance(open_model(write_genai(tmp_path / "genai", MODEL)).spec, OnnxSpec)


def test_of_safetensors_and_a_graph_the_setting_chooses(tmp_path):
    write_checkpoint(tmp_path)
    write_graph(tmp_path / "onnx/model.onnx", MODEL)
    assert isinstance(open_model(tmp_path).spec, ModelSpec)
    onnx = open_model(tmp_path, settings(tmp_path, executor="onnx"))
    assert isinstance(onnx.spec, OnnxSpec)


@pytest.mark.parametrize("executor", ["native", "torch"])
def test_other_executors_do_not_read_onnx(folder, executor):
    assert f"which the {executor} executor does not read" in refusal(folder, executor=executor)


def test_the_onnx_executor_reads_nothing_else(tmp_path):
    gguf = write_tiny_gguf(tmp_path / "tiny.gguf")
    assert "is not an ONNX file" in refusal(gguf, executor="onnx")
    assert "has no ONNX file" in refusal(write_checkpoint(tmp_path / "c"), executor="onnx")
    assert "There is no model at" in refusal(tmp_path / "none.onnx", executor="onnx")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": "q4"}, "weights q4 is of another executor"),
        ({"dispatch": "avx2"}, "dispatch avx2 is of another executor"),
        ({"device": "cuda"}, "device cuda is of another executor"),
        ({"dtype": "bf16"}, "dtype bf16 is of another executor"),
        ({"attention": "triton"}, "attention triton is of another executor"),
        ({"cuda_graphs": True}, "cuda_graphs is of another executor"),
        ({"dummy_weights": True}, "dummy_weights is of another executor"),
        ({"kv_dtype": "int8"}, "keeps keys and values in f32: kv_dtype int8 is not possible"),
        ({"kv_dtype": "f16"}, "kv_dtype f16 is not possible"),
    ],
)
def test_settings_of_other_executors_are_refused(folder, changes, words):
    assert words in refusal(folder, **changes)


def test_a_draft_model_is_refused(folder, tmp_path):
    gguf = write_tiny_gguf(tmp_path / "draft.gguf")
    assert "runs in the ONNX executor, which takes no draft model" in refusal(
        folder, draft_model=gguf
    )


def test_the_type_of_the_graph_may_be_named(folder):
    assert open_with_headers(settings(folder, kv_dtype="f32"), open_from_disk).kv_dtype == "f32"


def test_the_plan_counts_weights_blocks_and_a_context_on_its_way(folder):
    opened = open_with_headers(settings(folder, max_model_len=100), open_from_disk)
    token_bytes = MODEL.layers * 2 * MODEL.kv_heads * MODEL.size * 4
    memory = opened.memory
    assert memory.block_bytes == 32 * token_bytes
    assert memory.work_bytes == 2 * 100 * token_bytes + 512 * MODEL.vocab * 4
    weights = sum(weight.nbytes for weight in MODEL.weights.values())
    assert weights < memory.weight_bytes < 2 * weights  # cosines, sines and the head's copy
    assert memory.weight_format == "F32"


def test_without_onnxruntime_one_sentence_says_what_to_install(folder, monkeypatch):
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    message = refusal(folder)
    assert message == (
        f"{folder} is a model in ONNX, which needs ONNX Runtime, which is not installed: "
        "pip install 'pravaha[onnx]'."
    )


def test_opening_imports_no_onnxruntime(folder):
    code = (
        "import sys; from pathlib import Path; from engine.executors.open_model import open_model; "
        "open_model(Path(sys.argv[1])); assert 'onnxruntime' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True, timeout=120)


def test_the_store_records_and_verifies_graphs_and_their_weights(tmp_path):
    store = ModelStore(tmp_path / "store", check=open_model)
    write_genai(tmp_path / "genai", MODEL)
    added = store.add(str(tmp_path / "genai"), name="genai")
    names = {file.name for file in added.files}
    assert {"model.onnx", "model.onnx.data", "genai_config.json", "tokenizer.json"} <= names
    write_optimum(tmp_path / "opt", MODEL, name="onnx/model.onnx")
    store.add(str(tmp_path / "opt"), name="opt")
    assert store.verify("genai") == store.verify("opt") == ()
    graph = tmp_path / "opt/onnx/model.onnx"
    graph.write_bytes(graph.read_bytes() + b"\0")
    (problem,) = store.verify("opt")
    assert str(graph) in problem
    one = store.add(str(tmp_path / "genai/model.onnx"), name="file")
    assert [file.name for file in one.files] == ["model.onnx"]


def test_a_model_that_cannot_be_used_is_not_added(tmp_path):
    store = ModelStore(tmp_path / "store", check=open_model)
    write_genai(tmp_path / "genai", MODEL)
    path = tmp_path / "genai/genai_config.json"
    config = json.loads(path.read_text())
    config["model"]["vision"] = {"filename": "vision.onnx"}
    path.write_text(json.dumps(config))
    with pytest.raises(ModelError, match="sees images or hears"):
        store.add(str(tmp_path / "genai"))
    assert store.list() == []
