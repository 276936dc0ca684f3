"""Generation defaults in untrusted files."""

import json

import pytest

from engine.models.generation_config import read_generation_config, read_gguf_defaults

QWEN = {
    "bos_token_id": 151643,
    "do_sample": True,
    "temperature": 0.7,
    "top_p": 0.8,
    "top_k": 20,
    "repetition_penalty": 1.05,
    "max_new_tokens": 2048,
}


def from_json(folder, text):
    (folder / "generation_config.json").write_text(text)
    return read_generation_config(folder)


def test_a_generation_config(tmp_path):
    defaults = from_json(tmp_path, json.dumps(QWEN))
    assert defaults.values() == {
        "temperature": 0.7,
        "top_p": 0.8,
        "top_k": 20,
        "repetition_penalty": 1.05,
    }
    assert defaults.source == "generation_config.json"


def test_gguf_metadata_as_llama_cpp_writes_it():
    float32 = 0.699999988079071
    defaults = read_gguf_defaults(
        {
            "general.sampling.temp": float32,
            "general.sampling.top_k": 40,
            "general.sampling.top_p": 0.949999988079071,
            "general.sampling.min_p": 0.05000000074505806,
            "general.sampling.penalty_repeat": 1.100000023841858,
            "general.sampling.mirostat": 0,
        },
        source="a.gguf",
    )
    assert defaults.values() == {
        "temperature": 0.7,
        "top_k": 40,
        "top_p": 0.95,
        "min_p": 0.05,
        "repetition_penalty": 1.1,
    }


def test_files_without_defaults_have_no_source(tmp_path):
    assert read_generation_config(tmp_path).source == ""
    assert from_json(tmp_path, '{"eos_token_id": 2}').source == ""
    assert read_gguf_defaults({"general.name": "x"}, source="a.gguf").source == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "0.7"),
        ("temperature", -1),
        ("temperature", 1e9),
        ("temperature", True),
        ("top_p", 0),
        ("top_p", 1.5),
        ("top_p", [0.9]),
        ("min_p", 2),
        ("top_k", 2.5),
        ("top_k", 2**40),
        ("repetition_penalty", 0),
        ("repetition_penalty", 1e300),
    ],
)
def test_a_bad_value_is_ignored_with_one_warning(tmp_path, caplog, name, value):
    good = {"top_k": 5} if name != "top_k" else {"min_p": 0.5}
    assert from_json(tmp_path, json.dumps({name: value, **good})).values() == good
    (record,) = caplog.records
    assert "generation_config.json" in record.message
    assert name in record.message


def test_minus_one_is_no_top_k(tmp_path):
    assert from_json(tmp_path, '{"top_k": -1}').values() == {"top_k": 0}


@pytest.mark.parametrize("text", ["{", "[]", "7", '"x"', '{"temperature": NaN}'])
def test_a_damaged_file_is_ignored_with_one_warning(tmp_path, caplog, text):
    assert from_json(tmp_path, text).values() == {}
    (record,) = caplog.records
    assert "generation_config.json" in record.message
