"""The choice of executor for a model, and the errors for unsupported models and settings."""

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from engine.api.config import EngineConfig
from engine.api.errors import ModelError
from engine.executors.native_settings import native_kv_dtype
from engine.executors.open_model import open_model
from engine.models.spec import ModelSpec
from engine.models.transformers_spec import KvLayer, TransformersSpec
from engine.runtime.loading import open_from_disk, open_with_headers
from tests.fakes.tiny_checkpoint import tiny_config, write_checkpoint
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.fakes.tiny_transformers import CONTEXT, greedy, save_tiny, tiny_hf_config, tiny_hf_model
from tests.parity.stepper import Run
from tests.torch_executor.loaded import load_torch, stepper, torch_config


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("llama"), tiny_hf_model("llama"))


@pytest.fixture(scope="module")
def opt(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("opt"), tiny_hf_model("opt"))


def settings(path, **changes):
    return replace(EngineConfig(path, "tiny"), **changes)


def refusal(directory, **changes):
    with pytest.raises(ModelError) as caught:
        open_model(directory, settings(directory, **changes))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def config_json(directory, **changes):
    """A model directory with a modified config.json."""
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | changes))
    return directory


def test_auto_takes_native_where_it_can(llama):
    assert isinstance(open_model(llama).spec, ModelSpec)


def test_auto_takes_torch_where_native_cannot(opt):
    spec = open_model(opt).spec
    assert isinstance(spec, TransformersSpec)
    assert spec.architecture == "opt"
    assert spec.context_length == CONTEXT
    assert spec.kv_layers == (KvLayer(4, 8, 8),) * 3


@pytest.mark.parametrize(
    "changes",
    [
        {"executor": "torch"},
        {"dtype": "bf16"},
        {"attention": "reference"},
        {"kv_dtype": "bf16"},
        {"cuda_graphs": True},
        {"dummy_weights": True},
    ],
)
def test_settings_that_only_torch_supports_select_torch(llama, changes):
    assert isinstance(open_model(llama, settings(llama, **changes)).spec, TransformersSpec)


def test_native_rejects_unsupported_models_and_settings(llama, opt):
    assert "'opt' model, which the native executor does not" in refusal(opt, executor="native")
    assert "dtype bf16 needs the torch" in refusal(llama, executor="native", dtype="bf16")
    assert "dummy_weights needs" in refusal(llama, executor="native", dummy_weights=True)
    with pytest.raises(ModelError, match="bf16 needs the torch executor"):
        native_kv_dtype("bf16", open_model(llama).spec, "F32")
    assert "int8 needs the native executor" in refusal(llama, executor="torch", kv_dtype="int8")


def test_torch_rejects_unsupported_settings_and_files(opt, tmp_path):
    assert "dispatch avx2 needs the native executor" in refusal(opt, dispatch="avx2")
    assert "weights q4 needs the native executor" in refusal(opt, weights="q4")
    gguf = write_tiny_gguf(tmp_path / "tiny.gguf")
    assert "GGUF file, which the torch executor does not read" in refusal(gguf, executor="torch")


def test_device_cuda_without_a_gpu_is_an_error(opt):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    config = settings(opt, device="cuda")
    with pytest.raises(ModelError, match="device is cuda, but torch sees no GPU"):
        open_with_headers(config, open_from_disk)


def test_graphs_without_a_gpu_are_refused(opt):
    with pytest.raises(ModelError, match="cuda_graphs needs a GPU"):
        load_torch(opt, device="cpu", cuda_graphs=True)


def test_graphs_are_used_on_a_gpu_with_triton_unless_set(monkeypatch, opt):
    import torch

    from engine.executors.torch.backends import uses_graphs

    pytest.importorskip("triton")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    expected = {
        (): True,
        ("cuda_graphs", False): False,
        ("device", "cpu"): False,
        ("attention", "reference"): False,
    }
    for change, used in expected.items():
        assert uses_graphs(settings(opt, **dict([change] if change else []))) == used
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert not uses_graphs(settings(opt))
    assert uses_graphs(settings(opt, cuda_graphs=True))
    assert open_model(opt, settings(opt, cuda_graphs=True)).uses_graphs
    assert not open_model(opt, settings(opt)).uses_graphs


def test_graphs_that_cannot_be_recorded_are_refused_only_if_asked_for(monkeypatch, opt, caplog):
    from engine.executors.torch import decode_graphs
    from engine.executors.torch.executor import TorchExecutor

    def refuse(*_, **__):
        raise ModelError("The decode step of 4 rows cannot be recorded.")

    executor = load_torch(opt, device="cpu")
    executor._device = SimpleNamespace(type="cuda")
    executor._backend = SimpleNamespace(name="triton")
    monkeypatch.setattr(decode_graphs, "CudaRecorder", object)
    monkeypatch.setattr(TorchExecutor, "use_graphs", refuse)
    with pytest.raises(ModelError, match="cannot be recorded"):
        executor._record_graphs(settings(opt, cuda_graphs=True), max_model_len=64)
    executor._record_graphs(settings(opt), max_model_len=64)
    assert "runs without CUDA graphs: The decode step of 4 rows" in caplog.text


def test_the_pool_is_sized_by_the_models_own_geometry(tmp_path):
    directory = save_tiny(tmp_path, tiny_hf_model("gemma4"))
    config = torch_config(directory, kv_dtype="f32")
    opened = open_with_headers(config, open_from_disk)
    layers = opened.model.spec.kv_layers
    assert layers == (KvLayer(2, 8, 8), KvLayer(2, 8, 8), KvLayer(1, 16, 16))
    per_token = 4 * sum(layer.elements for layer in layers)
    assert opened.kv_cache.block_bytes == per_token * config.block_size
    assert opened.kv_dtype == "f32"


def test_code_beside_the_weights_is_refused_whatever_the_executor(tmp_path):
    directory = write_checkpoint(
        tmp_path, config=tiny_config() | {"auto_map": {"AutoModelForCausalLM": "evil.Model"}}
    )
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    for executor in ("auto", "native", "torch"):
        assert "auto_map" in refusal(directory, executor=executor)


def test_a_pickled_checkpoint_is_refused(opt, tmp_path):
    for file in opt.glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    assert "pickled checkpoint" in refusal(tmp_path)
    assert "pickled checkpoint" in refusal(tmp_path, executor="torch")


UNSUPPORTED = {
    "mamba": ("MambaForCausalLM", "recurrent state|cannot be replaced"),
    "bloom": ("BloomForCausalLM", "cannot be replaced by the paged one"),
    "t5": ("T5ForConditionalGeneration", "does not run as a causal LM"),
    "bert": ("BertLMHeadModel", "not causal"),
    "no_such": ("NoSuch", "cannot be used by transformers"),
}


@pytest.mark.parametrize("model_type", UNSUPPORTED)
def test_models_that_cannot_be_paged_are_refused_by_name(opt, tmp_path, model_type):
    name, words = UNSUPPORTED[model_type]
    for file in opt.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": model_type, "architectures": [name], "vocab_size": 272})
    )
    with pytest.raises(ModelError, match=words) as caught:
        open_model(tmp_path, settings(tmp_path))
    assert "\n" not in str(caught.value)
    assert model_type in str(caught.value)


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("llama", {"architectures": ["LlamaForSequenceClassification"]}, "convert the checkpoint"),
        ("gemma3", {"layer_types": ["chunked_attention"] * 3}, "chunked_attention"),
        ("gemma3", {"use_bidirectional_attention": True}, "not causal"),
        ("gemma4", {"num_kv_shared_layers": 1}, "share keys and values"),
        ("gpt2", {"n_embd": "many"}, "config.json"),
        ("gpt2", {"n_head": 5}, "gpt2"),
    ],
)
def test_configurations_that_would_be_computed_wrongly_are_refused(tmp_path, name, changes, words):
    tiny_hf_config(name).save_pretrained(tmp_path)
    save_tiny(tmp_path, tiny_hf_model(name))
    assert words in refusal(config_json(tmp_path, **changes), executor="torch")


@pytest.mark.parametrize("rope_type", ["dynamic", "longrope"])
def test_length_dependent_rope_limits_the_context(tmp_path, rope_type):
    """Beyond the original context these scalings depend on the longest row of the batch."""
    extra = {"short_factor": [1.0] * 4, "long_factor": [2.0] * 4} if rope_type == "longrope" else {}
    rope = {
        "rope_type": rope_type,
        "rope_theta": 10_000.0,
        "factor": 2.0,
        "original_max_position_embeddings": 64,
        **extra,
    }
    model = tiny_hf_model("llama", rope_parameters=rope)
    directory = save_tiny(tmp_path, model)
    opened = open_model(directory, settings(directory, executor="torch"))
    assert opened.spec.context_length == 64
    run = Run(list(range(3, 43)), 20, chunks=[11])
    stepper(load_torch(directory)).run([run])
    assert run.tokens == greedy(model, list(range(3, 43)), 20)


def test_a_quantised_checkpoint_without_its_library_is_an_error(llama, tmp_path):
    for file in llama.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    quantised = {"quant_method": "gptq", "bits": 4, "group_size": 32}
    config_json(tmp_path, quantization_config=quantised)
    with pytest.raises(ModelError, match="transformers cannot load") as caught:
        load_torch(tmp_path)
    assert "\n" not in str(caught.value)


WITHOUT_TORCH = """
import sys
sys.modules.update(dict.fromkeys(("torch", "transformers")))
import importlib.util
real = importlib.util.find_spec
absent = ("torch", "transformers")
importlib.util.find_spec = lambda name, *rest: None if name in absent else real(name, *rest)
from pathlib import Path
from engine.api.config import EngineConfig
from engine.api.errors import ModelError
from engine.executors.open_model import open_model
for path in sys.argv[1:]:
    try:
        print(type(open_model(Path(path)).spec).__name__)
    except ModelError as error:
        print(error)
try:
    open_model(Path(sys.argv[1]), EngineConfig(Path(sys.argv[1]), "x", executor="torch"))
except ModelError as error:
    print(error)
"""


def test_without_torch_native_models_open_and_others_say_what_to_install(llama, opt):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(llama), str(opt)],
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, third = done.stdout.splitlines()
    assert first == "ModelSpec"
    assert "'opt'" in second
    for sentence in (second, third):
        assert sentence.endswith("which is not installed: pip install 'pravaha[torch]'.")


def test_native_models_never_import_torch(llama):
    code = (
        "import sys; from pathlib import Path; from engine.executors.open_model import open_model; "
        f"open_model(Path({str(llama)!r})); import engine.runtime.engine; "
        "assert not {'torch', 'transformers', 'triton'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
