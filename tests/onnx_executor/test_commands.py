"""Commands with a model in ONNX: what `models show` and `doctor` say of it, and an answer of `run`."""

import json

import pytest
from typer.testing import CliRunner

from app.cli import cli
from tests.fakes.tiny_onnx import GraphOptions, random_llama, write_genai


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return write_genai(
        tmp_path / "model", random_llama(layers=4), GraphOptions(attention="gqa", bits=4)
    )


def run(*arguments):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_show(folder):
    text = run("models", "show", folder)
    assert "4 layers" in text
    assert "M in INT4" in text
    assert "never: only the native executor keeps them" in text
    facts = json.loads(run("models", "show", folder, "--json"))
    assert facts["kv_dtype"] == "f32"
    assert facts["spec"]["ports"]["past_keys"][3] == "past_key_values.3.key"
    assert facts["weight_bytes"] > 0


def test_an_answer(folder):
    arguments = ("--max-tokens", 5, "--temperature", 0, "--ctx", 128, "--json", "Hello")
    answer = json.loads(run("run", "--model", folder, *arguments))
    assert answer["usage"]["completion_tokens"] == len(answer["token_ids"]) > 0
