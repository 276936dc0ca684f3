"""Which models see, which are refused or run on text alone, and what their headers say."""

import json
from dataclasses import replace

import pytest
import torch

from engine.api.errors import InvalidRequest, ModelError
from engine.executors.image_placing import place_images
from engine.executors.open_model import open_model
from engine.executors.torch import hf_config, image_processor
from engine.memory.kv_identity import kv_salt
from tests.fakes.tiny_vision import CONTEXT, VOCAB, random_image, tiny_vision
from tests.torch_executor.loaded import load_torch, torch_config


@pytest.fixture(scope="module")
def llava(tmp_path_factory):
    return tiny_vision(tmp_path_factory.mktemp("llava"), "llava")


def opened(directory, **settings):
    return open_model(directory, torch_config(directory, **settings))


def copy_of(llava, directory):
    for path in llava.directory.iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    return directory


def test_headers_have_the_sizes_of_the_text_part_and_the_weights_of_the_tower(llava):
    model = opened(llava.directory)
    assert (model.spec.sees_images, model.spec.architecture) == (True, "llava")
    assert (model.spec.vocab_size, model.spec.context_length) == (VOCAB, CONTEXT)
    assert len(model.spec.kv_layers) == 3
    assert model.parameters == llava.model.num_parameters()
    config = torch_config(llava.directory)
    plan = model.plan_memory(config, kv_dtype="f32", max_model_len=CONTEXT)
    assert plan.weight_bytes == 4 * llava.model.num_parameters()
    text = replace(model, spec=replace(model.spec, sees_images=False))
    without = text.plan_memory(config, kv_dtype="f32", max_model_len=CONTEXT)
    assert plan.work_bytes > without.work_bytes


def test_a_model_of_three_dimensional_positions_is_refused(tmp_path):
    tiny_vision(tmp_path, "qwen2_vl")
    with pytest.raises(ModelError, match=r"three dimensions \(M-RoPE\)"):
        opened(tmp_path)


def test_a_model_of_bidirectional_images_runs_on_text_alone(tmp_path):
    gemma = tiny_vision(tmp_path, "gemma3")
    model = opened(tmp_path)
    assert model.images is None
    with pytest.raises(InvalidRequest, match="sees no images"):
        place_images(model, [1, 2], [random_image(1)])
    load_torch(tmp_path).close()
    assert gemma.model.config.model_type == "gemma3"


@pytest.mark.parametrize(
    ("name", "why"),
    [("gemma3", "logits with the paged attention differ"), ("qwen2_vl", "its images fail")],
)
def test_loading_notices_what_the_configuration_does_not_say(tmp_path, monkeypatch, name, why):
    tiny_vision(tmp_path, name)
    monkeypatch.setattr(hf_config, "image_refusal", lambda config: None)
    with pytest.raises(ModelError, match=why):
        load_vision(tmp_path)


def load_vision(directory):
    from engine.executors.torch.executor import TorchExecutor

    config = torch_config(directory)
    model = open_model(directory, config)
    assert model.images is not None
    return TorchExecutor.load(
        model.spec,
        config,
        num_blocks=64,
        max_model_len=model.spec.context_length,
        weight_format=model.weight_format,
        parameters=model.parameters,
        progress=lambda share: None,
        images=model.images,
    )


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_half_precision_passes_the_comparison(llava, dtype):
    config = torch_config(llava.directory, dtype=dtype)
    model = open_model(llava.directory, config)
    from engine.executors.torch.executor import TorchExecutor

    TorchExecutor.load(
        model.spec,
        config,
        num_blocks=64,
        max_model_len=CONTEXT,
        weight_format=model.weight_format,
        parameters=model.parameters,
        progress=lambda share: None,
        images=model.images,
    ).close()


def test_dummy_weights_need_no_weight_files(llava, tmp_path):
    copy_of(llava, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    model = opened(tmp_path, dummy_weights=True)
    assert model.images is not None


def test_a_missing_image_processor_is_one_sentence(llava, tmp_path):
    copy_of(llava, tmp_path)
    (tmp_path / "processor_config.json").unlink()
    with pytest.raises(ModelError, match=r"image processor in .* cannot be used"):
        opened(tmp_path)


def test_a_missing_pillow_is_one_sentence(llava, monkeypatch):
    monkeypatch.setattr(image_processor, "pillow_installed", lambda: False)
    with pytest.raises(ModelError, match=r"needs Pillow: pip install 'pravaha\[torch\]'"):
        opened(llava.directory)


def test_code_of_a_processor_is_never_run(llava, tmp_path):
    copy_of(llava, tmp_path)
    path = tmp_path / "processor_config.json"
    settings = json.loads(path.read_text()) | {"auto_map": {"AutoProcessor": "evil.Processor"}}
    path.write_text(json.dumps(settings))
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    with pytest.raises(ModelError, match="never run"):
        opened(tmp_path)


def test_image_tokens_outside_the_embedding_are_refused(llava, tmp_path):
    copy_of(llava, tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    config["text_config"]["vocab_size"] = 265  # the id of <image>
    path.write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"outside its vocabulary|has token id 265"):
        opened(tmp_path, dummy_weights=True)


def test_another_image_processor_has_other_blocks(llava, tmp_path):
    copy_of(llava, tmp_path)
    config = torch_config(llava.directory)
    model = opened(llava.directory)
    path = tmp_path / "processor_config.json"
    path.write_text(path.read_text().replace('"resample": 3', '"resample": 2'))
    other = replace(model, images=opened(tmp_path).images)
    assert kv_salt(model, config) != kv_salt(other, config)
    assert kv_salt(model, config) == kv_salt(opened(llava.directory), config)


def test_a_model_that_treats_several_images_otherwise_takes_one(llava, monkeypatch):
    model = opened(llava.directory)
    monkeypatch.setattr(model.images, "one_per_prompt", True)
    ids = model.tokenizer.encode("<image><image>", special=True)
    with pytest.raises(InvalidRequest, match="may have 1 image, not 2"):
        place_images(model, ids, [random_image(1), random_image(2)])
    assert len(place_images(model, ids[:1], [random_image(1)])[1]) == 1


def test_the_tower_keeps_transformers_attention(llava):
    executor = load_vision(llava.directory)
    config = executor._loaded()[0].config
    assert config.text_config._attn_implementation == "pravaha_paged"
    assert config.vision_config._attn_implementation in ("sdpa", "eager")
    assert torch.get_num_threads() == 1
    executor.close()
