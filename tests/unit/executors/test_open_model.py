import json

import numpy as np
import pytest

from engine.api.errors import ModelError
from engine.executors.open_model import open_model
from engine.models.demo import SMOLLM2
from tests.fakes.tiny_checkpoint import tiny_config, tiny_tensors, write_checkpoint
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.fakes.tiny_vocabulary import sentencepiece_fields


def test_the_demo_model(demo_model):
    model = open_model(demo_model)
    assert model.spec.architecture == "llama"
    assert model.weight_format == "Q4_1"
    assert model.parameters == 134_515_008
    assert model.file_bytes == demo_model.stat().st_size == 98_362_432
    assert model.paths == (demo_model,)
    assert model.tokenizer.has_chat_template
    assert model.tokenizer.vocab_size == model.spec.vocab_size == 49_152
    assert model.generation_defaults == SMOLLM2.defaults
    assert model.generation_defaults.values()


def test_generation_defaults_come_from_the_files(tmp_path):
    path = write_tiny_gguf(tmp_path / "a.gguf", fields={"general.sampling.temp": 0.7})
    assert open_model(path).generation_defaults.values() == {"temperature": 0.7}
    assert not open_model(write_tiny_gguf(tmp_path / "b.gguf")).generation_defaults.values()
    write_checkpoint(tmp_path / "c")
    (tmp_path / "c" / "generation_config.json").write_text('{"top_k": 20}')
    assert open_model(tmp_path / "c").generation_defaults.values() == {"top_k": 20}


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_tiny_gguf_files(tmp_path, architecture):
    path = write_tiny_gguf(tmp_path / "tiny-thing.gguf", architecture=architecture, tied=False)
    model = open_model(path)
    assert model.spec.architecture == architecture
    assert model.name == "tiny-thing"
    assert model.weight_format == "F32"
    assert not model.spec.tied_embeddings


def test_gguf_with_a_sentencepiece_vocabulary(tmp_path):
    path = write_tiny_gguf(
        tmp_path / "spm.gguf",
        fields=sentencepiece_fields()
        | {
            "tokenizer.ggml.merges": None,
            "tokenizer.ggml.pre": None,
            "tokenizer.chat_template": None,
        },
    )
    tokenizer = open_model(path).tokenizer
    assert tokenizer.decode(tokenizer.encode("hello world")) == "hello world"
    assert not tokenizer.has_chat_template


def test_gguf_with_a_table_of_rotary_divisors(tmp_path):
    divisors = np.array([1.0, 1.0, 2.5, 8.0], np.float32)
    tables = {"rope_freqs.weight": divisors}
    path = write_tiny_gguf(tmp_path / "l31.gguf", extra_tensors=tables)
    assert open_model(path).spec.ropes[0].divisors == (1.0, 1.0, 2.5, 8.0)
    tables = {"rope_freqs.weight": np.ones(1 << 16, np.float32)}
    path = write_tiny_gguf(tmp_path / "large.gguf", extra_tensors=tables)
    with pytest.raises(ModelError, match=r"damaged rope_freqs\.weight"):
        open_model(path)


def test_names_are_cleaned_of_control_characters(tmp_path):
    path = write_tiny_gguf(tmp_path / "x.gguf", fields={"general.name": "ev\x1b[31mil\n model"})
    assert open_model(path).name == "ev [31mil model"


@pytest.mark.parametrize("shards", [1, 2])
def test_safetensors_directories(tmp_path, shards):
    directory = write_checkpoint(
        tmp_path / "tiny-llama",
        config=tiny_config(tie_word_embeddings=False),
        tied=False,
        shards=shards,
    )
    model = open_model(directory)
    assert model.name == "tiny-llama"
    assert len(model.paths) == shards
    assert model.parameters == sum(array.size for array in tiny_tensors(tied=False).values())
    assert model.tokenizer.eos_ids == {0, 2}


def test_what_is_no_model_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "model.bin").write_bytes(b"\x80\x04.")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF\x03\0\0\0")
    (tmp_path / "empty").mkdir()
    cases = {
        "nothing.gguf": "no model at",
        "notes.txt": "neither a GGUF file",
        "model.bin": "can run code",
        "cut.gguf": "cut.gguf",
        "empty": r"no config\.json",
    }
    for name, words in cases.items():
        with pytest.raises(ModelError, match=words) as caught:
            open_model(tmp_path / name)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "nul", '"x"', "[" * 100_000])
def test_config_json_that_is_no_object(tmp_path, text):
    directory = write_checkpoint(tmp_path, files={"config.json": text})
    with pytest.raises(ModelError, match=r"config\.json"):
        open_model(directory)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", json.dumps({"model": {"type": "BPE", "vocab": {"a": -1}}}), "[" * 99_999],
)
def test_tokenizer_json_that_is_no_tokenizer(tmp_path, text):
    directory = write_checkpoint(tmp_path, files={"tokenizer.json": text})
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        open_model(directory)
