import json

import pytest
from typer.testing import CliRunner

from app.commands.models import models_app
from engine.files.cache_dir import CACHE_DIR_VARIABLE
from engine.text.tool_calls import thresholds
from engine.text.tool_calls.thresholds import CallThresholds, Threshold
from tests.fakes.family_templates import QWEN
from tests.fakes.tiny_checkpoint import tiny_config, write_checkpoint
from tests.fakes.tiny_gguf import write_tiny_gguf
from tests.fakes.tiny_vocabulary import base_fields
from tests.parity.cached_loading import load

MEASURED = CallThresholds(Threshold(1.0), Threshold(0.0), Threshold(-0.5))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_DIR_VARIABLE, str(tmp_path / "cache"))
    return lambda *words: CliRunner().invoke(models_app, words)


@pytest.fixture
def model_file(tmp_path):
    return write_tiny_gguf(tmp_path / "tiny.gguf", fields={"general.name": "Tiny [bold]Thing"})


def test_add_list_show_verify_remove(run, model_file):
    assert "No models are installed" in run("list").stdout
    assert "mine is ready" in run("add", str(model_file), "--name", "mine").stdout
    (row,) = (line for line in run("list").stdout.splitlines() if line.startswith("mine"))
    assert row.split()[-1].endswith(".gguf")  # a pipe gets the path whole, however long
    shown = run("show", "mine").stdout
    assert "Tiny [bold]Thing" in shown
    assert "2 layers: with all tokens; with 4 heads of 8 and 2 for keys and values; " in shown
    assert "feed-forward 64 (SiLU, gated)" in shown
    assert "of weights" in shown
    assert "bytes per token in f16" in shown
    assert "every file matches its digest" in run("verify", "mine").stdout
    assert "was linked and is kept" in run("remove", "mine").stdout
    assert model_file.exists()


def test_json(run, model_file):
    assert json.loads(run("list", "--json").stdout) == []
    run("add", str(model_file))
    (listed,) = json.loads(run("list", "--json").stdout)
    assert listed["path"] == str(model_file)
    shown = json.loads(run("show", "tiny", "--json").stdout)
    assert shown["architecture"] == "llama"
    assert len(shown["spec"]["layers"]) == 2


def test_show_tells_what_of_a_file_is_not_used(run, tmp_path):
    fields = {"tokenizer.ggml.padding_token_id": 10**6, "tokenizer.chat_template": "{{ nope.x }}"}
    file = str(write_tiny_gguf(tmp_path / "odd.gguf", fields=fields))
    assert json.loads(run("show", file, "--json").stdout)["notes"] == [
        "padding_token_id is 1000000, outside the vocabulary of 265: it is ignored.",
        "Chats are refused. The model's chat template fails on a plain question: 'nope' is undefined.",
    ]
    assert "it is ignored." in run("show", file).stdout
    assert "odd is ready" in run("add", file).stdout


def test_show_tells_that_a_base_model_continues_text(run, tmp_path):
    file = str(write_tiny_gguf(tmp_path / "base.gguf", fields=base_fields()))
    shown = json.loads(run("show", file, "--json").stdout)
    assert not shown["chat_template"]
    assert shown["notes"] == ["The model has no chat template: it continues text."]
    assert "none: the model continues text" in run("show", file).stdout
    plain = str(write_tiny_gguf(tmp_path / "p.gguf", fields={"tokenizer.chat_template": None}))
    assert "none: ChatML is used" in run("show", plain).stdout


def test_show_names_the_form_of_tool_calls(run, tmp_path):
    fields = {"tokenizer.chat_template": QWEN}
    file = str(write_tiny_gguf(tmp_path / "qwen.gguf", fields=fields))
    assert json.loads(run("show", file, "--json").stdout)["tool_call_form"] == "hermes"
    assert "in the form hermes" in run("show", file).stdout


def test_show_says_whether_the_decision_on_calls_was_measured(run, tmp_path, monkeypatch):
    file = str(write_tiny_gguf(tmp_path / "tiny.gguf"))
    assert json.loads(run("show", file, "--json").stdout)["tool_decision"] == "model"
    assert "decided by what the model writes" in run("show", file).stdout
    monkeypatch.setattr(thresholds, "thresholds_of", lambda key: MEASURED)
    assert json.loads(run("show", file, "--json").stdout)["tool_decision"] == "auto"
    assert "decided by measured probabilities" in run("show", file).stdout


def test_show_tells_the_size_of_weights_that_would_be_quantized(run, model_file):
    def shown(*words):
        return json.loads(run("show", str(model_file), *words, "--json").stdout)

    stored, quantized = shown(), shown("--weights", "q8")
    assert (stored["weights"], stored["memory_format"]) == ("stored", "F32")
    assert (quantized["weights"], quantized["memory_format"]) == ("q8", "Q8_0")
    assert quantized["weight_bytes"] < 0.3 * stored["weight_bytes"]
    assert (stored["kv_dtype"], quantized["kv_dtype"]) == ("f16", "int8")
    assert "of weights in Q8_0" in run("show", str(model_file), "--weights", "q8").stdout


def test_an_unknown_weight_mode_is_refused(run, model_file):
    result = run("show", str(model_file), "--weights", "q5")
    assert result.exit_code == 2
    assert "must be one of stored, q8, q4" in " ".join(result.output.split())


def test_show_takes_a_path(run, model_file):
    assert "not in the store" in run("show", str(model_file)).stdout


@pytest.mark.parametrize(
    "words", [("add", "no such"), ("show", "x"), ("verify", "x"), ("remove", "x")]
)
def test_errors_are_one_sentence_on_stderr_and_status_1(run, words):
    result = run(*words)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1


def test_verify_names_the_changed_file(run, model_file):
    run("add", str(model_file))
    with model_file.open("ab") as file:
        file.write(b"x")
    result = run("verify", "tiny")
    assert result.exit_code == 1
    assert str(model_file) in result.stderr


def packed(tmp_path, model_file):
    """The files of packed weights, after the model was loaded with the cache of `run`."""
    folder = tmp_path / "cache" / "weights"
    load(model_file, folder).close()
    return sorted(folder.iterdir())


def test_packed_weights_are_shown_verified_and_removed_with_their_model(run, model_file, tmp_path):
    run("add", str(model_file), "--name", "mine")
    assert "not yet: the first load writes them" in run("show", "mine").stdout
    (file,) = packed(tmp_path, model_file)
    assert str(file) in run("show", "mine").stdout
    (shown,) = json.loads(run("show", "mine", "--json").stdout)["packed_files"]
    assert shown == {"path": str(file), "bytes": file.stat().st_size}
    assert run("verify", "mine").exit_code == 0
    assert run("remove", "mine").exit_code == 0
    assert not file.exists()


def test_verifying_removes_damaged_packed_weights(run, model_file, tmp_path):
    run("add", str(model_file), "--name", "mine")
    (file,) = packed(tmp_path, model_file)
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    result = run("verify", "mine")
    assert result.exit_code == 1
    assert "contents are damaged" in result.stderr
    assert not file.exists()
    assert run("verify", "mine").exit_code == 0


def test_the_packed_weights_of_all_models_can_be_removed(run, model_file, tmp_path):
    assert run("clear-cache").stdout == "0 MB of packed weights are removed.\n"
    other = write_tiny_gguf(tmp_path / "other.gguf", seed=1)
    assert len(packed(tmp_path, model_file)) == 1
    assert len(packed(tmp_path, other)) == 2
    assert run("clear-cache").exit_code == 0
    assert list((tmp_path / "cache" / "weights").iterdir()) == []


def test_list_names_the_format(run, model_file, tmp_path):
    write_checkpoint(tmp_path / "floats")
    settings = {"quant_method": "awq", "bits": 4, "group_size": 128}
    later = write_checkpoint(tmp_path / "awq")
    for path in (model_file, tmp_path / "floats", later):
        assert "is ready" in run("add", str(path)).stdout
    (later / "config.json").write_text(json.dumps(tiny_config(quantization_config=settings)))
    formats = {model["name"]: model["format"] for model in json.loads(run("list", "--json").stdout)}
    assert formats == {"tiny": "GGUF", "floats": "safetensors", "awq": "AWQ 4-bit, groups of 128"}
    assert "AWQ 4-bit, groups of 128" in run("list").stdout
